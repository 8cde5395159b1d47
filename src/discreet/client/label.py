"""The privacy label: a signed document in canonical JSON, and a page that shows it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from discreet import __version__
from discreet.client.documents import public_key, signed_by, with_signature
from discreet.client.pages import rendered
from discreet.errors import CorruptRelease, InvalidInput
from discreet.plan.config import build
from discreet.privacy.attacker import attacker, hundredths, odds_text
from discreet.privacy.events import flattened
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import read_document
from discreet.text import epsilon_text, guarantee_text, read_toml
from discreet.types import JsonMapping, JsonObject
from discreet.validate import one_of

FORMAT, AUDIT_FORMAT = "discreet-label/1", "discreet-audit/1"


@dataclass(frozen=True)
class HeldData:
    """One kind of data: its description, its holder and the time until deletion."""

    what: str
    holder: str
    kept: str


@dataclass(frozen=True)
class OperatorFacts:
    """The keys of the file that ``--facts`` names; what is left out is "not stated"."""

    operator: str | None = None
    contact: str | None = None
    purpose: str | None = None
    audited_on: str | None = None
    data: tuple[HeldData, ...] = ()
    registry: JsonMapping = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        stated = {each.name: getattr(self, each.name) for each in fields(self)}
        return stated | {"data": [vars(each) for each in self.data]}


def read_facts(path: str | Path | None) -> OperatorFacts:
    """The facts of a TOML file; unknown keys and values that are not text are refused."""
    given = read_toml(path, "facts") if path else {}
    held, entry = given.pop("data", []), given.pop("registry", {})
    if not isinstance(held, list):
        raise InvalidInput(
            "facts.data must be a list of tables; got another kind. Write [[data]] with what, "
            "holder and kept for each kind of data."
        )
    rows = {f"facts.data[{i}]": each for i, each in enumerate(held)}
    built = [build(HeldData, _texts(each, where), where, {}) for where, each in rows.items()]
    tables = {"data": built, "registry": _texts(entry, "facts.registry")}
    return build(OperatorFacts, _texts(given, "facts") | tables, "facts", {})


def _texts(given: object, where: str) -> JsonObject:
    """Return the texts of a table; dates are written as text."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{where} must be a table; got another kind. Write [section] above it.")
    read = {}
    for name, value in given.items():
        read[name] = value.isoformat() if hasattr(value, "isoformat") else value
        if not isinstance(read[name], str) or not read[name].strip():
            raise InvalidInput(
                f"{where}.{name} must be text; got {value!r}. Write it in quotes, or leave it out."
            )
    return read


def read_audit(path: str | Path) -> JsonObject:
    """The summary of a file that ``discreet audit --json`` wrote; ε as text."""
    document = read_document(path)
    try:
        if document["format"] != AUDIT_FORMAT:
            raise ValueError
        bounds = [
            {
                "mechanism": str(each["subject"]),
                "attack": str(each["part"]),
                "claimed": repr(float(each["claimed"])),
                "proven": repr(float(each["measured"])),
                "verdict": str(each["verdict"]),
            }
            for each in document["findings"]
            if each["measured"] is not None
        ]
        names = "version", "command", "verdict", "summary"
        stated = {name: str(document[name]) for name in names}
        return {**stated, "questions": len(document["findings"]), "lower_bounds": bounds}
    except (KeyError, TypeError, ValueError):
        raise CorruptRelease(
            f"audit must be a file that discreet audit --json wrote; {path} is not. "
            "Write one with discreet audit --quick --json > audit.json."
        ) from None


ABOUT = ("kind", "experiment", "releases", "head", "key")
"""Fields that describe the source of a label; unknown ones are null."""

TRUST = (
    ("The operator", "sees contexts, actions and losses until their batch is released"),
    ("The operator's computer", "draws secret noise, and runs this software unaltered"),
    ("Readers of the releases", "nothing: they may collude and know all other records"),
    ("Other people in the experiment", "nothing: what they receive follows from the releases"),
)
NOT_COVERED = (
    "That somebody took part, how often and when: only what they said is protected.",
    "What the releases teach about people in general, and so about you if you are like them.",
    "The operator, and anybody who gets into the operator's computer before a release.",
    "How long computations take, and other traces of the computer at work.",
    "Facts about you that are known from elsewhere.",
)
PER_RECORD = "Several records of one person: each has the promise, all together have a weaker one."
NAMES = "A person who appears under two names: each name has the promise."


def label_document(
    ledger: Ledger,
    about: JsonMapping,
    *,
    made: str,
    audit: JsonMapping | None = None,
    facts: OperatorFacts | None = None,
) -> JsonObject:
    """All fields of the label; decimals are text, so that its bytes are canonical."""
    spent, event = ledger.spent(), ledger.bounding_event()
    best, person = attacker(event), ledger.unit == "user"
    stated = (facts or OperatorFacts()).to_json()
    return {
        "format": FORMAT,
        "version": __version__,
        "made": made,
        "about": {name: about.get(name) for name in ABOUT},
        "unit": ledger.unit,
        "neighbours": ledger.relation,
        "private": math.isfinite(spent.epsilon),
        "epsilon": repr(spent.epsilon),
        "delta": repr(spent.delta),
        "budget": {"epsilon": repr(ledger.budget.epsilon), "delta": repr(ledger.budget.delta)},
        "charges": len(ledger.entries),
        "mu": None if best.mu is None else repr(best.mu),
        "zcdp": repr(best.zcdp),
        "attacker": {
            "success": repr(best.success),
            "exact": best.exact,
            "sentence": best.sentence(ledger.unit),
        },
        "assumptions": list(spent.assumptions),
        "trust": [{"who": who, "with": what} for who, what in TRUST],
        "not_covered": [NAMES if person else PER_RECORD, *NOT_COVERED],
        "audit": None if audit is None else dict(audit) | {"on": stated["audited_on"]},
        "operator": {name: stated[name] for name in ("operator", "contact", "purpose")},
        "data": stated["data"],
    }


