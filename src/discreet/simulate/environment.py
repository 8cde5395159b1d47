"""A classification set as a bandit: loss 0 for the right label, 1 for a wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from discreet.arrays.backend import namespace
from discreet.errors import InvalidInput
from discreet.oracles import Mechanism
from discreet.plan import Plan
from discreet.policies import Policy
from discreet.privacy.budget import Budget
from discreet.privacy.events import Event
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import Noise, SeededNoise
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.rows.batch import Batch
from discreet.schedule import Schedule
from discreet.types import Array


class Playable(Protocol):
    """What a run needs of a plan: a plan, or a stack of them."""

    @property
    def policy(self) -> Policy: ...
    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def event(self) -> Event: ...
    @property
    def feedback(self) -> str: ...


@dataclass(frozen=True)
class Evaluation:
    """What one run did: losses round by round, the releases, and what may be claimed."""

    losses: np.ndarray[Any, Any] = field(repr=False)
    released: Released = field(repr=False)
    ledger: Ledger = field(repr=False)
    noise_scale_of: Budget

    @cached_property
    def curve(self) -> np.ndarray[Any, Any]:
        """Progressive-validation loss L(t) = (1/t) Σ_{s≤t} ℓ_s, for t = 1 … T."""
        rounds = np.arange(1, self.losses.shape[-1] + 1)
        return np.asarray(np.cumsum(self.losses, axis=-1) / rounds)

    @property
    def loss(self) -> float:
        """The curve's last value: the mean loss over the run."""
        return float(self.losses.mean())


def evaluate(
    plan: Plan, contexts: Any, labels: Any, *, seed: int = 0, noise: Noise | None = None
) -> Evaluation:
    """Play a labelled set once, in an order that the seed shuffles, until the plan's horizon.

    The seed gives permutation, action draws and noise, so runs of different plans are paired
    and repeatable; seeded noise has the scale that the budget asks for but protects nobody, and
    the ledger says ``NonPrivate``. Pass ``noise=SecureNoise()`` for private releases.

    >>> from discreet import Budget, UnitBall, Ridge, SquareCB
    >>> x = np.random.default_rng(0).normal(size=(500, 2))
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget.none(),
    ...             policy=SquareCB(scale=16.0), oracle=Ridge())
    >>> evaluate(plan, x, (x[:, 0] > 0).astype(int), seed=0).loss < 0.25
    True
    """
    features = plan.features.map(contexts)
    labels = _checked_labels(labels, len(features), plan.n_actions)
    rounds = min(len(features), plan.horizon or len(features))
    order, u = (drawn[:rounds] for drawn in shuffle(seed, len(features)))
    noise = noise or SeededNoise(seed)
    schedule = Schedule(plan.first_batch, rounds, plan.growth)
    ledger = Ledger(plan.budget if noise.exact else Budget.none())
    for number in range(1, len(schedule.lengths())):
        ledger = ledger.charge(f"batch {number}", noise.claim(plan.event))
    released = Released(plan.n_actions, schedule)
    batches = []
    for incurred, release in play(plan, released, features[order], labels[order], u, noise):
        batches.append(incurred)
        if release is not None:
            released = released.add(release)
    return Evaluation(np.concatenate(batches).astype(float), released, ledger, plan.budget)


def shuffle(seed: int, rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The order of a seed's rows and its uniforms (rows, 2), shared by all algorithms."""
    rng = np.random.default_rng([seed, 2**31])
    return rng.permutation(rows), rng.random((rows, 2))


def play(
    plan: Playable, released: Released, features: Array, labels: Array, u: Array, noise: Noise
) -> Iterator[tuple[Array, Release | None]]:
    """Batch by batch, without a loop over rounds: which rounds were lost, and the release.

    ``features`` (..., T, p), ``labels`` (..., T) and ``u`` (..., T, 2) may have leading axes
    (seeds, 1) that meet the (runs,) of a stacked policy and mechanism. Yields (..., n) of bool.
    """
    xp = namespace(features)
    schedule = released.schedule
    actions = np.arange(released.n_actions)[:, None]
    if xp is not np:
        actions = xp.asarray(actions, device=features.device)
    for number, length in enumerate(schedule.lengths(), start=1):
        rows = slice(schedule.start(number), schedule.start(number) + length)
        x = features[..., rows, :]
        chosen = plan.policy.sample(released, x, u[..., rows, :])
        if not schedule.fitted(number):
            yield chosen != labels[..., rows], None
            return
        # Stored with the rows contiguous, as the predictions are.
        wrong = (labels[..., None, rows] != actions).mT
        taken = (chosen[..., None, :] == actions).mT
        observed = taken if plan.feedback == "bandit" else taken | ~taken
        batch = Batch(x, xp.astype(wrong, features.dtype), observed)
        fit = plan.mechanism.fit(batch, noise.for_batch(number), released.statistics)
        event = noise.claim(plan.event)
        release = Release.of(fit, number, length, event=event)
        released = released.add(release)._compact()
        yield chosen != labels[..., rows], release


def _checked_labels(labels: Any, rows: int, n_actions: int) -> np.ndarray[Any, Any]:
    array = np.asarray(labels)
    whole = array.dtype.kind in "iub" or (
        array.dtype.kind == "f" and bool((array == np.floor(array)).all())
    )
    if array.shape != (rows,) or not whole:
        raise InvalidInput(
            f"labels must be {rows} whole numbers, one per context; got shape {array.shape} of "
            f"{array.dtype}. Encode the classes as 0 … {n_actions - 1}."
        )
    if rows == 0 or array.min() < 0 or array.max() >= n_actions:
        raise InvalidInput(
            f"labels must be actions 0 … {n_actions - 1}, at least one; got others. "
            "Set n_actions to the number of classes."
        )
    return array.astype(np.int64)
