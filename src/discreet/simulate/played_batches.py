"""The loop over batches that all simulations share: one run, or a stack of runs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from discreet.arrays.backend import namespace
from discreet.batch import Batch
from discreet.batches.release_batch import Calibration
from discreet.design.control import Control, control_actions, people_in_control, slots_in_control
from discreet.design.schedule import Schedule
from discreet.features.offered import OfferedPairs
from discreet.policies import Policy
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.simulate.played_offers import PlayedOffers
from discreet.types import Array, NumpyArray


class Playable(Calibration, Protocol):
    """A plan, or a stack of plans, as a simulation plays it."""

    @property
    def played_policy(self) -> Policy: ...
    @property
    def feedback(self) -> str: ...
    @property
    def control_action(self) -> int | None: ...


def shuffle(seed: int, rows: int) -> tuple[NumpyArray, NumpyArray]:
    """Return the order of a seed's rows and its uniforms (rows, 2), shared by all algorithms."""
    order, draws = seeded_draws(seed, rows)
    return order, draws.random((rows, 2))


def seeded_draws(seed: int, rows: int) -> tuple[NumpyArray, np.random.Generator]:
    """Return the order of a seed's rows, and the generator whose next draws are its uniforms."""
    rng = np.random.default_rng([seed, 2**31])
    return rng.permutation(rows), rng


def played_control(
    control: Control, planned: Schedule, rounds: int, owners: list[str] | None
) -> NumpyArray:
    """Return a mask (T,) of the rounds of a run that are of the control, by slot or by person.

    By slot, as a ``Learner`` plays: rounds of a batch that the ``planned`` schedule never fits take
    no slot, and follow the policy. A batch that only the data end counts as fitted. Ids of people
    are hashed without a secret, so that runs can be repeated.
    """
    if owners is not None:
        return people_in_control(control.share, b"", owners)
    slots, last = np.arange(rounds), len(replace(planned, horizon=rounds).lengths())
    if not planned.fitted(last):
        slots[planned.start(last) :] = -1
    return slots_in_control(control.share, planned, slots)


class PlayedBatch(NamedTuple):
    """Actions and losses (..., n) of a batch, and its release; the last batch has none.

    With labels the losses are bool.
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
    release: Callable[[Batch, Released], Release],
    counts: Array | None = None,
    control: Array | None = None,
) -> Iterator[PlayedBatch]:
    """Play batch by batch, without a loop over rounds.

    ``features`` (..., T, p), or offers of as many rounds, and ``u`` (..., T, 2) may have leading
    axes (seeds, 1) that meet the (runs,) of a stacked policy and mechanism. ``truth`` are labels
    (..., T), or the losses of all actions (..., T, A), or of the offered ones (..., T, K).
    ``release`` fits a batch after the releases before it.
    ``counts`` (..., T) is a mask of the slots that count; the others are void.
    ``control`` (T,) is a mask of the rounds of the plan's control share.
    """
    schedule = released.schedule
    play_rows = _offers_played if isinstance(features, PlayedOffers) else _played
    for number, length in enumerate(schedule.lengths(), start=1):
        rows = slice(schedule.start(number), schedule.start(number) + length)
        part = None if control is None else control[rows]
        played = play_rows(plan, released, features, truth, u[..., rows, :], rows, part)
        chosen, incurred, batch_rows = played
        if not schedule.fitted(number):
            yield PlayedBatch(chosen, incurred, None)
            return
        x, losses, observed = batch_rows()
        if counts is not None:
            observed = observed & counts[..., rows, None]
        made = release(Batch(x, losses, observed, part), released)
        released = released.add(made)._compact()
        yield PlayedBatch(chosen, incurred, made)


Played = tuple[Array, Array, Callable[[], tuple[Array, Array, Array]]]
"""Actions and losses (..., n) of some rounds, and a function of features, losses, observed."""


def _played(
    plan: Playable,
    released: Released,
    features: Array,
    truth: Array,
    u: Array,
    rows: slice,
    control: Array | None,
) -> Played:
    """Play rounds in which every action of the plan is offered."""
    xp, x = namespace(features), features[..., rows, :]
    labels = truth.ndim < features.ndim
    chosen = plan.played_policy.sample(released, x, u)
    if control is not None:
        instead = control_actions(plan.control_action, released.n_actions, u)
        chosen = xp.where(control, instead, chosen)
    actions = np.arange(released.n_actions)[:, None]
    if xp is not np:  # of one type with what was chosen: a GPU then reads several numbers at once
        actions = xp.asarray(actions, dtype=chosen.dtype, device=features.device)
    if labels:
        incurred = chosen != xp.astype(truth[..., rows], chosen.dtype, copy=False)
    else:
        taken = (chosen[..., None, :] == actions).mT
        losses = truth[..., rows, :]
        incurred = xp.where(taken, losses, xp.zeros_like(losses)).sum(-1)

    def batch_rows() -> tuple[Array, Array, Array]:
        # Stored with the rows contiguous, as the predictions are.
        taken = (chosen[..., None, :] == actions).mT
        if labels:
            losses = xp.astype((truth[..., None, rows] != actions).mT, features.dtype)
        else:
            losses = truth[..., rows, :]
        return x, losses, taken if plan.feedback == "bandit" else taken | ~taken

    return chosen, incurred, batch_rows


def _offers_played(
    plan: Playable,
    released: Released,
    features: PlayedOffers,
    truth: Array,
    u: Array,
    rows: slice,
    control: Array | None,
) -> Played:
    """Play rounds that offer different actions; chosen are places in the offers."""
    some, table = features.part(rows), truth[..., rows, :]
    xp = namespace(table)
    chosen = some.sample(plan.played_policy, released, u)
    if control is not None:
        chosen = xp.where(control, some.at_random(u), chosen)
    shape = np.broadcast_shapes(chosen.shape, table.shape[:-1])
    table = xp.broadcast_to(table, (*shape, table.shape[-1]))
    picked = xp.broadcast_to(chosen, shape)[..., None]
    incurred = xp.take_along_axis(table, picked, axis=-1)[..., 0]

    def batch_rows() -> tuple[Array, Array, Array]:
        x, blocks = some.offered.stored(chosen)
        if isinstance(some.offered, OfferedPairs):
            losses = incurred[..., None]
            return x, losses, losses == losses
        actions = np.arange(released.n_actions)
        if xp is not np:
            actions = xp.asarray(actions, device=table.device)
        observed = blocks[..., None] == actions
        return x, xp.where(observed, incurred[..., None], 0.0), observed

    return chosen, incurred, batch_rows
