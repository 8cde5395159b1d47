"""Selection by hand: with ties, with halves of the seeds, with incomplete results."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInput
from discreet.lab.report.selection import select
from lab.report.folders import run, settings, table
from tolerances import EXACT
from wording import refused


def selected(rows, how="seeds"):
    return select(table(rows), how)


def winner(rows, how="seeds"):
    """Oracle, settings, loss and standard error of the only winner."""
    (row,) = selected(rows, how).winners()
    return tuple(row.values())[4:]


def seeds(losses, **changes):
    """One configuration of one algorithm: a loss for each seed."""
    return [run("a", "VanillaPO", 1.0, seed, loss, **changes) for seed, loss in enumerate(losses)]


SMALL, LARGE = settings(scale=2.0), settings(scale=16.0)


def test_the_least_mean_wins_by_hand():
    rows = seeds([0.1, 0.5, 0.3], settings=SMALL) + seeds([0.2, 0.3, 0.25], settings=LARGE)
    oracle, text, loss, error = winner(rows)
    assert (oracle, text) == ("Ridge", LARGE)
    assert loss == pytest.approx(0.25, abs=EXACT)
    # Deviations −0.05, 0.05 and 0: variance 0.005 / 2, over three seeds.
    assert error == pytest.approx(math.sqrt(0.0025 / 3), abs=EXACT)


@pytest.mark.parametrize("flip", [False, True])
def test_ties_go_to_ridge_and_then_to_small_numbers(flip):
    rows = [
        *seeds([0.2, 0.4], settings=SMALL, oracle="Logistic"),
        *seeds([0.4, 0.2], settings=LARGE),
        *seeds([0.3, 0.3], settings=SMALL),  # as text, "16.0" comes before "2.0"
    ]
    oracle, text, _, _ = winner(rows[::-1] if flip else rows)
    assert (oracle, text) == ("Ridge", SMALL)


def test_float32_does_not_break_a_tie():
    """1/3 and 2/3 are rounded in the file; 500 lost rounds of 1,500 are 500, either way."""
    thirds = [250 / 1500, 750 / 1500], [499 / 1500, 501 / 1500]
    rounded = [np.float32(pair).astype(float).mean() for pair in thirds]
    assert rounded[0] != rounded[1]
    rows = seeds(thirds[1], settings=SMALL, rounds=1500)
    rows += seeds(thirds[0], settings=LARGE, rounds=1500)
    assert winner(rows)[1] == SMALL
    assert winner(rows)[2] == 500 / 1500


def test_split_selects_on_one_half_and_reports_the_other():
    lucky = [0.1, 0.1, 0.9, 0.7]  # best in the first half, worse over all
    rows = seeds(lucky, settings=SMALL) + seeds([0.3] * 4, settings=LARGE)
    assert winner(rows)[1] == LARGE
    _, text, loss, error = winner(rows, "split")
    assert text == SMALL
    assert loss == pytest.approx(0.8, abs=EXACT)
    assert error == pytest.approx(0.1, abs=EXACT)
    chosen = selected(rows, "split")
    assert chosen.selecting_loss.item() == pytest.approx(0.1, abs=EXACT)
    assert chosen.reporting == ((2, 3),)

    # The choice does not depend on the reporting half; where it is not finite, nothing is shown.
    rows = seeds([0.1, 0.2, 0.9, math.nan], settings=SMALL) + seeds([0.3] * 4, settings=LARGE)
    assert selected(rows, "split").winners() == []


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_disqualifies_its_configuration(broken):
    rows = seeds([0.0, broken, 0.0], settings=SMALL) + seeds([0.4] * 3, settings=LARGE)
    assert winner(rows)[1] == LARGE
    assert selected(rows).not_finite == 1


def test_all_are_judged_by_the_seeds_that_all_have():
    """The campaign is being extended: one configuration has a third seed already."""
    rows = seeds([0.2, 0.4, 0.0], settings=SMALL) + seeds([0.2, 0.3], settings=LARGE)
    assert winner(rows)[1] == LARGE
    chosen = selected(rows)
    assert (chosen.idle_seeds, chosen.unfinished) == (1, 0)


def test_a_configuration_that_lacks_a_seed_does_not_compete():
    rows = seeds([0.0], settings=settings(scale=1.0))
    for scale in (2.0, 4.0, 8.0):
        rows += seeds([0.2, 0.4], settings=settings(scale=scale))
    rows = [row for row in rows if (row["settings"], row["seed"]) != (settings(scale=8.0), 0)]
    # Seed 0 is held by three, seed 1 by three: both count, and two configurations lack one.
    assert winner(rows)[1] == SMALL
    assert selected(rows).unfinished == 2


def test_bad_choices_are_refused():
    with refused(InvalidInput, "at least one run"):
        selected([])
    with refused(InvalidInput, "seeds", "select='seeds'"):
        selected(seeds([0.2]), "split")
    with refused(InvalidInput, "select", "'split'"):
        selected(seeds([0.2]), "spilt")
