"""The contracts: an oracle is configuration, which a plan calibrates into a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from discreet.batch import Batch
from discreet.privacy.budget import ONCE, Budget, Participation
from discreet.privacy.events import STACKED, Event
from discreet.privacy.noise import Noise
from discreet.releases.release import Fit
from discreet.releases.statistics import Statistics

if TYPE_CHECKING:
    from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics


@dataclass(frozen=True)
class Problem:
    """The public facts on which sensitivities and noise depend.

    ``p`` features (bias included), ``feedback`` "bandit" or "full", ``losses`` "general" or
    "one_label", and ``radii`` where the policy asks for confidence radii, which need a Gram.
    The budget is for one person, who takes part as ``participation`` says: a mechanism's event is
    that of one record in one release, small enough that all of a person's records cost the budget.
    ``joint`` says that rows are features of a context and an action together, in one block.
    ``half_life`` is for oracles that pool releases: after so many more a release counts half.

    >>> Problem(n_actions=3, p=11, feedback="full").losses_per_record
    3
    """

    n_actions: int
    p: int
    feedback: str = "bandit"
    losses: str = "general"
    radii: bool = False
    participation: Participation = ONCE
    half_life: int | None = None
    joint: bool = False

    @property
    def losses_per_record(self) -> int:
        """The number of losses of one record: 1, or A with full feedback."""
        return self.n_actions if self.feedback == "full" else 1


Configuration = TypeVar("Configuration")


class Mechanism(Protocol):
    """The numbers that calibration fixed, all public, and the private fit.

    A frozen dataclass of the oracle, the problem, the event and these numbers, as float fields:
    ``discreet plan`` lists them, and a stack has arrays of shape (R,) there. The metadata of
    ``event`` in ``Calibrated`` lets mechanisms be stacked.
    """

    @property
    def event(self) -> Event:
        """The cost of a fit, for every batch: the ledger charges it before data are read."""

    @property
    def noise_norm(self) -> float:
        """The expected size of the noise, to compare with the number of records; 0 for none."""

    @property
    def pooling(self) -> PooledStatistics | None:
        """The pool of statistics over all releases, for forecasts and recomputation; or None."""

    @property
    def couples_actions(self) -> bool:
        """True if matrices are dense over all actions, since noise couples them."""

    def fit(self, batch: Batch, noise: Noise, earlier: Sequence[Statistics] = (), /) -> Fit:
        """Statistics → noise → solve. ``earlier`` are the statistics of the releases before.

        All randomness comes from ``noise``. A fit never raises, warns or logs because of a row:
        it clamps the row. Where ``noise.exact``, it reads rows through ``legal_rows``.
        """


@runtime_checkable
class Oracle(Protocol):
    """Only configuration: a frozen dataclass of words and numbers, checked when it is made.

    A plan writes, compares and digests its fields.

    >>> from discreet import Budget, Problem, Ridge
    >>> mechanism = Ridge().calibrate(Problem(n_actions=2, p=3), Budget(1.0, 1e-5))
    >>> type(mechanism.event).__name__
    'Gaussian'
    """

    @property
    def bounded(self) -> bool:
        """True if predictions lie in [0, 1]."""

    def calibrate(self, problem: Problem, budget: Budget) -> Mechanism:
        """The mechanism for a problem and a budget; ``InvalidInput`` where there is none."""


@dataclass(frozen=True)
class Calibrated(Generic[Configuration]):
    """The fields of every mechanism; a subclass adds the numbers that calibration fixed."""

    oracle: Configuration
    problem: Problem
    event: Event = field(kw_only=True, metadata={"stacked": STACKED})

    @property
    def pooling(self) -> PooledStatistics | None:
        """None: each release is fitted from its own batch."""
        return None

    @property
    def couples_actions(self) -> bool:
        """False: each action has separate noise."""
        return False

    summable: ClassVar[bool] = False
    """True if a fit reads exact sums of rows and no row, so that rows may lie in partitions."""
