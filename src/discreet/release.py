"""What is published: predictors and Grams after noise, in canonical JSON with a hash chain.

Everything in this file is public by construction. A policy sees ``Released`` and nothing
else, so whatever it computes is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.backend import (
    apply_rows,
    as_like,
    at_least,
    at_most,
    lift,
    namespace,
    sigmoid,
)
from discreet.encoding import (
    canonical,
    decode_array,
    digest_of,
    encode_array,
    read_document,
    write_atomically,
)
from discreet.errors import CorruptRelease, InvalidInput
from discreet.linalg import identity, inverse_repaired, quadratic_forms
from discreet.privacy import events
from discreet.schedule import Doubling
from discreet.statistics import Statistics
from discreet.types import Array

FORMAT = "discreet-release/1"
FILE_FORMAT = "discreet-released/1"
_FILE_KEYS = {"format", "plan", "releases", "head"}
LINKS = ("identity", "logistic", "clip")


@dataclass(frozen=True)
class Predictor:
    """Predicted losses: scores θ_a·b through a link; weights are (..., A, p).

    >>> Predictor(np.array([[1.0, 0.0], [0.0, 1.0]]), "identity").losses(np.array([[0.6, 0.2]]))
    array([[0.6, 0.2]])
    """

    weights: Array
    link: str

    def scores(self, features: Array) -> Array:
        """Before the link: (..., n, p) -> (..., n, A)."""
        return apply_rows(features, self.weights)

    def losses(self, features: Array) -> Array:
        """After the link: (..., n, p) -> (..., n, A)."""
        scores = self.scores(features)
        if self.link == "logistic":
            return sigmoid(scores)
        if self.link == "clip":
            return at_least(at_most(scores, 1.0), 0.0)
        return scores


@dataclass(frozen=True)
class Gram:
    """A released second-moment matrix: blocks (..., A or 1, p, p), or ``dense`` (..., Ap, Ap).

    ``step`` (...) is the public size of its noise, by which a repair may shift it.
    """

    values: Array
    dense: bool
    step: Any


@dataclass(frozen=True)
class Fit:
    """What an oracle makes of a batch; it already carries its noise."""

    predictor: Predictor
    gram: Gram | None = None
    statistics: Statistics | None = None


@dataclass(frozen=True)
class Release:
    """One published fit: batch number, its public size, predictor, Gram if radii need it.

    ``previous`` is the digest of the release before, or of the plan for the first one;
    ``statistics`` is the pool that the next fit adds to, if the oracle keeps one.
    """

    number: int
    records: int
    predictor: Predictor
    gram: Gram | None = None
    event: events.Event = field(default_factory=lambda: events.NonPrivate("a simulation"))
    plan_digest: str = ""
    previous: str = ""
    statistics: Statistics | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The document whose canonical bytes are hashed and signed."""
        predictor = {"link": self.predictor.link, "weights": encode_array(self.predictor.weights)}
        gram = None
        if self.gram is not None:
            gram = {
                "dense": self.gram.dense,
                "values": encode_array(self.gram.values),
                "step": repr(float(self.gram.step)),
            }
        document = {
            "format": FORMAT,
            "number": self.number,
            "records": self.records,
            "plan": self.plan_digest,
            "previous": self.previous,
            "event": events.to_json(self.event),
            "predictor": predictor,
            "gram": gram,
        }
        if self.statistics is not None:
            document["statistics"] = self.statistics.to_json()
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Release:
        """The release of a JSON document; refuses anything that discreet would not write."""
        try:
            if document["format"] != FORMAT:
                raise CorruptRelease(
                    f"format must be {FORMAT!r}; got {document['format']!r}. "
                    "Read it with the version of discreet that wrote it."
                )
            if document["predictor"]["link"] not in LINKS:
                raise CorruptRelease("link must be a known one; it is not. Fetch it again.")
            gram, pool = document["gram"], document.get("statistics")
            return cls(
                number=int(document["number"]),
                records=int(document["records"]),
                predictor=Predictor(
                    decode_array(document["predictor"]["weights"]), document["predictor"]["link"]
                ),
                gram=None
                if gram is None
                else Gram(decode_array(gram["values"]), bool(gram["dense"]), float(gram["step"])),
                event=events.from_json(document["event"]),
                plan_digest=document["plan"],
                previous=document["previous"],
                statistics=None if pool is None else Statistics.from_json(pool),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, CorruptRelease):
                raise
            raise CorruptRelease(
                "release must be a document that discreet wrote; a part is missing or of another "
                "kind. Fetch it again."
            ) from None


@dataclass(frozen=True)
class Released:
    """All releases so far: the only thing of the past that a policy may see."""

    n_actions: int
    schedule: Doubling = field(default_factory=Doubling)
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
    def statistics(self) -> Statistics | None:
        """What the next fit adds to: the newest pool, if the oracle keeps one."""
        return self.latest.statistics if self.latest else None

    def add(self, release: Release) -> Released:
        """These releases and one more."""
        return replace(self, items=(*self.items, release))

    def compact(self) -> Released:
        """The same for policies and fits: Grams summed up, the newest pool. A simulation's."""
        if not any(item.gram or item.statistics for item in self.items):
            return self
        total = self._total_gram if self.summed or self.items[-1].gram else None
        *before, newest = (replace(item, gram=None) for item in self.items)
        items = (*(replace(item, statistics=None) for item in before), newest)
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
            inverse = xp.linalg.inv(total + identity(total.shape[-1], total))
            blocks = [
                inverse[..., a * p : (a + 1) * p, a * p : (a + 1) * p]
                for a in range(self.n_actions)
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
            schedule = Doubling(int(plan["first_batch"]), plan["horizon"])
            root = previous = digest_of(plan)
            items: list[Release] = []
            for number, entry in enumerate(entries, start=1):
                release = following(entry["release"], number, root, previous)
                if release.digest != entry["digest"] or len(entry) != 2:
                    raise _altered(number)
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


def following(document: Mapping[str, Any], number: int, plan: str, previous: str) -> Release:
    """The release of a document in its place: number, digest of the plan, of the one before."""
    release = Release.from_json(document)
    place = (release.number, release.plan_digest, release.previous)
    # The digest of what was understood: nothing may hide beside it.
    if place != (number, plan, previous) or digest_of(document) != release.digest:
        raise _altered(number)
    return release


def _altered(number: int) -> CorruptRelease:
    return CorruptRelease(
        f"release {number} must match its digest and follow the one before; it does not. "
        "The file was altered: fetch it again."
    )


def _some_runs(array: Array, some: slice, axes: int) -> Array:
    """Some of the runs of (..., R, and so many axes more); what all runs share stays."""
    if array.shape[-axes - 1] == 1:
        return array
    return array[(..., some, *[slice(None)] * axes)]


def publishable(release: Release) -> Release:
    """The release with its numbers rounded as they will be read: one value everywhere."""
    predictor = replace(release.predictor, weights=_rounded(release.predictor.weights))
    gram = release.gram
    if gram is not None:
        gram = replace(gram, values=_rounded(gram.values), step=float(gram.step))
    pool = release.statistics
    if pool is not None:
        pool = Statistics.from_json(pool.to_json())
    return replace(release, predictor=predictor, gram=gram, statistics=pool)


def _rounded(array: Array) -> np.ndarray[Any, Any]:
    return decode_array(encode_array(array))
