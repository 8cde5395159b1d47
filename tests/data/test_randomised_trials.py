"""Randomised trials: actions, losses and scaled contexts of a file that the reader has."""

import numpy as np
import pytest

import discreet as dc
from discreet.data.randomised_trials import TRIALS, randomised_log
from wording import refused

STAR = """rownames,gender,ethnicity,stark,readk,mathk,lunchk,schoolk,experiencek
1,female,afam,NA,400,400,free,rural,3
2,male,cauc,small,447,473,non-free,rural,30
3,female,afam,regular,350,350,free,urban,0
4,male,cauc,regular+aide,NA,473,non-free,suburban,7
5,male,asian,regular,700,600,free,inner-city,NA
6,male,cauc,regular+aide,430,470,non-free,suburban,15
"""


def written(path, columns):
    """Write columns to a .csv file."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


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


def test_only_the_rows_of_the_trial_and_whole_numbers_as_text(tmp_path):
    columns = {title: [1, 1, 1] for title in TRIALS["randhie"].contexts}
    columns |= {"coins": [25.0, 25, "0"], "year": [1, 2, 1], "meddol": [0, 5, 20_000]}
    path = written(tmp_path / "hie.csv", columns | {"zper": [30, 30, 10]})
    log = randomised_log("randhie", path)
    assert (log.actions.tolist(), log.users) == ([1, 0], None)
    np.testing.assert_allclose(log.losses, [0.0, 1.0])
    assert randomised_log("randhie_years", path).users.tolist() == [1, 1, 0]


HILLSTROM = {
    "recency": [1, 12],
    "history": [0.0, 3000.0],
    "mens": [1, 0],
    "womens": [0, 1],
    "newbie": [1, 0],
    "zip_code": ["Rural", "Urban"],
    "channel": ["Web", "Phone"],
    "segment": ["No E-Mail", "Mens E-Mail"],
    "visit": [0, 1],
    "conversion": [0, 0],
    "spend": [50.0, 600.0],
}


def test_a_trial_has_several_outcomes_in_their_declared_ranges(tmp_path):
    path = written(tmp_path / "hillstrom.csv", HILLSTROM)
    assert randomised_log("hillstrom", path).losses.tolist() == [1.0, 0.0]  # visits
    assert randomised_log("hillstrom", path, "conversion").losses.tolist() == [1.0, 1.0]
    spend = randomised_log("hillstrom", path, outcome="spend")
    np.testing.assert_allclose(spend.losses, [0.9, 0.0])
    assert spend.outcome == dc.Reward(0, 500, clip=True)
    assert spend.users is None
    with refused(dc.InvalidInput, "outcome must be one of", "spend"):
        randomised_log("hillstrom", path, "clicks")


def voters(sizes, clusters, messages):
    """Columns of the social-pressure trial: a voter for each entry, the fourth without outcome."""
    n = len(sizes)
    voted = [i % 2 if i != 3 else "NA" for i in range(n)]
    past = {title: [1] * n for title in TRIALS["social_pressure"].contexts if "_0" in title}
    columns = {"sex": ["Male"] * n, "age": [54] * n, "hh_size": sizes, "cluster": clusters}
    return {**columns, **past, "primary_06": voted, "treatment": messages}


def test_voters_of_a_household_are_one_user(tmp_path):
    messages = ["Self"] * 5 + ["No Postcard"] * 3
    columns = voters([2, 2, 2, 2, 1, 1, 2, 2], [7, 7, 7, 7, 7, 7, 7, 7], messages)
    log = randomised_log("social_pressure", written(tmp_path / "voters.csv", columns))
    assert log.users.tolist() == [0, 0, 1, 2, 3, 4, 4]  # the fourth voter has no outcome
    assert log.actions.tolist() == [3, 3, 3, 3, 0, 0, 0]
    assert log.losses.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]


def test_scattered_households_are_refused(tmp_path):
    columns = voters([2, 1, 2], [7, 7, 7], ["Self"] * 3)
    with refused(dc.InvalidInput, "consecutive rows"):
        randomised_log("social_pressure", written(tmp_path / "voters.csv", columns))


def test_another_file_is_refused(star):
    with refused(dc.InvalidInput, "columns of actg175", "arms"):
        randomised_log("actg175", star)
    with refused(dc.InvalidInput, "name must be one of"):
        randomised_log("nobody", star)
