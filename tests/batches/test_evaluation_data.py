"""Frames for evaluation: the same runs as arrays, whatever names and holds the labels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from wording import refused

ROWS = 120
CONTEXTS = np.random.default_rng(0).uniform(-0.7, 0.7, size=(ROWS, 2))
LABELS = np.where(CONTEXTS[:, 0] > 0, "mail", "none")
PLAN = dc.Plan(actions=["none", "mail"], features=dc.UnitBall(2), budget=dc.Budget.none())
BY_NAME = dc.Plan(
    actions=["none", "mail"],
    features=dc.Schema([dc.Number("x", -1, 1), dc.Number("y", -1, 1)]),
    budget=dc.Budget.none(),
)
COLUMNS = {"x": CONTEXTS[:, 0], "best": LABELS, "y": CONTEXTS[:, 1]}
KINDS = {
    "pandas": lambda: pd.DataFrame(COLUMNS, index=np.arange(ROWS)[::-1]),
    "categories": lambda: pd.DataFrame(COLUMNS).astype({"best": "category"}),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "pyarrow": lambda: pa.table(COLUMNS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_a_column_by_name(kind):
    frame = KINDS[kind]()
    expected = dc.evaluate(PLAN, CONTEXTS, LABELS).losses
    found = dc.evaluate(PLAN, frame, "best")
    np.testing.assert_array_equal(found.losses, expected)
    by_name = dc.evaluate(BY_NAME, frame, "best").losses
    rows = [{"x": x, "y": y} for x, y in CONTEXTS.tolist()]
    np.testing.assert_array_equal(by_name, dc.evaluate(BY_NAME, rows, LABELS).losses)


def test_labels_of_pandas_follow_the_index_and_others_the_position():
    expected = dc.evaluate(PLAN, CONTEXTS, LABELS).losses
    frame = pd.DataFrame(CONTEXTS, index=[f"person {row}" for row in range(ROWS)])
    mixed = pd.Series(LABELS, index=frame.index).sample(frac=1, random_state=0)
    for labels in (mixed, pl.Series(LABELS), LABELS):
        np.testing.assert_array_equal(dc.evaluate(PLAN, frame, labels).losses, expected)
    with refused(dc.InvalidInput, "index"):
        dc.evaluate(PLAN, frame, pd.Series(LABELS))


def test_losses_are_a_column_per_action():
    wrong = {"mail": (LABELS != "mail") * 1.0, "none": (LABELS != "none") * 1.0, "note": LABELS}
    expected = dc.evaluate(PLAN, CONTEXTS, LABELS).loss
    assert dc.evaluate(PLAN, CONTEXTS, losses=pl.DataFrame(wrong)).loss == expected
    curve = dc.privacy_curve(
        pl.DataFrame(CONTEXTS), losses=pl.DataFrame(wrong).drop("note"), epsilons=[8], seeds=2
    )
    assert curve.plan.n_actions == 2
    with refused(dc.InvalidInput, "column 'mail' must be numeric"):
        dc.evaluate(PLAN, CONTEXTS, losses=pl.DataFrame(wrong | {"mail": LABELS}))


def test_what_cannot_be_is_refused_by_name():
    frame = KINDS["polars"]()
    with refused(dc.InvalidInput, "labels 'bets' must be a column", "'best'?"):
        dc.evaluate(PLAN, frame, "bets")
    with refused(dc.InvalidInput, "row 0: best must be known"):
        dc.evaluate(PLAN, frame.with_columns(best=pl.lit(None, dtype=pl.String)), "best")
    with refused(dc.InvalidInput, "'x'", "Leave it out of the schema"):
        dc.evaluate(BY_NAME, frame, "x")


def test_logs_of_a_frame_with_names_of_actions():
    frame = KINDS["polars"]().with_columns(
        loss=pl.lit(0.25), chance=pl.lit(0.5), sent=pl.Series(LABELS)
    )
    found = dc.Logs.of(PLAN, frame.drop("best"), "sent", "loss", "chance")
    plain = dc.Logs.of(PLAN, CONTEXTS, LABELS, np.full(ROWS, 0.25), np.full(ROWS, 0.5))
    for name in ("features", "actions", "losses", "propensities"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    estimated = dc.evaluate_offline(found, dc.Learner(PLAN))
    table = estimated.to_frame()
    assert table["estimate"].tolist() == ["ips", "snips", "dr"]
    assert table["value"].tolist()[0] == estimated.ips.value
    with refused(dc.InvalidInput, "row 0: actions must be one of 'none', 'mail'", "got text"):
        dc.Logs.of(PLAN, CONTEXTS, ["mial"] * ROWS, np.zeros(ROWS), np.ones(ROWS))
