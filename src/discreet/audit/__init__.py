"""Attacks on releases: our own, yours, or a peer's.

``attack`` takes any ``fit(batch) -> release`` and two neighbouring batches. ``checks`` and
``answers`` audit every mechanism that ships; ``discreet audit`` prints their findings.
"""

from discreet.audit.finding import (
    FAILS,
    HOLDS,
    WEAK,
    Finding,
    Hits,
    Rule,
    attack,
    clopper_pearson,
    epsilon_bound,
    learnt_rule,
    numbers,
    shift_bound,
)
from discreet.audit.noise_sources import Chosen, Trials
from discreet.audit.suite import FULL, QUICK, answers, checks, error_rate

__all__ = [
    "FAILS",
    "FULL",
    "HOLDS",
    "QUICK",
    "WEAK",
    "Chosen",
    "Finding",
    "Hits",
    "Rule",
    "Trials",
    "answers",
    "attack",
    "checks",
    "clopper_pearson",
    "epsilon_bound",
    "error_rate",
    "learnt_rule",
    "numbers",
    "shift_bound",
]
