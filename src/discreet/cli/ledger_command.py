"""``discreet ledger verify``: what was spent, computed a second time by independent code."""

from __future__ import annotations

import argparse
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.answer import Answer
from discreet.cli.parser import Commands, command
from discreet.errors import CorruptRelease, InvalidInput
from discreet.formatting import epsilon_text, guarantee_text
from discreet.privacy.events import to_json
from discreet.privacy.ledger import DISJOINT, Ledger
from discreet.releases.canonical import read_document
from discreet.releases.released import FILE_FORMAT, Released

if TYPE_CHECKING:
    from discreet.audit.second_accountant import Recomputed

SECONDS = 10
LARGEST = 2**26
"""Bytes that are read from a service."""
TEXT = """\
A ledger is recomputed from its events by code of its own, through dp_accounting, and compared with
what the ledger says and with its budget. FILE is a saved learner, a file of releases, a file with
one signed document a line, or the JSON of a ledger; URL is a service's /v1/ledger. A service that
asks for a key finds it in the environment variable DISCREET_API_KEY. Nothing is claimed or changed.

examples:
  discreet ledger verify released.json
  discreet ledger verify documents.jsonl
  discreet ledger verify https://bandit.example.org/v1/ledger
"""


def add(commands: Commands) -> None:
    """``verify`` takes a file or an address."""
    ledger = command(commands, "ledger", "check what a run or a service has spent")
    kinds = ledger.add_subparsers(dest="kind", metavar="verify", required=True)
    parser = command(kinds, "verify", "recompute ε and δ independently", verify, TEXT)
    parser.add_argument("source", metavar="FILE|URL", help="a file, or the address of a service")


def verify(args: argparse.Namespace) -> Answer:
    """ε and δ of a run or a service from its events; exit code 1 if anything disagrees."""
    from discreet.audit.second_accountant import recompute

    try:
        kind, ledger = _read(args.source)
        found = recompute(ledger)
        own = _own(ledger)
    except CorruptRelease as error:
        document = {"source": args.source, "valid": False, "error": str(error)}
        return Answer(document, f"not valid: {error}", code=1)
    wrong = _complaints(ledger, found, own)
    charges = sum(len(group["charges"]) for group in ledger["entries"])
    document = {
        "source": args.source,
        "kind": kind,
        "valid": not wrong,
        "charges": charges,
        "recomputed": {
            "epsilon": found.epsilon,
            "delta": found.delta,
            "partition": found.partition,
        },
        "ledger": own,
        "budget": {name: float(value) for name, value in ledger["budget"].items()},
        "errors": wrong,
    }
    return Answer(document, "\n".join(_lines(document)), code=1 if wrong else 0)


def _read(source: str) -> tuple[str, Mapping[str, Any]]:
    """What the source is, and the document of its ledger."""
    if source.startswith(("http://", "https://")):
        return "service", _fetch(source)
    if zipfile.is_zipfile(source):
        return "saved learner", _saved(source)
    if (contents := _signed(source)) is not None:
        return "chain of signed documents", _of_chain(contents)
    document = read_document(source)
    if document.get("format") == FILE_FORMAT:
        return "file of releases", _of_releases(Released.from_document(document))
    return "ledger", document


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


