"""Privacy curve of a public set: its data, its document and its files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.data import Dataset, load
from discreet.data.dataset import with_schema
from discreet.data.lookup import GENERATORS
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.lab.campaign.tasks import NOT_PRIVATE, scaled
from discreet.lab.report.figures import Drawing
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget, Participation
from discreet.simulate import PrivacyCurve, privacy_curve
from discreet.simulate.group_losses import file_groups
from discreet.types import JsonObject, NumpyArray
from discreet.validate import one_of, whole

FORMAT = "discreet-curve/1"
NOISE = "The noise of each ε is seeded, and the set itself is read: the result is not private."
COLUMNS = ("raw", "ranges")
SIZE = (7.0, 4.4)


def public_set(
    source: str,
    *,
    rows: int | None = None,
    target: str | None = None,
    user: str | None = None,
    schema: str | None = None,
    group: str | None = None,
    features: str = "raw",
) -> tuple[Dataset, NumpyArray | None]:
    """Return a data set and its groups, if a column of groups is named.

    A file is cut to rows drawn at random, since files are often sorted by class.
    """
    generated = rows if source in GENERATORS else None
    data = load(source, rows=generated, target=target, encoded=schema is None, user=user)
    groups = None if group is None else file_groups(data, group)
    if schema is not None:
        data = with_schema(Schema.from_toml(schema), data)
    if rows is not None and generated is None:
        some = np.random.default_rng(0).permutation(data.rows)[: whole("rows", rows, 1)]
        data = replace(
            data,
            contexts=data.contexts[some],
            labels=data.labels[some],
            source=None,
            users=None if data.users is None else data.users[some],
        )
        groups = None if groups is None else groups[some]
    if schema is not None and features != "raw":
        raise InvalidInput(
            f"features must be raw with a schema, which has ranges; got {features!r}. Leave it out."
        )
    contexts = scaled(data.contexts, one_of("features", features, COLUMNS))
    return replace(data, contexts=contexts), groups


def public_curve(
    data: Dataset, groups: NumpyArray | None, participation: Participation | None, **options: Any
) -> PrivacyCurve:
    """Return the curve of the default plan, for users where their participation is given."""
    plan = None
    if participation is not None:
        plan = Plan(
            n_actions=data.n_actions,
            features=UnitBall(data.dimension),
            budget=Budget.none(),
            unit="user",
            batches_per_user=participation.batches,
            records_per_batch=participation.records,
        )
    given = {"groups": groups, "users": data.users, "plan": plan, **options}
    return privacy_curve(data.contexts, data.labels, **given)


def curve_document(found: PrivacyCurve, data: Dataset, features: str) -> JsonObject:
    """Return the curve with its data, its plan and what it does not protect."""
    return {
        "format": FORMAT,
        "data": {"name": data.name, "rows": data.rows, "n_actions": data.n_actions},
        "features": features,
        "rounds": found.rounds,
        "seeds": found.seeds,
        "confidence": found.confidence,
        "table": [point._asdict() for point in found.table],
        "best_fixed": found.best_fixed,
        "uniform": found.uniform,
        "helps_from": found.helps_from,
        "verdict": found.verdict,
        "plan": found.plan.to_config(),
        "notes": _notes(found.plan, data, features),
        **({"groups": found.by_group().to_json()} if found.group_lines else {}),
    }


def _notes(plan: Plan, data: Dataset, features: str) -> list[str]:
    notes = [NOISE]
    if features != "raw":
        notes.append(f"The {NOT_PRIVATE}: with people, declare public ranges in a Schema.")
    if plan.participation is not None and data.users is not None:
        people = len(np.unique(data.users))
        notes.append(
            f"ε is for one of {people:,} users, who contributes {plan.participation.text}."
        )
    return notes


def curve_files(found: PrivacyCurve, document: JsonObject, command: str) -> dict[str, str | bytes]:
    """Return the page and the figures, by file name; ``command`` is shown on the page."""
    from discreet.client.pages import rendered

    groups = found.by_group() if found.group_lines else None
    curve = Drawing(SIZE, lambda figure, ink: found.plot(figure.subplots(), ink))
    page: JsonObject = {"curve": found, "document": document, "groups": groups, "command": command}
    page |= {"figure_svg": curve.inline("curve"), "explanation": found.plan.explain()}
    files: dict[str, str | bytes] = {"index.html": "", "curve.png": curve.png()}
    if groups:
        drawn = Drawing(SIZE, lambda figure, ink: groups.plot(figure.subplots(), ink))
        page["groups_svg"], files["groups.png"] = drawn.inline("groups"), drawn.png()
    files["index.html"] = rendered("discreet.lab.report", "privacy_curve.html", **page)
    return files
