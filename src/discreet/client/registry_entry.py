"""An entry for the public registry of deployments of differential privacy [OpenDP 2026]."""

from __future__ import annotations

import json
import re

from discreet.client.label import UNITS
from discreet.errors import InvalidInput
from discreet.privacy.events import flattened
from discreet.privacy.ledger import Ledger
from discreet.text import guarantee_text
from discreet.types import JsonMapping, JsonObject
from discreet.validate import one_of

DESCRIPTION = """A contextual bandit. Each release holds predictors of the loss of every action,
fitted with noise to one batch of decisions. A public rule decides from the releases."""
DOMAIN = """Sequences of records: a context, the action that was played and its loss.
Bounds of contexts and losses are declared before the first decision."""
KEYS = ("name", "region", "published", "description", "sector", "preprocessing", "justification")
KEYS += ("author", "sources")
DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def registry_entry(document: JsonMapping, ledger: Ledger, stated: JsonMapping) -> JsonObject:
    """Return a draft of the entry for a label; ``stated`` are facts of the operator, by key."""
    given = {one_of("key of facts.registry", key, KEYS): text for key, text in stated.items()}
    curator, use = document["operator"]["operator"], document["operator"]["purpose"]
    name, region = given.get("name", document["about"]["experiment"]), given.get("region")
    published = DATE.fullmatch(given.get("published", ""))
    required = {"operator": curator, "purpose": use, "registry.name": name}
    required |= {"registry.region": region, "registry.published (a date)": published}
    if missing := [key for key, value in required.items() if value is None]:
        raise InvalidInput(
            f"facts must state {', '.join(missing)} for an entry of the registry; got none. "
            "Add them to the file that --facts names, or leave out --registry."
        )
    if not document["private"] or not document["charges"]:
        raise InvalidInput("SOURCE must have private releases; got none. Leave out --registry.")
    budget = {key: float(value) for key, value in document["budget"].items()}
    spent = guarantee_text(float(document["epsilon"]), float(document["delta"]))
    details = f"The budget for all releases. Spent until {document['made']}: {spent}."
    events = [part for entry in ledger.entries for part in flattened(entry.event)]
    kinds = ", ".join(sorted({type(event).__name__ for event in events}))
    audit = "" if document["audit"] is None else f" Audit: {document['audit']['summary']}"
    deployment: JsonObject = {
        "basic": {
            "name": name,
            "data_curators": [curator],
            "intended_use": use,
            "data_product_type": "Machine learning model",
            "data_product_region": region,
            "description": given.get("description", DESCRIPTION),
            "publication_date": given["published"],
            "data_product_sector": given.get("sector"),
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if budget["delta"] else "Pure DP",
            "data_domain": DOMAIN,
            "unprotected_quantities": "\n".join(document["not_covered"]),
        },
        "privacy_loss": {
            "privacy_unit": UNITS.get(document["unit"], document["unit"]),
            "privacy_unit_details": document["neighbours"],
            "privacy_parameters": {key: value for key, value in budget.items() if value},
            "privacy_parameters_details": f"{details} {document['attacker']['sentence']}",
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": "\n".join(f"{each['who']}: {each['with']}." for each in document["trust"]),
            "release_type": "Many releases",
            "release_type_details": "The budget covers all releases together; it is never reset.",
            "data_source_type": "Dynamic",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "Decisions, explanations and estimates of lift use releases alone.",
            "composition": "\n".join(document["assumptions"]),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": given.get("preprocessing"),
            "mechanisms": f"{kinds}; computed by discreet {document['version']}.{audit}",
            "justification": given.get("justification"),
        },
    }
    if "author" in given:
        authors = {"sources": given.get("sources"), "registry_authors": [given["author"]]}
        deployment["administrative"] = authors
    parts = [re.sub(r"\W+", "-", each.lower()) for each in (name, curator, given["published"][:4])]
    tier = 3 if given.keys() >= {"preprocessing", "justification"} else 2
    slug = "-".join(parts).replace("_", "-")
    return {"url_slug": slug, "status": "Draft", "tier": tier, "deployment": deployment}


def yaml_text(entry: JsonMapping, indent: str = "") -> str:
    """Return an entry as YAML, without the fields that were not stated."""
    lines = []
    for name, value in entry.items():
        written = " " + json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            written = "\n" + yaml_text(value, indent + "  ")
        elif isinstance(value, float) and "." not in written:  # YAML 1.1 reads 1e-05 as text
            written = written.replace("e", ".0e")
        elif name == "url_slug":  # a script of the registry expects no quotes
            written = f" {value}"
        lines += [] if value is None else [f"{indent}{name}:{written}"]
    return "\n".join(lines)
