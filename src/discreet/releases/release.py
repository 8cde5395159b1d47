"""One release: the noisy result of a batch, as canonical JSON with a digest.

Everything in this file is public by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from discreet.arrays.backend import apply_rows, at_least, at_most, sigmoid
from discreet.errors import CorruptRelease
from discreet.features.offered import OfferedRows
from discreet.privacy import events
from discreet.releases.canonical import decode_array, digest_of, encode_array
from discreet.releases.statistics import PartLosses, Statistics
from discreet.types import Array, JsonMapping, JsonObject, Numbers
from discreet.validate import intact

FORMAT = "discreet-release/1"
LINKS = ("identity", "logistic", "clip")
SUMS: Mapping[str, Callable[[JsonMapping], Any]] = {
    "statistics": Statistics.from_json,
    "part_losses": PartLosses.from_json,
    "guardrails": partial(PartLosses.from_json, guardrails=True),
}
"""Keys of noisy sums that a document may have, and how they are read."""


@dataclass(frozen=True)
class Predictor:
    """Predicted losses: scores θ_a·b through a link; weights are (..., A, p).

    >>> import numpy as np
    >>> Predictor(np.array([[1.0, 0.0], [0.0, 1.0]]), "identity").losses(np.array([[0.6, 0.2]]))
    array([[0.6, 0.2]])
    """

    weights: Array
    link: str

    def scores(self, features: Array) -> Array:
        """Before the link: (..., n, p) -> (..., n, A); what is offered -> (..., n, K)."""
        if isinstance(features, OfferedRows):
            return features.scores(self.weights)
        return apply_rows(features, self.weights)

    def losses(self, features: Array) -> Array:
        """After the link: (..., n, p) -> (..., n, A)."""
        return self.linked(self.scores(features))

    def linked(self, scores: Array) -> Array:
        """Losses of scores."""
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
    step: Numbers


@dataclass(frozen=True)
class Fit:
    """The result of a mechanism for a batch; its noise is already added.

    ``predictor`` is what policies read; ``gram`` is there where the problem asks for radii, and
    ``statistics`` where the oracle pools releases.
    """

    predictor: Predictor
    gram: Gram | None = None
    statistics: Statistics | None = None


@dataclass(frozen=True)
class Release:
    """One published fit: number and public size of its batch, predictor, Gram if radii need it.

    ``records`` are the slots of the batch, ``gram`` the noisy second moments, ``event`` says what
    the fit cost, and ``plan_digest`` names the plan. ``previous`` is the digest of the release
    before, or of the plan for the first one; ``statistics`` are the noisy sums of its batch, which
    later fits use again, if the oracle pools; ``part_losses`` are the loss sums of policy and
    control, if the plan has a control share, and ``guardrails`` those of its guardrails.

    >>> import numpy as np
    >>> release = Release(1, 16, Predictor(np.zeros((2, 3)), "identity"))
    >>> release.number, release.records, release.predictor.weights.shape
    (1, 16, (2, 3))
    """

    number: int
    records: int
    predictor: Predictor
    gram: Gram | None = None
    event: events.Event = field(default_factory=lambda: events.NonPrivate("a simulation"))
    plan_digest: str = ""
    previous: str = ""
    statistics: Statistics | None = None
    part_losses: PartLosses | None = None
    guardrails: PartLosses | None = None

    @classmethod
    def of(cls, fit: Fit, number: int, records: int, **rest: Any) -> Release:
        """The release of a fit; ``rest`` are the other fields."""
        return cls(number, records, fit.predictor, fit.gram, statistics=fit.statistics, **rest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest_of(self.to_json())

    def to_json(self) -> JsonObject:
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
            "event": events.event_json(self.event),
            "predictor": predictor,
            "gram": gram,
        }
        for name in SUMS:
            if (sums := getattr(self, name)) is not None:
                document[name] = sums.to_json()
        return document

    @classmethod
    def from_json(cls, document: JsonMapping) -> Release:
        """The release of a JSON document; refuses anything that discreet would not write."""
        with intact(
            "release must be a document that discreet wrote; a part is missing or has another "
            "type. Fetch it again."
        ):
            if document["format"] != FORMAT:
                raise CorruptRelease(
                    f"format must be {FORMAT!r}; got {document['format']!r}. "
                    "Read it with the version of discreet that wrote it."
                )
            predictor, gram = document["predictor"], document["gram"]
            if predictor["link"] not in LINKS:
                raise CorruptRelease("link must be a known one; this link is not. Fetch it again.")
            if gram is not None:
                gram = Gram(decode_array(gram["values"]), bool(gram["dense"]), float(gram["step"]))
            sums = {name: read(document[name]) for name, read in SUMS.items() if name in document}
            return cls(
                int(document["number"]),
                int(document["records"]),
                Predictor(decode_array(predictor["weights"]), predictor["link"]),
                gram,
                events.event_from_json(document["event"]),
                document["plan"],
                document["previous"],
                **sums,
            )


@dataclass(frozen=True)
class DecidingRelease:
    """The part of a release that decisions read; it has no document, so it cannot be published.

    Of the statistics it keeps the sums from which mean outcomes follow.
    """

    number: int
    records: int
    predictor: Predictor
    gram: Gram | None
    statistics: Statistics | None
    digest: str
    part_losses: PartLosses | None = None
    guardrails: PartLosses | None = None

    @classmethod
    def of(cls, whole: Release) -> DecidingRelease:
        """The part of a release that decisions read, with the digest of the whole."""
        sums = whole.statistics and whole.statistics.of_the_constant()
        parts = whole.number, whole.records, whole.predictor, whole.gram
        return cls(*parts, sums, whole.digest, whole.part_losses, whole.guardrails)


def following(document: JsonMapping, number: int, plan: str, previous: str) -> Release:
    """The release of a document, if number, plan and previous digest are as expected."""
    release = Release.from_json(document)
    place = (release.number, release.plan_digest, release.previous)
    # Compare digests, so that the document holds nothing that was not read.
    if place != (number, plan, previous) or digest_of(document) != release.digest:
        raise altered(number)
    return release


def altered(number: int) -> CorruptRelease:
    """The error for a release that was altered."""
    return CorruptRelease(
        f"release {number} must match its digest and follow release {number - 1}; it does not. "
        "The file was altered: fetch it again."
    )


def publishable(release: Release) -> Release:
    """The release with numbers rounded as the document has them, so all readers agree."""
    return replace(Release.from_json(release.to_json()), event=release.event)
