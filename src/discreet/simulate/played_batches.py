"""The loop over batches that all simulations share: one run, or a stack of runs at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from discreet.arrays.backend import namespace
from discreet.control import Control, control_actions, people_in_control, slots_in_control
from discreet.oracles import Mechanism
from discreet.oracles.mechanisms.loss_sums import LossSums
from discreet.policies import Policy
from discreet.privacy.events import Event
from discreet.privacy.noise import Noise
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
    @property
    def control_action(self) -> int | None: ...
    @property
    def loss_sums(self) -> LossSums | None: ...


def shuffle(seed: int, rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The order of a seed's rows and its uniforms (rows, 2), shared by all algorithms."""
    rng = np.random.default_rng([seed, 2**31])
    return rng.permutation(rows), rng.random((rows, 2))


def played_control(
    control: Control, schedule: Schedule, owners: list[str] | None
) -> np.ndarray[Any, Any]:
    """Which rounds (T,) of a run are of the control: by slot, or by the people who own them.

    Of people a simulation hashes the ids without a secret, so that runs can be repeated.
    """
    if owners is not None:
        return people_in_control(control.share, b"", owners)
    rounds = np.arange(sum(schedule.lengths()))
    return slots_in_control(control.share, schedule, rounds)


class PlayedBatch(NamedTuple):
    """Actions and losses (..., n) of a batch, and what was released of it; the last has none.

    With labels the losses are bool: which rounds were lost.
    """

    chosen: Array
    incurred: Array
    release: Release | None


def play(
    plan: Playable,
    released: Released,
    features: Array,
    truth: Array,
    u: Array,
    noise: Noise,
    counts: Array | None = None,
    control: Array | None = None,
) -> Iterator[PlayedBatch]:
    """Batch by batch, without a loop over rounds.

    ``features`` (..., T, p) and ``u`` (..., T, 2) may have leading axes (seeds, 1) that meet the
    (runs,) of a stacked policy and mechanism. ``truth`` are labels (..., T), or the losses of all
    actions (..., T, A). ``counts`` (..., T) says which slots count; the others are void.
    ``control`` (T,) says which rounds are of the plan's control share.
    """
    xp = namespace(features)
    schedule = released.schedule
    labels = truth.ndim < features.ndim
    actions = np.arange(released.n_actions)[:, None]
    if xp is not np:
        actions = xp.asarray(actions, device=features.device)
    for number, length in enumerate(schedule.lengths(), start=1):
        rows = slice(schedule.start(number), schedule.start(number) + length)
        x = features[..., rows, :]
        chosen = plan.policy.sample(released, x, u[..., rows, :])
        part = None if control is None else control[rows]
        if part is not None:
            instead = control_actions(plan.control_action, released.n_actions, u[..., rows, :])
            chosen = xp.where(part, instead, chosen)
        if labels:
            incurred = chosen != truth[..., rows]
        else:
            losses = truth[..., rows, :]
            taken = (chosen[..., None, :] == actions).mT
            incurred = xp.where(taken, losses, xp.zeros_like(losses)).sum(-1)
        if not schedule.fitted(number):
            yield PlayedBatch(chosen, incurred, None)
            return
        # Stored with the rows contiguous, as the predictions are.
        taken = (chosen[..., None, :] == actions).mT
        if labels:
            losses = xp.astype((truth[..., None, rows] != actions).mT, features.dtype)
        observed = taken if plan.feedback == "bandit" else taken | ~taken
        if counts is not None:
            observed = observed & counts[..., rows, None]
        batch = Batch(x, losses, observed, part)
        own = noise.for_batch(number)
        fit = plan.mechanism.fit(batch, own, released.statistics)
        told = None
        if part is not None and plan.loss_sums is not None:
            told = plan.loss_sums.told(batch, own)
        event = noise.claim(plan.event)
        release = Release.of(fit, number, length, event=event, part_losses=told)
        released = released.add(release)._compact()
        yield PlayedBatch(chosen, incurred, release)
