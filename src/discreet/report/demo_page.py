"""One self-contained page: the table, the figure, and what may be claimed. No request leaves."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from discreet.formatting import epsilon_text
from discreet.report.demo_figure import curves_svg

Results = Mapping[str, Any]


def page(results: Results) -> str:
    """The page of a demo's results, light and dark, readable on a phone."""
    return Template(template("page.html")).substitute(
        style=template("style.css"),
        note=escape(results["note"]),
        settings_note=escape(results["settings_note"]),
        tables="\n".join(_loss_table(results, data) for data in results["sets"]),
        figure=curves_svg(results, inline=True),
        private=_private(results["private"]),
        settings="\n".join(
            f"<tr><th>{escape(each['name'])}</th><td><code>{escape(each['text'])}</code></td></tr>"
            for each in results["algorithms"]
        ),
        version=escape(results["version"]),
    )


def template(name: str) -> str:
    """A file of this package: the frame of a page, or its style."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").rstrip()


def _loss_table(results: Results, data: Mapping[str, Any]) -> str:
    epsilons = results["epsilons"]
    heads = "".join(f"<th>ε = {epsilon_text(float(epsilon))}</th>" for epsilon in epsilons)
    best = {epsilon: _best_bandit(results, data["name"], epsilon) for epsilon in epsilons}
    rows = []
    for algorithm in results["algorithms"]:
        name = algorithm["name"]
        cells = [
            _cell(_run_of(results, data["name"], name, epsilon), name == best[epsilon])
            for epsilon in epsilons
        ]
        rows.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
    known = data["best_loss"]
    beyond = "" if known is None else f" The best possible loss, of any rule, is {known:.3f}."
    caption = (
        f"<b>{escape(data['name'])}</b>: {data['rows']:,} rounds, {data['dimension']} numbers a "
        f"context, {data['n_actions']} actions.{beyond}"
    )
    return (
        f"<table><caption>{caption}</caption><thead><tr><th></th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(run: Mapping[str, Any], best: bool) -> str:
    mean, error = f"{run['loss']:.3f}", run["standard_error"]
    spread = "" if error is None else f" <small>± {error:.3f}</small>"
    return f"<td>{f'<b>{mean}</b>' if best else mean}{spread}</td>"


def _run_of(results: Results, data: str, algorithm: str, epsilon: Any) -> Mapping[str, Any]:
    wanted = (data, algorithm, epsilon)
    return next(
        run for run in results["runs"] if (run["data"], run["algorithm"], run["epsilon"]) == wanted
    )


def _best_bandit(results: Results, data: str, epsilon: Any) -> str:
    """The bandit with the least loss; Supervised sees more and is no competitor."""
    names = [str(each["name"]) for each in results["algorithms"] if each["feedback"] == "bandit"]
    return min(names, key=lambda name: float(_run_of(results, data, name, epsilon)["loss"]))


def _private(run: Mapping[str, Any]) -> str:
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in run["assumptions"])
    return f"<p>{escape(run['statement'])}</p><p>It assumes:</p><ul>{said}</ul>"
