"""Prior: what is known before the first person arrives, as public statistics of a plan.

It is part of the plan, so it is published with it. Private rows never enter here: they are
imported as the first batches, through ``release_batch``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from discreet.releases.canonical import decode_array, digest_of, encode_array
from discreet.releases.statistics import PUBLISHED, Statistics
from discreet.types import Array, JsonMapping, JsonObject
from discreet.validate import in_range, intact, whole

LEAST = 1e-6
"""No prior weighs less: leave it out instead."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Sums over public records, which the pool of ``PooledRidge`` adds to those of all releases.

    Make one with ``prior_from_logs`` or ``prior_from_released``. ``weight`` is what a record of
    the prior counts compared with one of the experiment's, ``source`` says where it comes from.
    ``made_for`` is the digest of what a plan must share with it: features, actions, outcome.
    ``records`` and sums are before weighting; ``variance`` is that of the noise in the sums,
    ``gram`` and ``response``. ``matrix``, ``following``, ``told`` and ``signal`` are as in a
    release: the stretch of the rows, that of the next batch, sums of losses, and how clear contexts
    are.

    >>> from discreet import Budget, Plan, UnitBall, prior_from_logs
    >>> plan = Plan(n_actions=2, features=UnitBall(1), budget=Budget(1.0, 1e-5))
    >>> prior_from_logs(plan, np.ones((4, 1)), [0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0]).records
    4
    """

    source: str
    made_for: str
    weight: float
    records: int
    variance: float
    gram: Array = field(repr=False)
    response: Array = field(repr=False)
    matrix: Array | None = field(default=None, repr=False)
    following: Array | None = field(default=None, repr=False)
    told: Array | None = field(default=None, repr=False)
    signal: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        in_range(
            "weight", self.weight, LEAST, 1.0, "1 makes a record of the prior worth one of the "
            "experiment's; give less if the world was another.",
        )  # fmt: skip
        whole("records of the prior", self.records, 1)
        for each in fields(self):  # as a document has them, so that a plan stays what was saved
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, each.name, decode_array(encode_array(value)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        names = [each.name for each in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.source, self.weight, self.records, self.variance))

    @property
    def text(self) -> str:
        """In words: what ``explain`` says of it."""
        return f"{self.source}: {self.records:,} records, each worth {self.weight:g}"

    @cached_property
    def statistics(self) -> Statistics:
        """The sums in the pool: w times the sums, with w² times the variance of their noise."""
        weight = self.weight
        return Statistics(
            weight * self.gram,
            weight * self.response,
            max(1, round(weight * self.records)),
            weight**2 * self.variance,
            self.matrix,
            self.following,
            None if self.told is None else weight * self.told,
            self.signal,
        )


def shared_digest(plan: JsonMapping) -> str:
    """Return the digest of what a prior and the document of a plan must have in common."""
    names = ("n_actions", "actions", "features", "feedback", "losses", "outcome")
    return digest_of({name: plan.get(name) for name in names})


def prior_of(plan: JsonMapping | None) -> Statistics | None:
    """Return the statistics of the prior that the document of a plan names, if it names one."""
    written = (plan or {}).get("prior")
    if written is None:
        return None
    with intact(
        "prior of the plan must hold weight, records and sums; a part is missing or wrong. "
        "Fetch the file again."
    ):
        facts: JsonObject = {name: value for name, value in written.items() if name != "kind"}
        for name in ("gram", "response", *PUBLISHED):
            if facts.get(name) is not None:
                facts[name] = decode_array(facts[name])
        facts |= {name: float(facts[name]) for name in ("weight", "variance")}
        return Prior(**facts).statistics
