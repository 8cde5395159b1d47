"""``discreet lift``: compare the policy with the control."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from discreet.cli import command_line as cli
from discreet.client.billboard import read_released
from discreet.errors import InvalidInput
from discreet.releases.guardrails import guardrails
from discreet.releases.lift import lift
from discreet.text import about

FIGURES = (".png", ".svg", ".pdf")


@cli.command(
    "lift",
    cli.flag("source SOURCE", "releases of a plan with a control share"),
    cli.flag("--confidence C", "confidence of the intervals (default: 0.95)", 0.95),
    cli.flag("--plot FILE", "also write a figure: .png, .svg or .pdf"),
)
def compare(args: cli.Args) -> cli.Answer:
    """Report the lift of each release and of all together."""
    if args.plot and Path(args.plot).suffix not in FIGURES:
        raise InvalidInput(
            f"plot must be a file {', '.join(FIGURES)}; got {args.plot!r}. Write --plot lift.png."
        )
    released = read_released(args.source)
    found = lift(released, confidence=args.confidence)
    rails = guardrails(released, confidence=args.confidence)
    document, outcome = found.to_json(), found.outcome
    if rails:
        document["guardrails"] = [each.to_json() for each in rails]
    header = ["release", "records", f"policy, {outcome.word}", "control"]
    header += ["lift so far", "any time", "once"]

    def figure(value: float | None, before: str = "", sign: str = "") -> str | None:
        return None if value is None else f"{before}{outcome.figure(value, sign)}"

    rows = [
        [
            row["number"],
            row["records"],
            figure(row["policy"]),
            figure(row["control"]),
            figure(row["lift_so_far"], sign="+"),
            figure(row["half_width_any_time"], "± "),
            figure(row["half_width_fixed_time"], "± "),
        ]
        for row in document["batches"]
    ]
    known = [found.relative_text] if found.pooled.known else []
    lines = [*cli.table(header, rows), "", found.text, *known, f"So {found.verdict}."]
    if found.pooled.helps is None and found.more_decisions is not None:
        until = "the interval is half as wide" if known else "the lift is known, if all answer"
        lines.append(f"About {about(found.more_decisions)} more decisions until {until}.")
    lines += [f"Assumed: {found.assumes}.", *(each.text for each in rails)]
    if args.plot:
        picture = BytesIO()
        found.plot().figure.savefig(picture, format=Path(args.plot).suffix[1:])
        cli.write(args.plot, picture.getvalue())
        lines.append(f"wrote {args.plot}")
    return cli.Answer(document, lines)
