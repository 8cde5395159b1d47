"""``discreet lift``: compare the policy with the control."""

from __future__ import annotations

import argparse
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.command_line import Answer, Commands, command, table, write
from discreet.errors import InvalidInput
from discreet.text import about
from discreet.types import JsonObject

if TYPE_CHECKING:
    from discreet.design.outcome import Outcome

MEANS = ("policy", "control")
WIDTHS = ("half_width_any_time", "half_width_fixed_time")
FIGURES = (".png", ".svg", ".pdf")

TEXT = """\
SOURCE is what released.save() wrote, a file of signed documents, or the address of a service (with
a key in DISCREET_API_KEY), of a plan with a control share. The any-time interval is valid however
often it is computed. The other interval is valid at one time that was fixed in advance. Both cover
sampling error and privacy noise, and spend no budget. docs/lift.md explains them.

examples:
  discreet lift released.json
  discreet lift released.json --plot lift.png
  discreet lift http://127.0.0.1:8000
"""


def add(commands: Commands) -> None:
    """Add flags for the source, the confidence and the figure."""
    parser = command(commands, "lift", "compare the policy with the control", compare, TEXT)
    parser.add_argument("source", metavar="SOURCE", help="releases of a plan with a control share")
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="C",
        help="confidence of the intervals (default: 0.95)",
    )
    parser.add_argument("--plot", metavar="FILE", help="also write a figure: .png, .svg or .pdf")


def compare(args: argparse.Namespace) -> Answer:
    """Report the lift of each release and of all together."""
    from discreet.client.billboard import read_released
    from discreet.releases.guardrails import guardrails
    from discreet.releases.lift import lift

    if args.plot and Path(args.plot).suffix not in FIGURES:
        raise InvalidInput(
            f"plot must be a file {', '.join(FIGURES)}; got {args.plot!r}. Write --plot lift.png."
        )
    released = read_released(args.source)
    found = lift(released, confidence=args.confidence)
    rails = guardrails(released, confidence=args.confidence)
    document = found.to_json()
    if rails:
        document["guardrails"] = [each.to_json() for each in rails]
    shown = _lines(document["batches"], found.outcome)
    known = [found.relative_text] if found.pooled.known else []
    lines = [*shown, "", found.text, *known, f"So {found.verdict}."]
    if found.pooled.helps is None and found.more_decisions is not None:
        until = "the interval is half as wide" if known else "the lift is known, if all answer"
        lines.append(f"About {about(found.more_decisions)} more decisions until {until}.")
    lines.append(f"Assumed: {found.assumes}.")
    lines += [each.text for each in rails]
    if args.plot:
        picture = BytesIO()
        found.plot().figure.savefig(picture, format=Path(args.plot).suffix[1:])
        write(args.plot, picture.getvalue())
        lines.append(f"wrote {args.plot}")
    return Answer(document, "\n".join(lines))


def _lines(rows: list[JsonObject], outcome: Outcome) -> list[str]:
    word = outcome.word
    header = ["release", "records", f"policy, {word}", "control", "lift so far", "any time", "once"]
    shown = [
        [
            str(row["number"]),
            f"{row['records']:,}",
            *("–" if row[name] is None else outcome.figure(row[name]) for name in MEANS),
            "–" if row["lift_so_far"] is None else outcome.figure(row["lift_so_far"], "+"),
            *("–" if row[name] is None else f"± {outcome.figure(row[name])}" for name in WIDTHS),
        ]
        for row in rows
    ]
    return table(header, shown)
