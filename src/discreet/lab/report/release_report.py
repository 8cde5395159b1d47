"""Report of an experiment from its releases: results, lift and guarantee on one page."""

from __future__ import annotations

from collections.abc import Callable

from discreet.client.pages import rendered
from discreet.errors import InvalidInput
from discreet.lab.report.figures import Drawing
from discreet.plan.plan import Plan
from discreet.releases.guardrails import guardrails
from discreet.releases.lift import Lift, lift
from discreet.releases.quality import quality
from discreet.releases.released import Released
from discreet.text import guarantee_text
from discreet.types import Axes, JsonMapping, JsonObject

FORMAT = "discreet-report/1"


def release_report(
    released: Released, label: JsonMapping, label_file: str
) -> tuple[JsonObject, str]:
    """Return the document of a report, and one self-contained HTML file that shows it.

    ``label`` is the document of the privacy label, and ``label_file`` the name of its page.
    """
    if released.latest is None or released.plan is None:
        raise InvalidInput(
            "SOURCE must hold a release; nothing was released yet. Report after the first release."
        )
    names = released.actions or range(released.n_actions)
    found, means = _lift(released), quality(released)
    known = found if found and found.pooled.known else None
    newest = [each.text for each in means if each.text != "–"]
    rails = guardrails(released) if found else []
    document: JsonObject = {
        "format": FORMAT,
        "experiment": label["about"]["experiment"],
        "actions": [str(name) for name in names],
        "outcome": released.outcome.word,
        "range": released.outcome.range,
        "releases": len(released.items),
        "records": released.rounds,
        "mean": newest[-1] if newest else None,
        "rule": released.rule_text,
        "lift": None if found is None else found.to_json(),
        "epsilon": label["epsilon"],
        "delta": label["delta"],
        "unit": label["unit"],
        "private": label["private"],
        "attacker": label["attacker"]["sentence"],
        **({"guardrails": [each.to_json() for each in rails]} if rails else {}),
    }
    page = rendered(
        "discreet.lab.report",
        "release_report.html",
        document=document,
        guarantee=guarantee_text(float(document["epsilon"]), float(document["delta"])),
        lift_figure=_figure(known.plot, "lift") if known else None,
        means_figure=_figure(released.plot, "means") if means else None,
        items=released.items,
        means={each.number: each.text for each in means},
        compared=_compared(known) if known else None,
        rails=rails,
        label=label_file,
        explanation=Plan.from_config(released.plan).explain(),
    )
    return document, page


def _lift(released: Released) -> Lift | None:
    """Return the lift of a plan with a control share; None without one."""
    imported = released.schedule.imported_batches
    if not (released.plan or {}).get("control") or len(released.items) <= imported:
        return None
    return lift(released)


def _figure(plot: Callable[[Axes], Axes], name: str) -> str:
    return Drawing((7.0, 4.0), lambda figure, _: plot(figure.subplots())).inline(name)


def _compared(found: Lift) -> dict[str, str]:
    """Return the means of both parts, and their difference with both intervals."""
    figure, share = found.outcome.figure, f"{found.confidence:.0%}"
    last = {name: float(column[-1]) for name, column in found.table.items()}
    rows = {f"the {name}": figure(last[f"{name}_so_far"]) for name in ("policy", "control")}
    for width, meaning in (("any_time", "valid at any time"), ("fixed_time", "for one look")):
        apart = f"{figure(last['lift_so_far'], '+')} ± {figure(last[f'half_width_{width}'])}"
        rows[f"difference, {share} interval {meaning}"] = apart
    return rows
