"""``discreet release show|verify|export``: read published releases."""

from __future__ import annotations

import math

from discreet.cli import command_line as cli
from discreet.client.billboard import read_released
from discreet.client.recomputation import recompute
from discreet.errors import CorruptRelease
from discreet.plan.config import config_text
from discreet.releases.quality import quality
from discreet.text import epsilon_text, guarantee_text, listed

SOURCE = cli.flag("file SOURCE", "releases, signed documents, or the address of a service")


@cli.command("release verify", SOURCE, cli.IMPORT)
def verify(args: cli.Args) -> cli.Answer:
    """Verify every digest, link, predictor and matrix; exit code 1 if one is wrong."""
    try:
        released = read_released(args.file)
        recomputed = recompute(released)
    except CorruptRelease as error:
        document = {"file": args.file, "valid": False, "error": str(error)}
        return cli.Answer(document, f"not valid: {error}", code=1)
    head = released.latest.digest if released.latest else None
    count = len(released.items)
    text = f"valid: {count} release{'s' * (count != 1)}, every digest and link holds"
    if recomputed:
        text += "; recomputed every predictor and matrix from the published statistics"
    parts = [{"number": number, "parts": each} for number, each in recomputed.items()]
    document = {"file": args.file, "valid": True, "releases": count, "head": head}
    return cli.Answer(document | {"recomputed": parts}, [text, f"head {head}"] if head else text)


@cli.command("release export", SOURCE, cli.flag("--onnx FILE", "where to write", required=True))
def export(args: cli.Args) -> cli.Answer:
    """Export the newest predictor for other runtimes, after verifying the chain."""
    from discreet.adapters.onnx_model import onnx_model

    released = read_released(args.file)
    cli.write(args.onnx, onnx_model(released).SerializeToString())
    assert released.latest is not None
    number, digest = released.latest.number, released.latest.digest
    document = {"file": args.onnx, "release": number, "digest": digest}
    return cli.Answer(document, f"wrote {args.onnx}: release {number}, digest {digest[:12]}")


@cli.command("release show", SOURCE)
def show(args: cli.Args) -> cli.Answer:
    """Show the plan and the releases of a file, after verifying them."""
    released = read_released(args.file)
    document = {"file": args.file, **released.summary()}
    outcomes = {each.number: each.text for each in quality(released)}
    plan, budget, releases = document["plan"], document["plan"]["budget"], document["releases"]
    rows = [
        [
            each["number"],
            each["records"],
            epsilon_text(each["epsilon"]),
            f"{each['delta']:g}" if math.isfinite(each["epsilon"]) else None,
            each["event"]["kind"],
            outcomes.get(each["number"]),
            each["digest"][:12],
        ]
        for each in releases
    ]
    header = ["release", "records", "ε", "δ", "event", f"mean {released.outcome.word}", "digest"]
    planned = guarantee_text(float(budget["epsilon"]), float(budget["delta"]))
    named = "" if released.actions is None else f" ({listed(released.actions)})"
    reasons = [each["event"].get("reason", "") for each in releases if math.isinf(each["epsilon"])]
    lines = [
        f"{len(rows)} releases from {document['rounds']:,} rounds; "
        f"{plan['n_actions']} actions{named}",
        f"{config_text(plan['policy'])} with {config_text(plan['oracle'])}",
        *(f"NOT PRIVATE: {reason}" for reason in dict.fromkeys(reasons)),
        f"budget of the plan: {planned} for one {plan['unit']}",
        *(f"assumes {sentence}" for sentence in document["assumptions"]),
        *(["", *cli.table(header, rows)] if rows else []),
    ]
    return cli.Answer(document, lines)
