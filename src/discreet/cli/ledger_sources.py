"""Where a ledger is read from: saved learners, files of releases, signed documents, services."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import CorruptRelease, InvalidInput
from discreet.formatting import epsilon_text
from discreet.privacy.events import to_json
from discreet.privacy.ledger import DISJOINT, DISJOINT_PARTS, Ledger, partitions
from discreet.releases.canonical import read_document
from discreet.releases.released import FILE_FORMAT, Released

if TYPE_CHECKING:
    from discreet.audit.second_accountant import Recomputed

SECONDS = 10
LARGEST = 2**26
"""Bytes that are read from a service."""


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
    if source.startswith(("http://", "https://")):
        return Source("service", _fetch(source), {})
    if zipfile.is_zipfile(source):
        return Source("saved learner", _saved(source), {})
    if (contents := _signed(source)) is not None:
        return Source("chain of signed documents", *_of_chain(contents))
    document = read_document(source)
    if document.get("format") == FILE_FORMAT:
        released = Released.from_document(document)
        return Source("file of releases", *_of_releases(released, document["head"]))
    return Source("ledger", document, {})


def _fetch(url: str) -> Mapping[str, Any]:
    """The JSON object at an address; a key is sent if the environment holds one."""
    from urllib.error import URLError
    from urllib.parse import urlsplit
    from urllib.request import Request, urlopen

    if urlsplit(url).path in ("", "/"):  # the service itself was named
        url = f"{url.rstrip('/')}/v1/ledger"
    key = os.environ.get("DISCREET_API_KEY")
    request = Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urlopen(request, timeout=SECONDS) as answer:
            document = json.loads(answer.read(LARGEST))
    except (URLError, TimeoutError, OSError) as error:
        told = getattr(error, "code", None) or getattr(error, "reason", None) or error
        raise InvalidInput(
            f"service must answer with its ledger; {url} does not ({told}). Check the address, "
            "and DISCREET_API_KEY for a key with the scope audit."
        ) from None
    except ValueError:
        raise CorruptRelease(f"ledger must be JSON; {url} sends none. Check the address.") from None
    if not isinstance(document, dict):
        raise CorruptRelease(f"ledger must be a JSON object; {url} sends none. Check the address.")
    return document


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


def _signed(path: str) -> list[bytes] | None:
    """The published documents of a file, one per line; None where it holds something else."""
    from discreet.billboard.documents import FORMAT

    try:
        contents = Path(path).read_bytes().splitlines()
        known = bool(contents) and json.loads(contents[0]).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return None  # whoever reads it next says what is wrong
    return contents if known else None


def _of_chain(contents: list[bytes]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The ledger that published documents imply, against the whole budget of the genesis."""
    from discreet.billboard.chain import Chain

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
    because = DISJOINT_PARTS if "control" in chain.config else DISJOINT
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
        "entries": [
            {"assumption": DISJOINT_PARTS if "control" in plan else DISJOINT, "charges": charges}
        ],
    }
    return ledger, {"releases": len(released.items), "head": head}


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
