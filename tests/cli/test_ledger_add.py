"""``discreet ledger add``: several experiments, one person, and what must not be added."""

from __future__ import annotations

import json
import math

import pytest

from discreet import Budget, Ledger
from discreet.design.control import PARTS
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Participation
from discreet.privacy.events import ExponentialMechanism, Gaussian, NonPrivate, compose

COMMAND = ["ledger", "add"]
QUIET, PURE = Gaussian(6.0, 1.0), ExponentialMechanism(0.4, 1.0)


def written(path, *charges, delta=1e-5, unit="decision", often=None, level=9.0):
    ledger = Ledger(Budget(level, delta), unit=unit, participation=often)
    for number, event in enumerate(charges):
        ledger = ledger.charge(f"batch {number}", event)
    path.write_text(json.dumps(ledger.to_json()))
    return path


def test_costs_compose_at_the_sum_of_the_deltas(tmp_path, document):
    one = written(tmp_path / "a", QUIET, QUIET, delta=1e-5)
    two = written(tmp_path / "b", Gaussian(4.0, 1.0), delta=2e-5)
    found = document(one, two)
    expected = epsilon(compose(QUIET, Gaussian(4.0, 1.0)), 3e-5)
    assert found["epsilon"] == pytest.approx(expected, rel=1e-9)
    assert found["delta"] == pytest.approx(3e-5)
    assert found["epsilon"] < found["sum_of_epsilons"]
    assert found["mu"] == pytest.approx(math.hypot(1 / 6, 1 / 4))
    assert any("δs add up" in each for each in found["assumed"])


def test_pure_ledgers_add_without_a_delta(tmp_path, call):
    paths = [written(tmp_path / name, PURE, delta=0.0) for name in "ab"]
    _, out, _ = call(*paths)
    assert "together, for one decision in each: ε = 0.8\n" in out
    assert "assumed: One person is in all of these experiments" in out


@pytest.mark.parametrize(("pure", "other"), [(5.0, QUIET), (4.3, Gaussian(1.0, 1.0))])
def test_the_dearest_at_any_delta_counts(tmp_path, document, pure, other):
    """The batch that is the dearer one alone need not be the dearer one in the sum: a pure batch of
    ε = 4.3 is cheaper than a Gaussian one of 4.4, and adds more to another Gaussian one."""
    listed = Gaussian(1.0, 1.0), ExponentialMechanism(pure, 1.0)
    paths = written(tmp_path / "a", *listed), written(tmp_path / "b", other)
    most = max(epsilon(compose(other, each), 2e-5) for each in listed)
    assert document(*paths)["epsilon"] >= most


@pytest.mark.parametrize("often", [None, Participation(1, 1)])
def test_of_parts_that_differ_the_dearer_counts(tmp_path, document, often):
    """Nobody knows in which part of a batch a person is."""
    unit, louder = "user" if often else "decision", Gaussian(2.0, 1.0)
    ledger = Ledger(Budget(9.0, 1e-5), unit=unit, participation=often)
    for part, event in zip(PARTS, (louder, QUIET), strict=True):
        ledger = ledger.charge(f"batch 1, {part}", event)
    (tmp_path / "a").write_text(json.dumps(ledger.to_json()))
    found = document(tmp_path / "a", written(tmp_path / "b", QUIET, unit=unit, often=often))
    assert found["epsilon"] >= epsilon(compose(louder, QUIET), 2e-5)


def test_users_of_several_experiments(tmp_path, document):
    often = Participation(2, 1)
    one = written(tmp_path / "a", *[QUIET] * 5, unit="user", often=often)
    two = written(tmp_path / "b", *[QUIET] * 9, unit="user", often=Participation(3, 1))
    found = document(one, two)
    assert found["epsilon"] == pytest.approx(epsilon(compose(*[QUIET] * 5), 2e-5), rel=1e-9)
    assert found["experiments"][0]["neighbours"] == often.relation


def test_what_cannot_be_added_is_refused(tmp_path, refuses):
    one = written(tmp_path / "a", QUIET)
    two = written(tmp_path / "b", QUIET, unit="user", often=Participation(3, 1))
    refuses(one, two, words=("ledgers must have one unit", "'decision'", "'user'"))
    refuses(one, one, words="must be of different experiments")
    refuses(one, words="two or more")
    two = written(tmp_path / "b", QUIET, Gaussian(4.0, 1.0))
    two.write_text(two.read_text().replace('"epsilon": "9.0"', '"epsilon": "0.5"'))
    refuses(one, two, words="exceeds the budget")
    two.write_text("{}")
    refuses(one, two, words="error: ")


def test_what_is_not_private_says_so(tmp_path, call):
    one = written(tmp_path / "a", QUIET)
    two = written(tmp_path / "b", NonPrivate("seeded"), level=math.inf)
    _, out, _ = call(one, two)
    assert "together, for one decision in each: ε = ∞ (no privacy)" in out
    assert "is right 100 times in 100" in out