def signed(document: JsonMapping, private_key: bytes) -> bytes:
    """Canonical bytes with the public key and the signature of the document without it."""
    key = public_key(private_key)
    content = with_signature({**document, "key": key}, private_key)
    verified(content, key)  # never publish what a reader would refuse
    return content


def verified(content: bytes, key: str) -> JsonObject:
    """The label in signed bytes, without its signature; CorruptRelease if it is not valid."""
    document = signed_by(key, content.rstrip(b"\n"), "label")
    if (document.get("format"), document.get("key")) != (FORMAT, key):
        raise CorruptRelease(
            f"label must be of format {FORMAT!r} and name the expected key; this one does not. It "
            "is of another experiment: fetch it again, and check the public key."
        )
    return document


UNITS = {"decision": "one decision", "user": "one person"}


def label_page(document: JsonMapping) -> str:
    """One self-contained HTML file, light and dark, for screens and for one sheet of paper."""
    return rendered("discreet.client", "label.html", **label_values(document))


def label_values(document: JsonMapping) -> JsonObject:
    """The values of the page: those of the document, and what follows from them."""
    best = document["attacker"]
    right = hundredths(float(best["success"]), best["exact"])
    budget = document["budget"]
    # A hundred choices between two in ten rows: a guess is right fifty times.
    kinds = ["guess"] * 50 + ["beyond"] * (right - 50) + ["wrong"] * (100 - right)
    return {
        **document,
        "odds": odds_text(document["unit"], right, exact=best["exact"]),
        "protects": UNITS.get(document["unit"], f"one {document['unit']}"),
        "guarantee": guarantee_text(float(document["epsilon"]), float(document["delta"])),
        "promised": guarantee_text(float(budget["epsilon"]), float(budget["delta"])),
        "shift": _number(document["mu"]),
        "rho": _number(document["zcdp"]),
        "right": right,
        "dots": [(place % 10, place // 10, kind) for place, kind in enumerate(kinds)],
        "bounds": _bounds(document["audit"] or {"lower_bounds": []}),
    }


def _number(text: str | None) -> str:
    return "not known" if text is None else epsilon_text(float(text), 3)


def _bounds(audit: JsonMapping) -> list[tuple[str, str, str]]:
    """For each attack the mechanism with the smallest difference between claimed and proven ε."""
    by_attack: dict[str, list[JsonMapping]] = {}
    for each in audit["lower_bounds"]:
        by_attack.setdefault(each["attack"], []).append(each)
    nearest = [
        min(bounds, key=lambda each: float(each["claimed"]) - float(each["proven"]))
        for bounds in by_attack.values()
    ]
    return [
        (
            f"{each['attack']}, {each['mechanism']}",
            _number(each["claimed"]),
            _number(each["proven"]),
        )
        for each in nearest
    ]


REGISTRY_KEYS = (
    *("name", "region", "published", "description", "sector", "author", "sources"),
    *("preprocessing", "justification"),
)


def registry_entry(document: JsonMapping, ledger: Ledger, facts: JsonMapping) -> str:
    """An entry, in YAML, for the public registry of deployments of privacy [OpenDP 2026]."""
    stated = {one_of("key of facts.registry", key, REGISTRY_KEYS): facts[key] for key in facts}
    name, operator = stated.get("name", document["about"]["experiment"]), document["operator"]
    date = re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", stated.get("published", ""))
    required = {
        **{key: operator[key] for key in ("operator", "purpose")},
        **{"registry.name": name, "registry.region": stated.get("region")},
        "registry.published (a date)": date,
    }
    if missing := [key for key, value in required.items() if value is None]:
        raise InvalidInput(
            f"facts must state {', '.join(missing)} for an entry of the registry; got none. "
            "Add them to the file that --facts names, or leave out --registry."
        )
    if not document["charges"] or document["budget"]["epsilon"] == "inf":
        raise InvalidInput("SOURCE must have private releases; got none. Leave out --registry.")
    kinds = {type(part).__name__ for each in ledger.entries for part in flattened(each.event)}
    audit = "" if document["audit"] is None else f" {document['audit']['summary']}"
    parts = (name, operator["operator"], stated["published"][:4])
    budget = {key: text for key, text in document["budget"].items() if float(text)}
    shown = {
        "slug": "-".join(re.sub(r"\W+", "-", part.lower()) for part in parts).replace("_", "-"),
        "title": name,
        "protects": UNITS.get(document["unit"], document["unit"]),
        # YAML 1.1 reads 1e-05 as text, and 1.0e-05 as a number.
        "parameters": {key: re.sub(r"^(\d+)e", r"\1.0e", text) for key, text in budget.items()},
        "guarantee": guarantee_text(float(document["epsilon"]), float(document["delta"])),
        "mechanisms": f"{', '.join(sorted(kinds))}; by discreet {document['version']}.{audit}",
        "quoted": lambda text: json.dumps(text, ensure_ascii=False),
    }
    return rendered("discreet.client", "registry.yaml", **document, **shown, stated=stated)