def _of_chain(contents: list[bytes]) -> Mapping[str, Any]:
    """The ledger that published documents imply, against the whole budget of the genesis."""
    from discreet.billboard.chain import ADDS_UP, Chain
    from discreet.service.storage.document_table import DISJOINT_USERS, EVERY_BATCH

    # Whether the key is the operator's, the reader must know; here it holds the chain together.
    chain = Chain(str(json.loads(contents[0]).get("key"))).extended(contents)
    unit = str(chain.genesis["unit"])
    documents = [json.loads(content) for content in contents]
    # Also releases that a restore has cut off: they were published.
    published = [each for each in documents if each["kind"] == "release"]
    missing = {*range(chain.number)} - {each["number"] for each in documents}
    if missing and unit == ADDS_UP:
        raise CorruptRelease(
            f"chain must hold every document where costs add up; {len(missing)} are missing. "
            "A restore lost them: ask the operator, or whoever saw them."
        )
    charges = [
        {
            "partition": "every batch" if unit == ADDS_UP else f"document {each['number']}",
            "event": each["release"]["event"],
            "unit": unit,
        }
        for each in published
    ]
    because = {"user_per_batch": DISJOINT_USERS, ADDS_UP: EVERY_BATCH}.get(unit, DISJOINT)
    budget = {"epsilon": repr(chain.budget.epsilon), "delta": repr(chain.budget.delta)}
    return {
        "budget": budget,
        "unit": unit,
        "entries": [{"assumption": because, "charges": charges}],
    }


def _of_releases(released: Released) -> Mapping[str, Any]:
    """The ledger that releases imply: one charge per batch against the budget of the plan."""
    from discreet.billboard.chain import ADDS_UP

    plan: Any = released.plan
    if plan["unit"] == ADDS_UP:
        raise InvalidInput(
            "file of releases must be of batches whose costs do not add up; those of a user do, "
            "and the file does not say how many there may be. Verify the signed documents instead."
        )
    charges = [
        {"partition": f"batch {item.number}", "event": to_json(item.event), "unit": plan["unit"]}
        for item in released.items
    ]
    return {
        "budget": {name: plan["budget"][name] for name in ("epsilon", "delta")},
        "unit": plan["unit"],
        "entries": [{"assumption": DISJOINT, "charges": charges}],
    }


def _own(document: Mapping[str, Any]) -> dict[str, float]:
    """What the ledger itself says was spent, and what the answer says, if it says anything."""
    try:
        spent = Ledger.from_json(document).spent()
        own = {"epsilon": spent.epsilon, "delta": spent.delta}
        if "spent" in document:
            own |= {f"said_{name}": float(document["spent"][name]) for name in own.copy()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CorruptRelease(
            "ledger must be a document that discreet wrote; a part is missing or of another kind. "
            "Fetch it again."
        ) from None
    return own


def _complaints(
    ledger: Mapping[str, Any], found: Recomputed, own: Mapping[str, float]
) -> list[str]:
    from discreet.audit.second_accountant import AGREE, agree

    wrong, recomputed = [], epsilon_text(found.epsilon, 5)
    for name, told in (("epsilon", "the ledger's own ε"), ("said_epsilon", "the ε that was sent")):
        if name in own and not agree(own[name], found.epsilon):
            wrong.append(f"{told} is {epsilon_text(own[name], 5)}, recomputed {recomputed}")
    for name in ("delta", "said_delta"):
        if name in own and own[name] != found.delta:
            wrong.append(f"δ is {own[name]:g}, recomputed {found.delta:g}")
    budget = float(ledger["budget"]["epsilon"])
    if found.epsilon > budget * (1.0 + AGREE):
        wrong.append(
            f"ε = {recomputed} on {found.partition!r} exceeds the budget {epsilon_text(budget)}"
        )
    return wrong


def _lines(document: dict[str, Any]) -> list[str]:
    found, budget = document["recomputed"], document["budget"]
    spent = guarantee_text(found["epsilon"], found["delta"])
    lines = [
        f"{document['kind']}: {document['charges']} charges, recomputed with dp_accounting: {spent}"
    ]
    if document["charges"]:
        lines.append(f"the largest is on {found['partition']!r}")
    if math.isinf(found["epsilon"]):
        lines.append("NOT PRIVATE: a release has no noise, or noise that somebody can reproduce")
    lines.append(f"budget: {guarantee_text(budget['epsilon'], budget['delta'])}")
    if document["errors"]:
        return [*lines, *(f"not valid: {each}" for each in document["errors"])]
    return [*lines, "valid: the ledger says the same"]
