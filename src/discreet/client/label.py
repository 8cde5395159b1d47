"""The privacy label: a signed document in canonical JSON, and a page that shows it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from discreet import __version__
from discreet.client.documents import checked_public_key, is_signed, public_key, signature
from discreet.client.pages import rendered
from discreet.errors import CorruptRelease, InvalidInput
from discreet.plan.config import build
from discreet.privacy.attacker import attacker, hundredths, odds_text
from discreet.privacy.events import flattened
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import canonical, read_document
from discreet.text import epsilon_text, guarantee_text, read_toml
from discreet.types import JsonMapping, JsonObject
from discreet.validate import one_of


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
    if not isinstance(held, list) or not all(isinstance(each, Mapping) for each in held):
        raise InvalidInput(
            "facts.data must be a list of tables; got another kind. Write [[data]] with what, "
            "holder and kept for each kind of data."
        )
    rows = [_texts(each, f"facts.data[{i}]") for i, each in enumerate(held)]
    built = [build(HeldData, row, f"facts.data[{i}]", {}) for i, row in enumerate(rows)]
    if not isinstance(entry, Mapping):
        raise InvalidInput("facts.registry must be a table; got another kind. Write [registry].")
    tables = {"data": built, "registry": _texts(entry, "facts.registry")}
    return build(OperatorFacts, _texts(given, "facts") | tables, "facts", {})


def _texts(given: JsonMapping, where: str) -> JsonObject:
    """Dates are written as text; everything else must be text already."""
    read = {name: _date(value) for name, value in given.items()}
    for name, value in read.items():
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(
                f"{where}.{name} must be text; got {value!r}. Write it in quotes, or leave it out."
            )
    return read


def _date(value: object) -> object:
    return value.isoformat() if hasattr(value, "isoformat") else value


AUDIT_FORMAT = "discreet-audit/1"


def read_audit(path: str | Path) -> JsonObject:
    """The summary of a file that ``discreet audit --json`` wrote; ε as text."""
    document = read_document(path)
    try:
        if document["format"] != AUDIT_FORMAT:
            raise ValueError
        bounds = [_bound(each) for each in document["findings"] if each["measured"] is not None]
        stated = {
            name: str(document[name]) for name in ("version", "command", "verdict", "summary")
        }
        return {**stated, "questions": len(document["findings"]), "lower_bounds": bounds}
    except (KeyError, TypeError, ValueError):
        raise CorruptRelease(
            f"audit must be a file that discreet audit --json wrote; {path} is not. "
            "Write one with discreet audit --quick --json > audit.json."
        ) from None


def _bound(finding: JsonMapping) -> dict[str, str]:
    """The claimed ε of a finding and the lower bound that an attack proved."""
    return {
        "mechanism": str(finding["subject"]),
        "attack": str(finding["part"]),
        "claimed": repr(float(finding["claimed"])),
        "proven": repr(float(finding["measured"])),
        "verdict": str(finding["verdict"]),
    }


FORMAT = "discreet-label/1"
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
    with_key = {**document, "key": public_key(private_key)}
    content = canonical({**with_key, "signature": signature(canonical(with_key), private_key)})
    verified(content, with_key["key"])  # never publish what a reader would refuse
    return content


def verified(content: bytes, key: str) -> JsonObject:
    """The label in signed bytes, without its signature; CorruptRelease if it is not valid."""
    key = checked_public_key(key)
    try:
        document = json.loads(content)
        written = document.pop("signature")
        whole = canonical(document)
        valid = document["format"] == FORMAT and document["key"] == key
    except (ValueError, KeyError, AttributeError, TypeError):
        valid, whole, written = False, b"", None
    if not (valid and is_signed(whole, written, key)):
        raise CorruptRelease(
            "label must be signed by the expected key; this one is not. It was altered or is of "
            "another experiment: fetch it again, and check the public key."
        )
    return document  # type: ignore[no-any-return]


UNITS = {
    "decision": "one decision",
    "user": "one person",
}
GUESSED = 50
"""Of one hundred choices between two, a guess is right this often."""


def label_page(document: JsonMapping) -> str:
    """One self-contained HTML file, light and dark, for screens and for one sheet of paper."""
    return rendered("discreet.client", "label.html", **label_values(document))


def label_values(document: JsonMapping) -> JsonObject:
    """The values of the page: those of the document, and what follows from them."""
    best = document["attacker"]
    right = hundredths(float(best["success"]), best["exact"])
    budget = {name: float(value) for name, value in document["budget"].items()}
    return {
        **document,
        "odds": odds_text(document["unit"], right, exact=best["exact"]),
        "protects": UNITS.get(document["unit"], f"one {document['unit']}"),
        "guarantee": guarantee_text(float(document["epsilon"]), float(document["delta"])),
        "promised": guarantee_text(budget["epsilon"], budget["delta"]),
        "shift": _number(document["mu"]),
        "rho": _number(document["zcdp"]),
        "right": right,
        "dots": _dots(right),
        "bounds": [] if document["audit"] is None else _bounds(document["audit"]),
    }


def _dots(right: int) -> list[tuple[int, int, str]]:
    """A hundred choices in ten rows: right by a guess, right beyond that, wrong."""
    kinds = ["guess"] * GUESSED + ["beyond"] * (right - GUESSED) + ["wrong"] * (100 - right)
    return [(place % 10, place // 10, kind) for place, kind in enumerate(kinds)]


def _number(text: str | None) -> str:
    if text is None:
        return "not known"
    return epsilon_text(float(text), 3)


def _bounds(audit: JsonMapping) -> list[tuple[str, str, str]]:
    """For each attack the mechanism with the smallest difference between claimed and proven ε."""
    by_attack: dict[str, Mapping[str, str]] = {}
    for each in audit["lower_bounds"]:
        kept = by_attack.get(each["attack"])
        if kept is None or _margin(each) < _margin(kept):
            by_attack[each["attack"]] = each
    return [
        (
            f"{attack}, {each['mechanism']}",
            epsilon_text(float(each["claimed"]), 3),
            epsilon_text(float(each["proven"]), 3),
        )
        for attack, each in by_attack.items()
    ]


def _margin(bound: Mapping[str, str]) -> float:
    return float(bound["claimed"]) - float(bound["proven"])


REGISTRY_KEYS = ("name", "region", "published", "description", "sector", "author", "sources")
REGISTRY_DETAILS = ("preprocessing", "justification")
DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def registry_entry(document: JsonMapping, ledger: Ledger, facts: JsonMapping) -> str:
    """An entry, in YAML, for the public registry of deployments of privacy [OpenDP 2026]."""
    known = (*REGISTRY_KEYS, *REGISTRY_DETAILS)
    stated = {one_of("key of facts.registry", key, known): text for key, text in facts.items()}
    name, operator = stated.get("name", document["about"]["experiment"]), document["operator"]
    required = {key: operator[key] for key in ("operator", "purpose")} | {"registry.name": name}
    required["registry.region"] = stated.get("region")
    required["registry.published (a date)"] = DATE.fullmatch(stated.get("published", ""))
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
