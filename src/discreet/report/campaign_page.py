"""The page of a campaign: words, tables and figures in one file. No request leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

from discreet.report import campaign_tables as tables
from discreet.report.campaign_results import Source
from discreet.report.compare import Comparison
from discreet.report.demo_page import template
from discreet.report.loss_increase import LossIncrease
from discreet.report.mean_loss import MeanLoss
from discreet.report.paper_win_rates import CITATION
from discreet.report.rerun_command import command
from discreet.report.runtime import Runtime
from discreet.report.selected_settings import Choices
from discreet.report.selection import Selection
from discreet.report.summary_text import caveats, counted, missing, summary
from discreet.report.win_rates import WinRates


@dataclass(frozen=True)
class Contents:
    """Everything that the page shows; figures are SVG for inlining."""

    source: Source
    selection: Selection
    rates: WinRates
    means: MeanLoss
    increase: LossIncrease | None
    choices: Choices
    runtime: Runtime
    comparison: Comparison | None
    heat_maps: Sequence[str]
    increase_figure: str
    curve_figures: Mapping[str, str]
    more_curves: Sequence[str]
    version: str
    files: Sequence[str]


def campaign_page(contents: Contents) -> str:
    """One self-contained HTML file, light and dark, for screens, phones and paper."""
    made = {title: body for title, body in _sections(contents).items() if body}
    return Template(template("campaign.html")).substitute(
        title=escape(_title(contents)),
        subtitle=escape(_subtitle(contents)),
        style=template("style.css"),
        selection=escape(contents.selection.statement),
        contents=" ".join(f'<a href="#{_anchor(title)}">{title}</a>' for title in made),
        sections="\n".join(
            f'<section id="{_anchor(title)}">\n<h2>{title}</h2>\n{body}\n</section>'
            for title, body in made.items()
        ),
        version=escape(contents.version),
    )


def _sections(c: Contents) -> dict[str, str]:
    return {
        "In short": _list(summary(c.selection, c.rates, c.means)),
        "What is missing": _list(missing(c.selection, c.source)),
        "Mean final loss": tables.mean_losses(c.selection, c.means),
        "Win rates": _win_rates(c),
        "Beside the paper": _comparison(c),
        "What privacy costs": _increase(c),
        "Learning curves": _curves(c),
        "Which oracle and λ won": tables.chosen(c.choices),
        "Final loss by data set": tables.by_dataset(c.selection),
        "Time": tables.times(c.runtime),
        "How this was made": _made(c),
        "Before you quote a number": _list(caveats(c.selection)),
    }


def _title(c: Contents) -> str:
    return (
        f"{counted(len(c.selection.algorithms), 'algorithm')} on "
        f"{counted(len(c.selection.datasets), 'data set')}"
    )


def _subtitle(c: Contents) -> str:
    levels = ", ".join(level.text.removeprefix("ε = ") for level in c.selection.levels)
    return (
        f"{counted(c.selection.runs, 'run')}; ε = {levels}; {c.selection.mechanism} mechanisms; "
        f"{_device(c)}. Labelled data played as a bandit: "
        "the loss of a round is 1 unless the action is the label. Smaller is better."
    )


def _device(c: Contents) -> str:
    """A class of hardware, as the manifest says it, or else the tasks."""
    return c.source.manifest.get("device") or ", ".join(c.runtime.devices) or "unknown device"


def _win_rates(c: Contents) -> str:
    if not c.heat_maps:
        return ""
    maps = "\n".join(
        _figure(svg, f"Win rates at {level.text}; win_rates.csv has the numbers.")
        for svg, level in zip(c.heat_maps, c.rates.levels, strict=True)
    )
    return (
        "<p>Percentage of data sets on which the row has less mean final loss than the column; "
        "ties count half. Blue: the row wins more often. Orange: the column does.</p>"
        f'<div class="maps">{maps}</div>{tables.average_win_rates(c.rates)}'
    )


def _comparison(c: Contents) -> str:
    if c.comparison is None:
        return ""
    *said, _ = c.comparison.sentences()  # the last one is how configurations were selected
    return f"{_list(said)}{tables.comparison(c.comparison)}<p><small>{escape(CITATION)}</small></p>"


def _increase(c: Contents) -> str:
    if c.increase is None:
        return ""
    words = (
        f"<p>Final loss less that at {c.increase.relative_to.text}, mean over data sets, with one "
        "standard error.</p>"
    )
    figure = _figure(c.increase_figure, "Increase of the final loss; numbers below.", "narrow")
    return f"{words}{figure}{tables.increases(c.increase)}"


def _curves(c: Contents) -> str:
    if not c.curve_figures and not c.more_curves:
        return ""
    parts = [
        "<p>Mean loss so far at the end of each batch, mean over seeds, in a band of one standard "
        "error. On top the algorithms at each ε, below the ε of each algorithm; all panels share "
        "their axes.</p>"
    ]
    for name, svg in c.curve_figures.items():
        about = c.source.datasets.get(name, {})
        facts = f"{about['rows']:,} rounds, {about['actions']} actions" if about else ""
        parts.append(f"<h3>{escape(name)} <small>{facts}</small></h3>")
        label = f"Learning curves on {name}; final values are in best.csv."
        parts.append(_figure(svg, label, "curves"))
    if c.more_curves:
        listed = ", ".join(f"<code>{escape(each)}</code>" for each in c.more_curves)
        parts.append(f"<p>In files of their own, to keep this page small: {listed}.</p>")
    return "\n".join(parts)


def _made(c: Contents) -> str:
    manifest = c.source.manifest
    facts = {
        "Device": _device(c),
        "Code": f"discreet {manifest.get('code_version', 'of unknown version')}",
        "Grid": manifest.get("grid_digest", "without a digest"),
        "Mechanisms": c.selection.mechanism,
        "Files": ", ".join(c.files),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{escape(str(fact))}</dd>" for name, fact in facts.items())
    return f"<pre><code>{escape(command(manifest))}</code></pre><dl>{listed}</dl>"


def _figure(svg: str, label: str, kind: str = "") -> str:
    return f'<div class="figure {kind}" role="img" aria-label="{escape(label)}">{svg}</div>'


def _list(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in sentences) + "</ul>"


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.replace("λ", "ridge")).strip("-").lower()
