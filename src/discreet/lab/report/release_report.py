"""Report of an experiment from its releases: results, lift and guarantee on one page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from discreet.client.pages import rendered
from discreet.errors import InvalidInput
from discreet.lab.report.figures import Drawing
from discreet.lab.report.tables import Table
from discreet.plan.plan import Plan
from discreet.releases.guardrails import guardrails
from discreet.releases.lift import Lift, lift
from discreet.releases.quality import quality
from discreet.releases.released import Released
from discreet.text import guarantee_text
from discreet.types import Axes, JsonMapping, JsonObject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "discreet-report/1"
SIZE = (7.0, 4.0)


def report_document(released: Released, label: JsonMapping) -> JsonObject:
    """Return everything that the page shows; ``label`` is the document of the privacy label."""
    if released.latest is None or released.plan is None:
        raise InvalidInput(
            "SOURCE must hold a release; nothing was released yet. Report after the first release."
        )
    names = released.actions or range(released.n_actions)
    found = _lift(released)
    means = [each for each in quality(released) if each.text != "–"]
    rails = [each.to_json() for each in guardrails(released)] if found else []
    return {
        "format": FORMAT,
        "experiment": label["about"]["experiment"],
        "actions": [str(name) for name in names],
        "outcome": released.outcome.word,
        "range": released.outcome.range,
        "releases": len(released.items),
        "records": released.rounds,
        "mean": means[-1].text if means else None,
        "rule": released.rule_text,
        "lift": None if found is None else found.to_json(),
        "epsilon": label["epsilon"],
        "delta": label["delta"],
        "unit": label["unit"],
        "private": label["private"],
        "attacker": label["attacker"]["sentence"],
        **({"guardrails": rails} if rails else {}),
    }


def report_page(released: Released, document: JsonMapping, label: str) -> str:
    """Return one self-contained HTML file; ``label`` is the file name of the privacy label."""
    found = _lift(released)
    plan = Plan.from_config(released.plan or {})
    figures = {"lift": _figure(found.plot, "lift")} if found and found.pooled.known else {}
    if quality(released):
        figures["means"] = _figure(released.plot, "means")
    return rendered(
        "discreet.lab.report",
        "release_report.html",
        title=f"Report: {document['experiment'] or 'an experiment'}",
        guarantee=guarantee_text(float(document["epsilon"]), float(document["delta"])),
        figures=figures,
        listed=_releases(released),
        compared=_compared(found) if found and found.pooled.known else None,
        secondary=_secondary(released) if "guardrails" in document else None,
        label=label,
        explanation=plan.explain(),
        **{name: value for name, value in document.items() if name not in ("epsilon", "delta")},
    )


def _lift(released: Released) -> Lift | None:
    """Return the lift of a plan with a control share; None without one."""
    imported = released.schedule.imported_batches
    if not (released.plan or {}).get("control") or len(released.items) <= imported:
        return None
    return lift(released)


def _figure(plot: Callable[[Axes], Axes], name: str) -> str:
    def draw(figure: Figure, ink: str) -> None:  # noqa: ARG001
        plot(figure.subplots())

    return Drawing(SIZE, draw).inline(name)


def _releases(released: Released) -> Table:
    means = {each.number: each.text for each in quality(released)}
    rows = [
        [str(item.number), f"{item.records:,}", means.get(item.number, "–"), item.digest[:12]]
        for item in released.items
    ]
    head = ["release", "records", f"mean {released.outcome.word}", "digest"]
    return Table("Means have the standard error that the noise causes.", head, rows, "small")


def _compared(found: Lift) -> Table:
    """Return the means of both parts, and their difference with both intervals."""
    figure, share = found.outcome.figure, f"{found.confidence:.0%}"
    last = {name: float(column[-1]) for name, column in found.table.items()}
    rows = [[f"the {name}", figure(last[f"{name}_so_far"])] for name in ("policy", "control")]
    for width, meaning in (("any_time", "valid at any time"), ("fixed_time", "for one look")):
        wide = last[f"half_width_{width}"]
        apart = f"{figure(last['lift_so_far'], '+')} ± {figure(wide)}"
        rows.append([f"difference, {share} interval {meaning}", apart])
    return Table("", ["", f"mean {found.outcome.word}"], rows)


def _secondary(released: Released) -> Table:
    """Return the means of guardrails, their differences and alerts."""
    head = ["guardrail", "policy", "control", "difference", "alert"]
    rows = [
        [each.guardrail.name, *each.means, each.difference, each.verdict]
        for each in guardrails(released)
    ]
    return Table("Secondary outcomes, with intervals that are valid at any time.", head, rows)
