"""An attacker who sees only releases: what can be told about one record, and about half the noise.

The attack, its worst pairs and its bounds are those of ``discreet.audit``; here they meet every ε
of the paper, on the noise as it ships. A correct mechanism fails with probability 1e-6 a row.
"""

from dataclasses import replace

import pytest

from discreet.audit import FAILS, HOLDS
from discreet.audit.black_box import black_box, trials_for
from discreet.audit.subjects import Subject

FALSE_ALARM = 1e-6
LEVELS = (1.0, 2.0, 4.0, 8.0)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["ridge-structured", "ridge-pooled"])
@pytest.mark.parametrize("level", LEVELS)
def test_an_attacker_shows_what_theory_allows_and_catches_half_the_noise(
    level, mechanism, monkeypatch
):
    """At least 0.7 of what is attainable: 5.9 deviations of room or more."""
    subject = Subject(mechanism, "bandit", "general", level)
    finding = black_box(subject, FALSE_ALARM)
    assert finding.trials == trials_for(subject) >= 10_000
    assert finding.verdict == HOLDS
    assert 0.7 * finding.attainable <= finding.measured <= level < finding.halved
    made = subject.calibrated
    halved = replace(made, gram=made.gram / 2, response=made.response / 2)
    monkeypatch.setitem(subject.__dict__, "calibrated", halved)
    assert black_box(subject, FALSE_ALARM).verdict == FAILS
