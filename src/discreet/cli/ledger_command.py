"""``discreet ledger verify|add``: recompute spent budgets, and add several experiments."""

from __future__ import annotations

import math

from discreet.audit.ledger_verification import read, total_document, verification_document
from discreet.cli import command_line as cli
from discreet.errors import CorruptRelease, InvalidInput
from discreet.text import guarantee_text


@cli.command("ledger verify", cli.flag("source FILE|URL", "a file, or the address of a service"))
def verify(args: cli.Args) -> cli.Answer:
    """Recompute ε and δ from events; exit code 1 if anything disagrees."""
    try:
        document = {"source": args.source, **verification_document(read(args.source))}
    except CorruptRelease as error:
        document = {"source": args.source, "valid": False, "error": str(error)}
        return cli.Answer(document, f"not valid: {error}", code=1)
    found, budget = document["recomputed"], document["budget"]
    spent = guarantee_text(found["epsilon"], found["delta"])
    lines = [
        f"{document['kind']}: {document['charges']} charges, recomputed with dp_accounting: {spent}"
    ]
    if document["charges"]:
        lines.append(f"the largest is on {found['partition']!r}")
    if math.isinf(found["epsilon"]):
        lines.append("NOT PRIVATE: a release has no noise, or noise that can be reproduced")
    lines.append(f"budget: {guarantee_text(budget['epsilon'], budget['delta'])}")
    lines += [f"not valid: {each}" for each in document["errors"]]
    lines += [] if document["errors"] else ["valid: the ledger says the same"]
    return cli.Answer(document, lines, code=0 if document["valid"] else 1)


@cli.command("ledger add", cli.flag("sources FILE|URL", "one for each experiment", nargs="+"))
def added(args: cli.Args) -> cli.Answer:
    """Report one person's cost over several experiments, and its assumptions."""
    if len(args.sources) < 2:
        raise InvalidInput(
            "ledgers must be two or more to be added; got one. Name one for each experiment."
        )
    document = total_document(args.sources)
    sentence = document.pop("sentence")
    lines = [
        f"{each['source']}: {guarantee_text(each['epsilon'], each['delta'])} ({each['neighbours']})"
        for each in document["experiments"]
    ]
    lines += [
        f"together, for one {document['unit']} in each: "
        f"{guarantee_text(document['epsilon'], document['delta'])}",
        sentence,
        *(f"assumed: {each}" for each in document["assumed"]),
    ]
    return cli.Answer(document, lines)
