"""Where a ledger is read from: saved learners, files of releases, signed documents, services."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.service_documents import (
    address_of,
    fetch_object,
    is_address,
    signed_documents,
)
from discreet.errors import CorruptRelease, InvalidInput
from discreet.formatting import epsilon_text
from discreet.privacy.events import to_json
from discreet.privacy.ledger import Ledger, disjoint, partitions
from discreet.releases.canonical import read_document
from discreet.releases.released import FILE_FORMAT, Released

if TYPE_CHECKING:
    from discreet.audit.second_accountant import Recomputed


@dataclass(frozen=True)
class Source:
    """What was read: its kind, its ledger's document, and what else it tells.

    ``about`` has the experiment, the number of releases and the digests, where they are known.
    """

    kind: str
    ledger: Mapping[str, Any]
    about: Mapping[str, Any]


def read(source: str) -> Source:
    """What the source is, with the document of its ledger."""
    if is_address(source):
        document = fetch_object(address_of(source, "/v1/ledger"), "ledger", "audit")
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


def _saved(path: str) -> Mapping[str, Any]:
    """The ledger in the header of a saved learner, which stays unclaimed; no row is read."""
    import numpy as np

    from discreet.rows.saved_state import FORMAT

    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
        if header["format"] != FORMAT:
            raise ValueError
        ledger: Mapping[str, Any] = header["ledger"]
    except (LookupError, TypeError, ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise CorruptRelease(
            f"saved state must be a file that Learner.save wrote; {Path(path).name} is not, or it "
            "was altered. Fetch it again."
        ) from None
    return ledger


def _of_chain(contents: list[bytes]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The ledger that published documents imply, against the whole budget of the genesis."""
    from discreet.client.chain import Chain

    # Whether the key is the operator's, the reader must know; here it holds the chain together.
    chain = Chain(str(json.loads(contents[0]).get("key"))).extended(contents)
    unit = str(chain.genesis["unit"])
    documents = [json.loads(content) for content in contents]
    # Also releases that a restore has cut off: they were published.
    published = [each for each in documents if each["kind"] == "release"]
    missing = {*range(chain.number)} - {each["number"] for each in documents}
    often = _participation(chain.config)
    if missing and often:
        raise CorruptRelease(
            f"chain must hold every document where costs add up; {len(missing)} are missing. "
            "A restore lost them: ask the operator, or whoever saw them."
        )
    charges = [
        {
            "partition": part,
            "event": each["release"]["event"],
            "unit": unit,
        }
        for each in published
        for part in partitions(f"document {each['number']}", "control" in chain.config)
    ]
    because = _because(chain.config)
    budget = {"epsilon": repr(chain.budget.epsilon), "delta": repr(chain.budget.delta)}
    ledger = {
        "budget": budget,
        "unit": unit,
        **often,
        "entries": [{"assumption": because, "charges": charges}],
    }
    about = {
        "experiment": str(chain.genesis["experiment"]),
        "releases": len(published),
        "head": chain.links[-1].digest,
        "key": chain.key,
    }
    return ledger, about


def _of_releases(released: Released, head: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The ledger that releases imply: one charge per batch against the budget of the plan."""
    plan: Any = released.plan
    often = _participation(plan)
    if plan["unit"] != "decision" and not often:
        raise InvalidInput(
            "file of releases must say how often one user contributes, in batches_per_user and "
            f"records_per_batch of its plan; got the unit {plan['unit']!r} without. An older "
            "version wrote it: verify it with that version."
        )
    charges = [
        {"partition": part, "event": to_json(item.event), "unit": plan["unit"]}
        for item in released.items
        for part in partitions(f"batch {item.number}", "control" in plan)
    ]
    ledger = {
        "budget": {name: plan["budget"][name] for name in ("epsilon", "delta")},
        "unit": plan["unit"],
        **often,
        "entries": [{"assumption": _because(plan), "charges": charges}],
    }
    return ledger, {"releases": len(released.items), "head": head}


def _because(plan: Mapping[str, Any]) -> str:
    """Why the batches of a plan are disjoint."""
    early = (plan["releases"], plan["unit"]) == ("automatic", "decision")  # as the plan says it
    return disjoint(control="control" in plan, on_last_answer=early)


def _participation(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger's words for the users of a plan; none where the unit is in one batch."""
    if plan.get("batches_per_user") is None:
        return {}
    counts = {"batches": plan["batches_per_user"], "records": plan["records_per_batch"]}
    return {"participation": counts}


def own_cost(document: Mapping[str, Any]) -> dict[str, float]:
    """What the ledger itself says was spent, and what the answer says, if it says anything."""
    try:
        spent = Ledger.from_json(document).spent()
        found = {"epsilon": spent.epsilon, "delta": spent.delta}
        if "spent" in document:
            found |= {f"said_{name}": float(document["spent"][name]) for name in found.copy()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CorruptRelease(
            "ledger must be a document that discreet wrote; a part is missing or of another kind. "
            "Fetch it again."
        ) from None
    return found


def checked(source: Source, name: str) -> Ledger:
    """The ledger of a source, if its cost is what independent code computes, within its budget."""
    from discreet.audit.second_accountant import recompute

    wrong = complaints(source.ledger, recompute(source.ledger), own_cost(source.ledger))
    if wrong:
        raise CorruptRelease(
            f"ledger must agree with its events and its budget; {name} does not: {wrong[0]}. "
            "Run discreet ledger verify on it."
        )
    return Ledger.from_json(source.ledger)


def complaints(
    ledger: Mapping[str, Any], found: Recomputed, told: Mapping[str, float]
) -> list[str]:
    from discreet.audit.second_accountant import AGREE, agree

    wrong, recomputed = [], epsilon_text(found.epsilon, 5)
    for name, who in (("epsilon", "the ledger's own ε"), ("said_epsilon", "the ε that was sent")):
        if name in told and not agree(told[name], found.epsilon):
            wrong.append(f"{who} is {epsilon_text(told[name], 5)}, recomputed {recomputed}")
    for name in ("delta", "said_delta"):
        if name in told and told[name] != found.delta:
            wrong.append(f"δ is {told[name]:g}, recomputed {found.delta:g}")
    budget = float(ledger["budget"]["epsilon"])
    if found.epsilon > budget * (1.0 + AGREE):
        wrong.append(
            f"ε = {recomputed} on {found.partition!r} exceeds the budget {epsilon_text(budget)}"
        )
    return wrong
