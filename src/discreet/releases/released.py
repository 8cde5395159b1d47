"""All releases so far, and the public file that holds them.

A policy reads nothing but ``Released``, so everything it computes is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.design.schedule import Schedule
from discreet.errors import CorruptRelease, InvalidInput
from discreet.features.frames import new_frame
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import assumptions, event_json
from discreet.releases.canonical import canonical, digest_of, read_document, write_atomically
from discreet.releases.catalogue import ActionChange, changes_of
from discreet.releases.policy_view import PolicyView
from discreet.releases.prior import prior_of
from discreet.releases.quality import Quality, quality
from discreet.releases.release import Release, altered, following
from discreet.releases.statistics import Statistics
from discreet.text import html_table, listed
from discreet.types import Frame, JsonMapping, JsonObject
from discreet.validate import intact

FILE_FORMAT = "discreet-released/1"
_FILE_KEYS = {"format", "plan", "releases", "head"}


@dataclass(frozen=True)
class Released(PolicyView):
    """All releases so far: the only part of the past that a policy may see.

    ``prior`` are the public statistics that the plan begins with, if it does.

    Iterate over ``items``, the releases in order; ``latest`` is the newest, or None. ``n_actions``,
    ``schedule`` and ``plan``, as a mapping, say what they are of; ``changes`` are actions that
    came or went.

    >>> nothing = Released(3)
    >>> nothing.latest, nothing.n_actions
    (None, 3)
    """

    items: tuple[Release, ...] = ()
    prior: Statistics | None = field(default=None, repr=False)

    @property
    def latest(self) -> Release | None:
        """The newest release; None before the first."""
        return self.items[-1] if self.items else None

    @property
    def statistics(self) -> tuple[Statistics, ...]:
        """The statistics that the next fit may use: the prior, and all that was released."""
        published = tuple(item.statistics for item in self.items if item.statistics is not None)
        return published if self.prior is None else (self.prior, *published)

    def __repr__(self) -> str:
        return f"Released({self._facts})"

    def _repr_html_(self) -> str:
        rows = [(str(each.number), f"{each.records:,}", each.text) for each in self._qualities]
        return html_table(self._facts, rows, ("release", "records", f"mean {self.outcome.word}"))

    @property
    def _facts(self) -> str:
        facts = [] if self.plan is None else [f"plan {digest_of(self.plan)[:12]}"]
        facts += [f"releases {len(self.items)}", f"records {self.rounds:,}"]
        facts.append(f"actions {listed(self.actions or [str(self.n_actions)])}")
        if self._qualities:
            facts.append(f"mean {self.outcome.word} of the newest {self._qualities[-1].text}")
        return "; ".join(facts)

    @property
    def _qualities(self) -> list[Quality]:
        """Mean outcomes of the releases; empty without a plan, since runs may be stacked."""
        return [] if self.plan is None else quality(self)

    def to_frame(self) -> Frame:
        """Return a row per release: its number, its records, and the mean outcome of its batch.

        The frame is of the first library that is installed; means are NaN where none is published.
        """
        means = {each.number: (each.mean, each.mean_error) for each in self._qualities}
        found = [means.get(item.number, (np.nan, np.nan)) for item in self.items]
        mean, error = np.asarray(found).reshape(-1, 2).T
        columns = {
            "number": np.asarray([item.number for item in self.items], dtype=np.int64),
            "records": np.asarray([item.records for item in self.items], dtype=np.int64),
        }
        return new_frame(columns | {f"mean_{self.outcome.word}": mean, "standard_error": error})

    def summary(self) -> JsonObject:
        """Return the plan, and of each release its cost, its shape and the mean of its batch."""
        plan: Any = self.plan
        delta, word = float(plan["budget"]["delta"]), self.outcome.word
        means = {each.number: (each.mean, each.mean_error) for each in self._qualities}
        releases, sentences = [], list[str]()
        for item in self.items:
            pure = epsilon(item.event, 0.0)
            cost, at = (pure, 0.0) if math.isfinite(pure) else (epsilon(item.event, delta), delta)
            mean, error = means.get(item.number, (None, None))
            document = {
                "number": item.number,
                "records": item.records,
                "epsilon": cost,
                "delta": at,
                "event": event_json(item.event),
                "link": item.predictor.link,
                "shape": list(item.predictor.weights.shape),
                "gram": item.gram is not None,
                f"mean_{word}": mean,
                f"mean_{word}_error": error,
                "digest": item.digest,
            }
            releases.append(document)
            sentences += assumptions(item.event)
        return {
            "plan": plan,
            "rounds": self.rounds,
            "assumptions": list(dict.fromkeys(sentences)),
            "releases": releases,
        }

    def plot(self, ax: object = None) -> Any:
        """Draw the mean outcome of each release on matplotlib axes; return them."""
        from discreet.releases.plots import draw_quality

        return draw_quality(self, ax)

    def add(self, release: Release) -> Released:
        """These releases and one more."""
        return replace(self, items=(*self.items, release))

    def changed(self, change: ActionChange) -> Released:
        """These releases with one change more of the actions."""
        return replace(self, changes=(*self.changes, change))

    def _compact(self) -> Released:
        """For simulations: the Grams as one sum, and no statistics that are forgotten; policies
        and fits see no change."""
        forgotten = len(self.items) - len(self.remembered)
        if forgotten and self.items[forgotten - 1].statistics is not None:
            old = (replace(item, statistics=None) for item in self.items[:forgotten])
            return replace(self, items=(*old, *self.items[forgotten:]))._compact()
        if not any(item.gram for item in self.items):
            return self
        items = tuple(replace(item, gram=None) for item in self.items)
        return replace(self, items=items, _summed=self._total_gram)

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
        if self.changes:
            document["changes"] = [change.to_json() for change in self.changes]
        write_atomically(Path(path), canonical(document) + b"\n", mode=0o644)

    @classmethod
    def load(cls, path: str | Path) -> Released:
        """Read releases and verify every digest and link of the chain."""
        return cls.from_document(read_document(path))

    @classmethod
    def from_document(cls, document: JsonMapping) -> Released:
        """Verify and unpack the document of a released file."""
        if document.get("format") != FILE_FORMAT:
            raise CorruptRelease(
                f"format must be {FILE_FORMAT!r}; got {document.get('format')!r}. "
                "Pass a file that released.save() wrote."
            )
        with intact(
            "released file must have a plan and releases; a part is missing. Fetch it again."
        ):
            plan, entries = document["plan"], document["releases"]
            n_actions = int(plan["n_actions"])
            schedule = Schedule.of_plan(plan)
            root = previous = digest_of(plan)
            items: list[Release] = []
            for number, entry in enumerate(entries, start=1):
                release = following(entry["release"], number, root, previous)
                if release.digest != entry["digest"] or len(entry) != 2:
                    raise altered(number)
                items.append(release)
                previous = entry["digest"]
            changes = changes_of(document.get("changes", ()), root)
            if document["head"] != previous or document.keys() - {"changes"} != _FILE_KEYS:
                raise CorruptRelease(
                    "head must be the digest of the last release; it is another. "
                    "The file was cut short or altered: fetch it again."
                )
        read = cls(n_actions, schedule, tuple(items), plan, changes, prior=prior_of(plan))
        _ = read.actions, read.outcome  # fail now, if at all
        return read
