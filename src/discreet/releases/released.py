"""All releases so far, and the file in which they are handed on.

A policy sees ``Released`` and nothing else, so whatever it computes is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, at_least, lift, namespace
from discreet.arrays.linear_algebra import identity, inverse, inverse_repaired, quadratic_forms
from discreet.errors import CorruptRelease, InvalidInput
from discreet.releases.canonical import canonical, digest_of, read_document, write_atomically
from discreet.releases.release import Gram, Predictor, Release, altered, following
from discreet.releases.statistics import Statistics
from discreet.schedule import Schedule
from discreet.types import Array

FILE_FORMAT = "discreet-released/1"
_FILE_KEYS = {"format", "plan", "releases", "head"}


@dataclass(frozen=True)
class Released:
    """All releases so far: the only thing of the past that a policy may see."""

    n_actions: int
    schedule: Schedule = field(default_factory=Schedule)
    items: tuple[Release, ...] = ()
    plan: Mapping[str, Any] | None = field(default=None, repr=False)
    summed: Gram | None = field(default=None, repr=False)
    """The sum of the Grams of releases that no longer carry their own; see ``compact``."""

    @property
    def latest(self) -> Release | None:
        """The newest release; None before the first."""
        return self.items[-1] if self.items else None

    @cached_property
    def rounds(self) -> int:
        """Rounds finished before the batch that is now played."""
        return sum(item.records for item in self.items)

    @cached_property
    def batch_length(self) -> int:
        """B_m: nominal length of the batch that is now played."""
        return self.schedule.nominal(len(self.items) + 1)

    @property
    def statistics(self) -> tuple[Statistics, ...]:
        """What the next fit may use of the past: all statistics that were released."""
        return tuple(item.statistics for item in self.items if item.statistics is not None)

    def add(self, release: Release) -> Released:
        """These releases and one more."""
        return replace(self, items=(*self.items, release))

    def compact(self) -> Released:
        """The same for policies and fits: Grams summed up, the newest pool. A simulation's."""
        if not any(item.gram for item in self.items):
            return self
        total = self._total_gram if self.summed or self.items[-1].gram else None
        items = tuple(replace(item, gram=None) for item in self.items)
        return replace(self, items=items, summed=total)

    def runs(self, some: slice) -> Released:
        """What the policies of some runs of a stack see: axis −3 of weights (..., R, A, p)."""
        items = tuple(
            replace(
                item,
                predictor=replace(
                    item.predictor, weights=_some_runs(item.predictor.weights, some, 2)
                ),
            )
            for item in self.items
        )
        total = self._total_gram if self.summed else None
        if total is not None:
            values = _some_runs(total.values, some, 2 if total.dense else 3)
            step = total.step if np.ndim(total.step) == 0 else total.step[some]
            total = replace(total, values=values, step=step)
        return replace(self, items=items, summed=total)

    def losses_of_each(self, features: Array) -> Iterator[Array]:
        """Predicted losses (..., n, A) of every release, the oldest first.

        A single run asks all its predictors in one product; stacked runs go one by one, since
        together they would not fit into memory.
        """
        if self._joined is None:
            yield from (item.predictor.losses(features) for item in self.items)
            return
        together = self._joined.losses(features)
        for first in range(0, together.shape[-1], self.n_actions):
            yield together[..., first : first + self.n_actions]

    @cached_property
    def _joined(self) -> Predictor | None:
        predictors = [item.predictor for item in self.items]
        if any(each.weights.ndim > 2 or each.link != predictors[0].link for each in predictors):
            return None
        weights = [each.weights for each in predictors]
        return Predictor(namespace(weights[0]).concat(weights, axis=0), predictors[0].link)

    def radii(self, features: Array) -> Array:
        """r_a = √max(φᵀ(ΣG̃ + I)⁻¹φ, 0): (..., n, p) -> (..., n, A). [paper, "Private radii"]"""
        xp = namespace(features)
        squares = quadratic_forms(features, as_like(self._inverse_blocks, features))
        if squares.shape[-1] != self.n_actions:  # one block shared by all actions
            squares = xp.concat([squares] * self.n_actions, axis=-1)
        return xp.sqrt(at_least(squares, 0.0))

    @cached_property
    def _total_gram(self) -> Gram:
        """ΣG̃ over all releases, with the newest one's repair step."""
        grams = [item.gram for item in self.items if item.gram is not None]
        if self.summed is None and len(grams) != len(self.items):
            raise InvalidInput(
                "radii must come from released Grams; a release has none. "
                "Use a plan whose policy needs radii from the start."
            )
        if self.summed is not None:
            grams = [self.summed, *grams]
        return replace(grams[-1], values=sum(gram.values for gram in grams))

    @cached_property
    def _inverse_blocks(self) -> Array:
        """Diagonal blocks of (ΣG̃ + I)⁻¹, (..., A or 1, p, p)."""
        gram = self._total_gram
        total, xp = gram.values, namespace(gram.values)
        p = self.items[-1].predictor.weights.shape[-1]
        if gram.dense:
            dense = inverse(total + identity(total.shape[-1], total))
            blocks = [
                dense[..., a * p : (a + 1) * p, a * p : (a + 1) * p] for a in range(self.n_actions)
            ]
            return xp.stack(blocks, axis=-3)
        step = lift(gram.step, total, 1)
        return inverse_repaired(total + identity(p, total), step)

    def save(self, path: str | Path) -> None:
        """Write the public part: plan, releases, digests. Anyone may read it."""
        if self.plan is None:
            raise InvalidInput(
                "released must come from a learner to be saved; its plan is unknown. "
                "Save learner.released."
            )
        chain = [{"digest": item.digest, "release": item.to_json()} for item in self.items]
        head = chain[-1]["digest"] if chain else digest_of(self.plan)
        document = {"format": FILE_FORMAT, "plan": self.plan, "releases": chain, "head": head}
        write_atomically(Path(path), canonical(document) + b"\n", mode=0o644)

    @classmethod
    def load(cls, path: str | Path) -> Released:
        """Read releases and verify every digest and link of the chain."""
        return cls.from_document(read_document(path))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Released:
        """Verify and unpack the document of a released file."""
        if document.get("format") != FILE_FORMAT:
            raise CorruptRelease(
                f"format must be {FILE_FORMAT!r}; got {document.get('format')!r}. "
                "Pass a file that released.save() wrote."
            )
        try:
            plan, entries = document["plan"], document["releases"]
            n_actions = int(plan["n_actions"])
            schedule = Schedule(int(plan["first_batch"]), plan["horizon"], float(plan["growth"]))
            root = previous = digest_of(plan)
            items: list[Release] = []
            for number, entry in enumerate(entries, start=1):
                release = following(entry["release"], number, root, previous)
                if release.digest != entry["digest"] or len(entry) != 2:
                    raise altered(number)
                items.append(release)
                previous = entry["digest"]
            if document["head"] != previous or document.keys() != _FILE_KEYS:
                raise CorruptRelease(
                    "head must be the digest of the last release; it is not. "
                    "The file was cut short or altered: fetch it again."
                )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, CorruptRelease):
                raise
            raise CorruptRelease(
                "released file must have a plan and releases; a part is missing. Fetch it again."
            ) from None
        return cls(n_actions, schedule, tuple(items), plan)


def _some_runs(array: Array, some: slice, axes: int) -> Array:
    """Some of the runs of (..., R, and so many axes more); what all runs share stays."""
    if array.shape[-axes - 1] == 1:
        return array
    return array[(..., some, *[slice(None)] * axes)]
