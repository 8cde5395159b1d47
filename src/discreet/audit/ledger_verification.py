"""Verification of ledgers: of saved learners, files of releases, signed documents, services."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from discreet.audit import second_accountant
from discreet.batches.saved_state import FORMAT, contents
from discreet.client.billboard import fetch_object, is_address, signed_documents
from discreet.errors import CorruptRelease, InvalidInput
from discreet.privacy.accounting import epsilon
from discreet.privacy.attacker import attacker
from discreet.privacy.events import compose, event_json
from discreet.privacy.ledger import Ledger, disjoint, partitions
from discreet.releases.canonical import read_document
from discreet.releases.released import FILE_FORMAT, Released
from discreet.text import epsilon_text
from discreet.types import JsonMapping, JsonObject

ASSUMED = (
    "One person is in all of these experiments, once as the unit of each of them.",
    "The noise of each experiment is drawn independently; releases of one may influence another.",
    "δs add up: the total holds at the sum of the δs.",
    "This is what was spent so far; an experiment that goes on may spend up to its budget.",
)
"""What the total cost of several experiments assumes."""


class Source(NamedTuple):
    """Source of a ledger: its kind, the document of its ledger, and other facts.

    ``about`` has the experiment, the number of releases and the digests, where they are known.
    """

    kind: str
    ledger: JsonMapping
    about: JsonMapping


def read(source: str) -> Source:
    """Return the kind of a source and the document of its ledger."""
    if is_address(source):
        document = fetch_object(source, "/v1/ledger", "audit")
        return Source("service", document, {})
    if zipfile.is_zipfile(source):
        return Source("saved learner", _saved(source), {})
    if (contents := signed_documents(source)) is not None:
        return Source("chain of signed documents", *_of_chain(contents))
    document = read_document(source)
    if document.get("format") == FILE_FORMAT:
        released = Released.from_document(document)
        return Source("file of releases", *_of_releases(released, document["head"]))
    return Source("ledger", document, {})


def _saved(path: str) -> JsonMapping:
    """Return the ledger in the header of a saved learner, which is not claimed; no row is read."""
    with contents(path), np.load(path, allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
        if header["format"] != FORMAT:
            raise ValueError
        ledger: JsonMapping = header["ledger"]
    return ledger


def _of_chain(contents: list[bytes]) -> tuple[JsonMapping, JsonMapping]:
    """Return the ledger that published documents imply, with the budget of the genesis."""
    from discreet.client.chain import Chain

    # The reader must know the operator's key; here it only links the chain.
    chain = Chain(str(json.loads(contents[0]).get("key"))).extended(contents)
    documents = [json.loads(content) for content in contents]
    # Also releases that a restore has cut off: they were published.
    published = [each for each in documents if each["kind"] == "release"]
    missing = {*range(chain.number)} - {each["number"] for each in documents}
    if missing and _participation(chain.config):
        raise CorruptRelease(
            f"chain must hold every document where costs add up; {len(missing)} are missing. "
            "A restore lost them: ask the operator, or anyone who saved them."
        )
    charged = [(f"document {each['number']}", each["release"]["event"]) for each in published]
    budget = {"epsilon": repr(chain.budget.epsilon), "delta": repr(chain.budget.delta)}
    about = {
        "experiment": str(chain.genesis["experiment"]),
        "releases": len(published),
        "head": chain.links[-1].digest,
        "key": chain.key,
    }
    return _implied(chain.config, str(chain.genesis["unit"]), budget, charged), about


def _of_releases(released: Released, head: str) -> tuple[JsonMapping, JsonMapping]:
    """Return the ledger that releases imply: one charge per batch, with the budget of the plan."""
    plan: Any = released.plan
    if plan["unit"] != "decision" and not _participation(plan):
        raise InvalidInput(
            "file of releases must say how often one user contributes, in batches_per_user and "
            f"records_per_batch of its plan; got the unit {plan['unit']!r} without. Fetch it "
            "again from the operator."
        )
    charged = [(f"batch {item.number}", event_json(item.event)) for item in released.items]
    budget = {name: plan["budget"][name] for name in ("epsilon", "delta")}
    ledger = _implied(plan, plan["unit"], budget, charged)
    return ledger, {"releases": len(released.items), "head": head}


def _implied(
    plan: JsonMapping, unit: str, budget: Mapping[str, str], charged: list[tuple[str, Any]]
) -> JsonObject:
    """Return the ledger of a plan after the events that its batches were ``charged``."""
    control = "control" in plan
    early = (plan["releases"], plan["unit"]) == ("automatic", "decision")  # as the plan says it
    because = disjoint(control=control, on_last_answer=early)
    charges = [
        {"partition": each, "event": event, "unit": unit}
        for part, event in charged
        for each in partitions(part, control)
    ]
    entries = [{"assumption": because, "charges": charges}]
    return {"budget": budget, "unit": unit, **_participation(plan), "entries": entries}


def _participation(plan: JsonMapping) -> JsonObject:
    """Return the participation of users of a plan; empty where the unit is in one batch."""
    if plan.get("batches_per_user") is None:
        return {}
    counts = {"batches": plan["batches_per_user"], "records": plan["records_per_batch"]}
    return {"participation": counts}


def verification_document(source: Source) -> JsonObject:
    """Return the cost of a ledger, recomputed and as it states it, with all disagreements."""
    ledger = source.ledger
    found = second_accountant.recompute(ledger)
    stated = _stated(ledger)
    wrong = _complaints(ledger, found, stated)
    return {
        "kind": source.kind,
        "valid": not wrong,
        "charges": sum(len(group["charges"]) for group in ledger["entries"]),
        "recomputed": asdict(found),
        "ledger": stated,
        "budget": {name: float(value) for name, value in ledger["budget"].items()},
        "errors": wrong,
    }


def checked(source: Source, name: str) -> Ledger:
    """Return the ledger of a source, if independent code confirms its cost and budget."""
    if wrong := verification_document(source)["errors"]:
        raise CorruptRelease(
            f"ledger must agree with its events and its budget; {name} does not: {wrong[0]}. "
            "Run discreet ledger verify on it."
        )
    return Ledger.from_json(source.ledger)


def _stated(document: JsonMapping) -> dict[str, float]:
    """Return the cost that the ledger computes, and the cost stated in its document, if any."""
    try:
        spent = Ledger.from_json(document).spent()
        found = {"epsilon": spent.epsilon, "delta": spent.delta}
        if "spent" in document:
            found |= {f"said_{name}": float(document["spent"][name]) for name in found.copy()}
    except second_accountant.UNREADABLE:
        raise CorruptRelease(second_accountant.NO_LEDGER) from None
    return found


def _complaints(
    ledger: JsonMapping, found: second_accountant.Recomputed, stated: Mapping[str, float]
) -> list[str]:
    """Return sentences about costs that disagree or exceed the budget."""
    wrong, recomputed = [], epsilon_text(found.epsilon, 5)
    for name, who in (("epsilon", "the ledger's own ε"), ("said_epsilon", "the ε that was sent")):
        if name in stated and not second_accountant.agree(stated[name], found.epsilon):
            wrong.append(f"{who} is {epsilon_text(stated[name], 5)}, recomputed {recomputed}")
    for name in ("delta", "said_delta"):
        if name in stated and stated[name] != found.delta:
            wrong.append(f"δ is {stated[name]:g}, recomputed {found.delta:g}")
    budget = float(ledger["budget"]["epsilon"])
    if found.epsilon > budget * (1.0 + second_accountant.AGREE):
        wrong.append(
            f"ε = {recomputed} on {found.partition!r} exceeds the budget {epsilon_text(budget)}"
        )
    return wrong


def total_document(names: Sequence[str]) -> JsonObject:
    """Return the cost of several experiments for one person who is in all of them."""
    sources = [read(name) for name in names]
    ledgers = [checked(source, name) for source, name in zip(sources, names, strict=True)]
    # Two experiments of one plan have equal ledgers; only their releases differ.
    heads = [str(each.about.get("head", name)) for each, name in zip(sources, names, strict=True)]
    _refuse_unlike(names, ledgers, heads)
    spent = [ledger.spent() for ledger in ledgers]
    event = compose(*(ledger.bounding_event() for ledger in ledgers))
    delta = math.fsum(each.delta for each in spent)
    # Privacy: events of different experiments on one person compose like those of one.
    # [docs/privacy/users.md, "Several experiments"]
    best = attacker(event)
    return {
        "unit": ledgers[0].unit,
        "experiments": [
            {
                "source": name,
                "epsilon": each.epsilon,
                "delta": each.delta,
                "neighbours": each.relation,
                "budget": asdict(ledger.budget),
            }
            for name, ledger, each in zip(names, ledgers, spent, strict=True)
        ],
        "epsilon": epsilon(event, delta),
        "delta": delta,
        "sum_of_epsilons": math.fsum(each.epsilon for each in spent),
        "mu": best.mu,
        "zcdp": best.zcdp,
        "attacker": best.success,
        "assumed": list(ASSUMED),
        "sentence": best.sentence(ledgers[0].unit),
    }


def _refuse_unlike(sources: Sequence[str], ledgers: list[Ledger], heads: list[str]) -> None:
    """Refuse ledgers that cannot be added: another unit, or the same one twice."""
    first = ledgers[0]
    for place, (name, ledger) in enumerate(zip(sources, ledgers, strict=True)):
        if ledger.unit != first.unit:
            raise InvalidInput(
                f"ledgers must have one unit to be added; got {first.unit!r} in {sources[0]} and "
                f"{ledger.unit!r} in {name}. ε of a decision and ε of a user promise different "
                "things: add those of one unit, and see discreet plan --records-per-person for "
                "what a decision's ε means for a person."
            )
        if heads[place] in heads[:place]:
            raise InvalidInput(
                f"ledgers must be of different experiments; {name} is the same as one before it. "
                "Name each experiment once."
            )
