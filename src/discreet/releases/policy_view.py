"""Releases as a policy reads them: predictions, radii, rounds. Nothing here can be saved."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import accumulate
from typing import Self

import numpy as np

from discreet.arrays.backend import as_like, at_least, namespace, padded, per_run
from discreet.arrays.linear_algebra import identity, inverse, inverse_repaired, quadratic_forms
from discreet.design.action_names import checked_names
from discreet.design.outcome import Outcome, declared
from discreet.design.schedule import Schedule
from discreet.errors import CorruptRelease, InvalidInput
from discreet.features.offered import OfferedRows
from discreet.releases.catalogue import ActionChange
from discreet.releases.release import DecidingRelease, Gram, Predictor, Release
from discreet.releases.statistics import remembered, share
from discreet.types import Array, JsonMapping


@dataclass(frozen=True)
class PolicyView:
    """Releases as a policy reads them: whole ones in ``Released``, or the parts that decide."""

    n_actions: int
    schedule: Schedule = field(default_factory=Schedule)
    items: tuple[Release | DecidingRelease, ...] = ()
    plan: JsonMapping | None = field(default=None, repr=False)
    changes: tuple[ActionChange, ...] = field(default=(), repr=False)
    _summed: Gram | None = field(default=None, repr=False)
    # The sum of the Grams of releases that no longer carry their own: a simulation's.

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the prepared policy, which depends on ``n_actions``."""
        return {name: value for name, value in self.__dict__.items() if name != "_one_row"}

    def offering(self, count: int) -> Self:
        """The same releases for requests that are offered so many actions: a formula's A."""
        if count == self.n_actions:
            return self
        views: dict[int, Self] = self.__dict__.setdefault("_offering", {})
        if count not in views:
            views[count] = copy.copy(self)
            object.__setattr__(views[count], "n_actions", count)
        return views[count]

    @property
    def latest(self) -> Release | DecidingRelease | None:
        """The newest release; None before the first."""
        return self.items[-1] if self.items else None

    @property
    def signal(self) -> Array | None:
        """(..., 1 + A): how clear contexts are, and the error of each action, if published."""
        latest = self.latest
        return None if latest is None or latest.statistics is None else latest.statistics.signal

    @property
    def rule_text(self) -> str | None:
        """Sentence on which of the two rules of ``AdaptivePO`` decides, and why.

        None where the plan has another policy, and where no release has a signal.
        """
        kind = (self.plan or {}).get("policy", {}).get("kind")
        if kind != "AdaptivePO" or self.signal is None:
            return None
        clear = float(self.signal[0])
        share = max(clear, 1.0 - clear)
        mostly = "" if share == 1.0 else f" in {100 * share:.0f} % of all cases"
        if clear < 0.5:
            return (
                "Personal choices have not been shown to help clearly yet: decisions follow the "
                f"newest release{mostly}, mostly by the mean outcome of each action, and go on "
                "trying actions that may be as good."
            )
        # Noise may be why they differ, so this is no proof that contexts help.
        return (
            "Predicted outcomes differ clearly between actions: decisions follow all releases"
            f"{mostly}, and rarely tried actions get a bonus."
        )

    def blocks(self, batch: int) -> int:
        """Return the number of actions that have separate weights in a batch."""
        if (self.plan or {}).get("features", {}).get("kind") == "Joint":
            return 1
        added = [change.added for change in self.changes if (change.batch or 0) <= batch]
        return len(set(self.actions or ()).union(*added)) or self.n_actions

    @property
    def possible_blocks(self) -> set[int]:
        """Numbers of actions with separate weights, after none, some or all of the changes."""
        batches = {0, *(change.batch or 0 for change in self.changes)}
        return {self.blocks(batch) for batch in batches}

    @cached_property
    def actions(self) -> tuple[str, ...] | None:
        """The names of the actions, in the order of their numbers; None if the plan has none."""
        named = (self.plan or {}).get("actions")
        if named is None:
            return None
        if isinstance(named, Mapping):  # a catalogue
            return tuple(named.get("ids", ()))
        with suppress(InvalidInput):
            if len(names := checked_names(named)) == self.n_actions:
                return names
        raise CorruptRelease(
            f"actions of the plan must be {self.n_actions} distinct words; they are not. "
            "Read it with the version of discreet that wrote it."
        )

    @cached_property
    def outcome(self) -> Outcome:
        """The outcome that people report under the plan, with its range."""
        return declared(self.plan)

    @cached_property
    def rounds(self) -> int:
        """Rounds finished before the batch that is now played."""
        return sum(item.records for item in self.items)

    @cached_property
    def remembered(self) -> list[tuple[Release | DecidingRelease, float]]:
        """The releases that a policy still reads, the oldest first, with what each counts."""
        return remembered(self.items, self.schedule.half_life)

    @cached_property
    def remembered_rounds(self) -> float:
        """``rounds``, each release with its weight relative to the newest."""
        return sum(part * item.records for item, part in self.remembered)

    @cached_property
    def batch_length(self) -> int:
        """B_m: nominal length of the batch that is now played."""
        return self.schedule.nominal(len(self.items) + 1)

    def losses_of_each(self, features: Array) -> Iterator[Array]:
        """Predicted losses (..., n, A) of each release that is remembered, the oldest first.

        A single run applies all its predictors in one product; stacked runs go one by one, since
        together they would not fit into memory.
        """
        if self._joined is None:
            yield from (item.predictor.losses(features) for item, _ in self.remembered)
            return
        if isinstance(features, OfferedRows):
            weights = [item.predictor.weights for item, _ in self.remembered]
            yield from map(self._joined.linked, features.scores_of_each(weights))
            return
        together = self._joined.losses(features)
        yield from (together[..., place] for place in self._places)

    def losses_of_one(self, features: Array) -> list[list[float]]:
        """``losses_of_each`` for one row, as plain numbers."""
        if self._joined is None or isinstance(features, OfferedRows):
            return [losses[0].tolist() for losses in self.losses_of_each(features)]
        together = self._joined.losses(features)[0].tolist()
        return [together[place] for place in self._places]

    @cached_property
    def _places(self) -> list[slice]:
        """The rows of each release in the joined predictor."""
        ends = list(accumulate(item.predictor.weights.shape[-2] for item, _ in self.remembered))
        return [slice(first, end) for first, end in zip([0, *ends], ends, strict=False)]

    @cached_property
    def _joined(self) -> Predictor | None:
        predictors = [item.predictor for item, _ in self.remembered]
        if any(each.weights.ndim > 2 or each.link != predictors[0].link for each in predictors):
            return None
        weights = [each.weights for each in predictors]
        return Predictor(namespace(weights[0]).concat(weights, axis=0), predictors[0].link)

    def radii(self, features: Array) -> Array:
        """r_a = √max(φᵀ(ΣG̃ + I)⁻¹φ, 0): (..., n, p) -> (..., n, A). [paper, "Private radii"]"""
        xp, squares = namespace(features), self.squared_radii(features)
        if not isinstance(features, OfferedRows) and squares.shape[-1] != self.n_actions:
            squares = xp.concat([squares] * self.n_actions, axis=-1)  # one block for all actions
        return xp.sqrt(at_least(squares, 0.0))

    def squared_radii(self, features: Array) -> Array:
        """φᵀ(ΣG̃ + I)⁻¹φ, which rounding may make negative; one column if actions share a block."""
        if isinstance(features, OfferedRows):
            return features.squares(self._inverse_blocks)
        return quadratic_forms(features, as_like(self._inverse_blocks, features))

    @cached_property
    def _total_gram(self) -> Gram:
        """ΣG̃ over all releases, each as it still counts, with the newest one's repair step."""
        grams = [item.gram for item in self.items if item.gram is not None]
        if self._summed is None and len(grams) != len(self.items):
            raise InvalidInput(
                "radii must come from released Grams; a release has none. "
                "Use a plan whose policy needs radii from the start."
            )
        if self._summed is not None:
            grams = [self._summed, *grams]
        ages = range(len(grams) - 1, -1, -1)  # what was summed before is as old as its newest
        parts = [share(age, self.schedule.half_life) for age in ages]
        shape, axes = grams[-1].values.shape, (-2, -1) if grams[-1].dense else (-3,)
        values = (padded(gram.values, shape, axes) for gram in grams)
        each = (one if part == 1.0 else part * one for part, one in zip(parts, values, strict=True))
        return replace(grams[-1], values=reduce(operator.add, each))

    @cached_property
    def _inverse_blocks(self) -> Array:
        """Diagonal blocks of (ΣG̃ + I)⁻¹, (..., A or 1, p, p)."""
        gram = self._total_gram
        total, xp = gram.values, namespace(gram.values)
        p = self.items[-1].predictor.weights.shape[-1]
        if gram.dense:
            dense = inverse(total + identity(total.shape[-1], total))
            places = [slice(first, first + p) for first in range(0, total.shape[-1], p)]
            return xp.stack([dense[..., place, place] for place in places], axis=-3)
        step = per_run(gram.step, total, 1)
        return inverse_repaired(total, step, 1.0)

    def _runs(self, some: slice) -> Self:
        """For simulations: some runs of a stack, which is axis −3 of weights (..., R, A, p)."""
        items = []
        for item in self.items:
            weights = _some_runs(item.predictor.weights, some, 2)
            items.append(replace(item, predictor=replace(item.predictor, weights=weights)))
        if self.signal is not None and items[-1].statistics is not None:
            signal = _some_runs(self.signal, some, 1)
            newest = replace(items[-1].statistics, signal=signal)
            items[-1] = replace(items[-1], statistics=newest)
        total = self._total_gram if self._summed else None
        if total is not None:
            values = _some_runs(total.values, some, 2 if total.dense else 3)
            step = total.step if np.ndim(total.step) == 0 else total.step[some]
            total = replace(total, values=values, step=step)
        return replace(self, items=tuple(items), _summed=total)


def _some_runs(array: Array, some: slice, axes: int) -> Array:
    """Some runs of (..., R, then ``axes`` more axes); an array that all runs share stays."""
    if array.shape[-axes - 1] == 1:
        return array
    return array[(..., some, *[slice(None)] * axes)]
