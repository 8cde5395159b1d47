"""``discreet ledger verify|add``: what was spent, recomputed; and over several experiments."""

from __future__ import annotations

import argparse
import math
from typing import Any

from discreet.cli.answer import Answer
from discreet.cli.ledger_sources import checked, complaints, own_cost, read
from discreet.cli.parser import Commands, command
from discreet.errors import CorruptRelease, InvalidInput
from discreet.formatting import guarantee_text
from discreet.privacy.accounting import epsilon
from discreet.privacy.attacker import attacker
from discreet.privacy.events import compose
from discreet.privacy.ledger import Ledger

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


ADD_TEXT = """\
What several experiments cost somebody who is in all of them. Each source is one that verify takes,
and is verified first. Costs compose at the sum of the δs; the units must be the same.

examples:
  discreet ledger add spring/released.json autumn/released.json
  discreet ledger add documents.jsonl https://bandit.example.org/v1/ledger
"""
ASSUMED = (
    "One person is in all of these experiments, once as the unit of each of them.",
    "The noise of each experiment is drawn independently; releases of one may influence another.",
    "δs add up: the total holds at the sum of the δs.",
    "This is what was spent so far; an experiment that goes on may spend up to its budget.",
)


def add(commands: Commands) -> None:
    """``verify`` takes a file or an address, ``add`` two or more."""
    ledger = command(commands, "ledger", "check what a run or a service has spent")
    kinds = ledger.add_subparsers(dest="kind", metavar="verify|add", required=True)
    parser = command(kinds, "verify", "recompute ε and δ independently", verify, TEXT)
    parser.add_argument("source", metavar="FILE|URL", help="a file, or the address of a service")
    parser = command(kinds, "add", "what several experiments cost one person", added, ADD_TEXT)
    parser.add_argument("sources", nargs="+", metavar="FILE|URL", help="one for each experiment")


def verify(args: argparse.Namespace) -> Answer:
    """ε and δ of a run or a service from its events; exit code 1 if anything disagrees."""
    from discreet.audit.second_accountant import recompute

    try:
        source = read(args.source)
        kind, ledger = source.kind, source.ledger
        found = recompute(ledger)
        told = own_cost(ledger)
    except CorruptRelease as error:
        document = {"source": args.source, "valid": False, "error": str(error)}
        return Answer(document, f"not valid: {error}", code=1)
    wrong = complaints(ledger, found, told)
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
        "ledger": told,
        "budget": {name: float(value) for name, value in ledger["budget"].items()},
        "errors": wrong,
    }
    return Answer(document, "\n".join(_lines(document)), code=1 if wrong else 0)


def added(args: argparse.Namespace) -> Answer:
    """One person's cost over several experiments, and what that takes for granted."""
    if len(args.sources) < 2:
        raise InvalidInput(
            "ledgers must be two or more to be added; got one. Name one for each experiment."
        )
    sources = [read(name) for name in args.sources]
    pairs = zip(sources, args.sources, strict=True)
    ledgers = [checked(source, name) for source, name in pairs]
    # Two experiments of one plan have equal ledgers; only the releases tell them apart.
    heads = [
        str(each.about.get("head", name)) for each, name in zip(sources, args.sources, strict=True)
    ]
    _refuse_unlike(args.sources, ledgers, heads)
    spent = [ledger.spent() for ledger in ledgers]
    event = compose(*(ledger.bounding_event() for ledger in ledgers))
    delta = math.fsum(each.delta for each in spent)
    # Privacy: events of different experiments on one person compose like those of one.
    # [docs/privacy/users.md, "Several experiments"]
    total, best = epsilon(event, delta), attacker(event)
    document: dict[str, Any] = {
        "unit": ledgers[0].unit,
        "experiments": [
            {
                "source": name,
                "epsilon": each.epsilon,
                "delta": each.delta,
                "neighbours": each.relation,
                "budget": {"epsilon": ledger.budget.epsilon, "delta": ledger.budget.delta},
            }
            for name, ledger, each in zip(args.sources, ledgers, spent, strict=True)
        ],
        "epsilon": total,
        "delta": delta,
        "sum_of_epsilons": math.fsum(each.epsilon for each in spent),
        "mu": best.mu,
        "zcdp": best.zcdp,
        "attacker": best.success,
        "assumed": list(ASSUMED),
    }
    lines = [
        f"{each['source']}: {guarantee_text(each['epsilon'], each['delta'])} ({each['neighbours']})"
        for each in document["experiments"]
    ]
    lines += [
        f"together, for one {document['unit']} in each: {guarantee_text(total, delta)}",
        best.sentence(document["unit"]),
        *(f"assumed: {each}" for each in ASSUMED),
    ]
    return Answer(document, "\n".join(lines))


def _refuse_unlike(sources: list[str], ledgers: list[Ledger], heads: list[str]) -> None:
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
