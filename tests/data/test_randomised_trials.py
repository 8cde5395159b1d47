"""Randomised trials: actions, losses and scaled contexts of a file that the reader has."""

import numpy as np
import pytest

import discreet as dc
from discreet.data.randomised_trials import TRIALS, randomised_log
from discreet.simulate.off_policy import Logs, evaluate_offline
from wording import refused

STAR = """rownames,gender,ethnicity,stark,readk,mathk,lunchk,schoolk,experiencek
1,female,afam,NA,400,400,free,rural,3
2,male,cauc,small,447,473,non-free,rural,30
3,female,afam,regular,350,350,free,urban,0
4,male,cauc,regular+aide,NA,473,non-free,suburban,7
5,male,asian,regular,700,600,free,inner-city,NA
6,male,cauc,regular+aide,430,470,non-free,suburban,15
"""


@pytest.fixture
def star(tmp_path):
    path = tmp_path / "STAR.csv"
    path.write_text(STAR)
    return path


def test_rows_without_action_or_outcome_are_left_out(star):
    log = randomised_log("star", star)
    assert log.action_names == ("regular", "small", "regular+aide")
    assert log.actions.tolist() == [1, 0, 0, 2]
    np.testing.assert_allclose(log.losses, [1 - 220 / 500, 1.0, 0.0, 1 - 200 / 500])
    np.testing.assert_allclose(log.propensities, [0.25, 0.5, 0.5, 0.25])
    np.testing.assert_allclose(log.action_losses(), [0.5, 1 - 220 / 500, 0.6])


def test_columns_are_scaled_by_declared_ranges(star):
    contexts = randomised_log("star", star).contexts * np.sqrt(11)
    assert contexts.shape == (4, 11)
    assert contexts[0].tolist() == pytest.approx([1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1])
    assert contexts[:, -1].tolist() == pytest.approx([1, -1, 0, 0])  # unknown: the middle
    assert contexts[2, 2:4].tolist() == [0, 0]  # a category that is not declared
    assert (np.linalg.norm(contexts, axis=1) <= np.sqrt(11)).all()


def test_a_log_serves_off_policy_estimates(star):
    log = randomised_log("star", star)
    rows = dc.UnitBall(11).map(log.contexts)
    logs = Logs(rows, log.actions, log.losses, log.propensities)
    always = evaluate_offline(logs, lambda x: np.tile([1.0, 0.0, 0.0], (len(x), 1)), folds=2)
    assert always.ips.value == pytest.approx(0.5)


def test_only_the_rows_of_the_trial_and_whole_numbers_as_text(tmp_path):
    titles = [*TRIALS["randhie"].contexts, "coins", "year", "meddol"]
    rows = [[1] * 9 + [25.0, 1, 0], [1] * 9 + [25, 2, 5], [1] * 9 + ["0", 1, 20_000]]
    text = "\n".join(",".join(map(str, each)) for each in [titles, *rows])
    (tmp_path / "hie.csv").write_text(text + "\n")
    log = randomised_log("randhie", tmp_path / "hie.csv")
    assert log.actions.tolist() == [1, 0]
    np.testing.assert_allclose(log.losses, [0.0, 1.0])


def test_another_file_is_refused(star):
    with refused(dc.InvalidInput, "columns of actg175"):
        randomised_log("actg175", star)
    with refused(dc.InvalidInput, "name must be one of"):
        randomised_log("nobody", star)
