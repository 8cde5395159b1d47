"""``discreet release show|verify|export``: read published releases."""

from __future__ import annotations

import argparse
import math

from discreet.cli.command_line import Answer, Commands, command, table, write
from discreet.cli.flags import import_flag
from discreet.errors import CorruptRelease
from discreet.plan.config import config_text
from discreet.releases.quality import quality, released_document
from discreet.releases.released import Released
from discreet.text import epsilon_text, guarantee_text, listed
from discreet.types import JsonObject


def add(commands: Commands) -> None:
    """Add commands that take a file, or the address of a service."""
    release = command(commands, "release", "show, verify or export a file of releases")
    kinds = release.add_subparsers(dest="kind", metavar="show|verify|export", required=True)
    for call, summary in (
        (show, "show the plan, and each release with its cost"),
        (export, "write the newest predictor as an ONNX model"),
        (verify, "check digests and links, recompute predictors; exit code 1 if one fails"),
    ):
        name = call.__name__
        example = f"example:\n  discreet release {name} demo/released.json"
        example += " --onnx model.onnx" * (call is export)
        kind = command(kinds, name, summary, call, example)
        kind.add_argument(
            "file",
            metavar="SOURCE",
            help="what released.save() wrote, a file of signed documents (one per line), or the "
            "address of a service (with a key in DISCREET_API_KEY)",
        )
        if call is export:
            kind.add_argument("--onnx", required=True, metavar="FILE", help="where to write")
    import_flag(kind)


def verify(args: argparse.Namespace) -> Answer:
    """Verify every digest, link, predictor and matrix; exit code 1 if one is wrong."""
    from discreet.client.billboard import read_released
    from discreet.client.recomputation import recompute

    try:
        released = read_released(args.file)
        recomputed = recompute(released)
    except CorruptRelease as error:
        document = {"file": args.file, "valid": False, "error": str(error)}
        return Answer(document, f"not valid: {error}", code=1)
    head = released.latest.digest if released.latest else None
    count = len(released.items)
    text = f"valid: {count} release{'s' * (count != 1)}, every digest and link holds"
    if recomputed:
        text += "; recomputed every predictor and matrix from the published statistics"
    document = {"file": args.file, "valid": True, "releases": count, "head": head}
    document["recomputed"] = [
        {"number": number, "parts": parts} for number, parts in recomputed.items()
    ]
    return Answer(document, text + (f"\nhead {head}" if head else ""))


def export(args: argparse.Namespace) -> Answer:
    """Export the newest predictor for other runtimes, after verifying the chain."""
    from discreet.adapters.onnx_model import onnx_model
    from discreet.client.billboard import read_released

    released = read_released(args.file)
    write(args.onnx, onnx_model(released).SerializeToString())
    assert released.latest is not None
    number, digest = released.latest.number, released.latest.digest
    document = {"file": args.onnx, "release": number, "digest": digest}
    return Answer(document, f"wrote {args.onnx}: release {number}, digest {digest[:12]}")


def show(args: argparse.Namespace) -> Answer:
    """Show the plan and the releases of a file, after verifying them."""
    from discreet.client.billboard import read_released

    released = read_released(args.file)
    document = {"file": args.file, **released_document(released)}
    outcomes = {each.number: each.text for each in quality(released)}
    return Answer(document, "\n".join(_lines(document, released, outcomes)))


def _lines(document: JsonObject, released: Released, outcomes: dict[int, str]) -> list[str]:
    plan, budget = document["plan"], document["plan"]["budget"]
    rows = [
        [
            str(each["number"]),
            f"{each['records']:,}",
            epsilon_text(each["epsilon"]),
            f"{each['delta']:g}" if math.isfinite(each["epsilon"]) else "–",
            each["event"]["kind"],
            outcomes.get(each["number"], "–"),
            each["digest"][:12],
        ]
        for each in document["releases"]
    ]
    header = ["release", "records", "ε", "δ", "event", f"mean {released.outcome.word}", "digest"]
    planned = guarantee_text(float(budget["epsilon"]), float(budget["delta"]))
    named = "" if released.actions is None else f" ({listed(released.actions)})"
    return [
        f"{len(rows)} releases from {document['rounds']:,} rounds; "
        f"{plan['n_actions']} actions{named}",
        f"{config_text(plan['policy'])} with {config_text(plan['oracle'])}",
        *_not_private(document["releases"]),
        f"budget of the plan: {planned} for one {plan['unit']}",
        *(f"assumes {sentence}" for sentence in document["assumptions"]),
        *(["", *table(header, rows)] if rows else []),
    ]


def _not_private(releases: list[JsonObject]) -> list[str]:
    """Return a clear line where a release has no guarantee."""
    reasons = [each["event"].get("reason", "") for each in releases if math.isinf(each["epsilon"])]
    return [f"NOT PRIVATE: {reason}" for reason in dict.fromkeys(reasons)]
