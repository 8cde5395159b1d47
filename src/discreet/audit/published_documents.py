"""Whole documents of releases: what is public in advance; the rest must be noisy statistics.

Two questions about everything that a release publishes. In worlds where people answer, stay
silent or say something else, all but the noisy numbers must be the same bytes. And where the
noise makes up for the difference between two batches, the noisy numbers must be the same too:
after the noise nothing reads the batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from discreet.audit.finding import ROUNDING, Finding, listed
from discreet.audit.neighbouring_runs import SameDraws
from discreet.audit.noise_sources import Shared
from discreet.audit.objective import Objective
from discreet.audit.subjects import Subject
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.learner import Learner
from discreet.oracles.mechanisms.legal_rows import legal_batch
from discreet.oracles.mechanisms.moments import exact_moments, floating_moments
from discreet.oracles.mechanisms.perturb import block_diagonal
from discreet.plan.plan import Plan
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import Noise
from discreet.releases.canonical import decode_array
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.types import JsonMapping, JsonObject, NumpyArray

FIRST = 66
"""Slots of the first batch, so many that a rule kept only in small batches would show."""
ROWS = 6
LARGE_RIDGE = 4.0
"""So large that Λ = n·ridge exceeds every least one: the number of records decides."""
_ARRAY = {"shape", "exponent", "integers"}


class World(NamedTuple):
    """A behaviour: the last one of ``every`` so many answers, and the seed of the answers."""

    every: int
    seed: int

    def answered(self, rows: int) -> NumpyArray:
        return np.asarray(np.arange(rows) % self.every == self.every - 1)


WORLDS = World(1, 0), World(10**9, 0), World(3, 0), World(1, 1)
"""All people answer, nobody does, every third does, and all answer something else."""


def public_alike(subject: Subject) -> Finding:
    """Learners in several worlds: all but the noisy numbers of their documents is equal."""
    wrong: list[str] = []
    for policy in subject.policies:
        plan = subject.plan(policy, first_batch=FIRST, releases="on_request")
        public = []
        for world in WORLDS:
            learner = _played(plan, subject, world)
            wrong += [f"chain: {each}" for each in _broken_links(plan, learner.released)]
            releases = [public_part(item.to_json()) for item in learner.released.items]
            public.append({"releases": releases, "ledger": learner.ledger.to_json()})
            wrong += differing(public[0], public[-1])
    text = f"documents of {len(WORLDS)} worlds differ in noisy numbers alone"
    return listed(subject, "all but its noisy numbers is public", wrong, text)


def _played(plan: Plan, subject: Subject, world: World) -> Learner:
    """Two releases of a learner."""
    learner = Learner(plan, noise=Shared(), draws=SameDraws())
    for number in (1, 2):
        rows = plan.schedule.length(number)
        people = subject.crowd(np.ones(rows), world.seed + number)
        contexts = people.features[:, 1:] / people.features[:, :1]
        decided = learner.decide(contexts)
        observed = world.answered(rows)
        losses = people.losses
        if subject.feedback == "bandit":
            losses = losses[np.arange(rows), decided.action]
        learner.observe(decided.id[observed], losses[observed])
        learner.close()
        learner.release()
    return learner


def _broken_links(plan: Plan, released: Released) -> list[str]:
    """Each release names the whole document before it, and uses the matrix published there.

    This hashes that document again.
    """
    found, before, matrix = [], _hash(plan.to_config()), None
    for item in released.items:
        document = item.to_json()
        if document["previous"] != before:
            found.append(f"release {item.number} does not name what came before it")
        statistics = document.get("statistics") or {}
        if matrix is not None and statistics.get("matrix") != matrix:
            found.append(f"release {item.number} uses another matrix than the one before published")
        before, matrix = _hash(document), statistics.get("following")
        if item.digest != before:
            found.append(f"the digest of release {item.number} is not that of its document")
    return found


def _hash(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def public_part(document: JsonMapping) -> JsonObject:
    """A document without its noisy numbers; the link to the one before is checked elsewhere."""

    def shape(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        numbers = set(value) == _ARRAY
        return {name: shape(value[name]) for name in (["shape"] if numbers else value)}

    return {name: shape(value) for name, value in document.items() if name != "previous"}


def tells_no_more(subject: Subject) -> Finding:
    """Batches whose noise makes up for their difference must give equal releases, to the byte.

    Floating-point mechanisms are compared up to rounding, their public parts to the byte as well.
    """
    wrong: list[str] = []
    floating = subject.mechanism == "ridge-paper" or subject.mechanism.startswith("logistic")
    crowds = [subject.crowd(each.answered(ROWS), each.seed) for each in WORLDS]
    for policy in subject.policies:
        ridged = policy is not None and subject.mechanism != "finite"
        oracle = {"oracle": replace(subject.bare_oracle, ridge=LARGE_RIDGE)} if ridged else {}
        plan = subject.plan(policy, **oracle)
        past = plan.nothing_released()
        past = past.add(_release(plan, crowds[-1], Shared(seed=1), past))
        noises = [_making_up(subject, plan, crowds[0], batch, past) for batch in crowds]
        first, *others = (
            _release(plan, batch, noise, past).to_json()
            for batch, noise in zip(crowds, noises, strict=True)
        )
        for other in others:
            wrong += differing(first, other, ROUNDING if floating else 0.0)
        scales = set().union(*(each.scales for each in noises))
        repeated = set().union(*(each.repeated for each in noises))
        wrong += ["the scale of a choice"] * (len(scales) > 1)
        wrong += [f"a second draw for the {name}" for name in sorted(repeated)]
    text = "batches with the same noisy statistics have the same releases"
    return listed(subject, "nothing but its noisy statistics", wrong, text)


def _release(plan: Plan, batch: Batch, noise: Noise, past: Released) -> Release:
    return release_batch(plan, noise, batch, past, Ledger(plan.budget))[0]


def _making_up(subject: Subject, plan: Plan, first: Batch, batch: Batch, past: Released) -> Shared:
    """The noise that a batch needs to be released as the first one is with shared noise."""
    mechanism: Any = plan.mechanism
    problem = mechanism.problem
    kind = problem.feedback, problem.losses
    if subject.mechanism == "finite":
        return Shared()
    draws = {}
    if subject.mechanism.startswith("logistic"):
        # With this draw the minimiser is one that was chosen in advance.
        objective = Objective(subject, ROWS, mechanism)
        theta = 3.0 * np.random.default_rng(2).normal(size=(subject.n_actions, 2))
        b, _ = objective.noise_and_volume(theta, legal_batch(batch, *kind))
        draw = (b / objective.scale).reshape(objective.names[objective.tilt])
        draws = {objective.tilt: draw}
    if subject.mechanism.endswith("paper"):
        one, two = (
            floating_moments(legal_batch(each, *kind), problem.feedback, 0.0)
            for each in (first, batch)
        )
        gram = block_diagonal(one.gram - two.gram, batch.n_actions)
        offsets = {"dense gram": gram / (mechanism.gram or 1.0)}
        if subject.ridge:
            moved = (one.response - two.response).ravel()
            offsets["dense response"] = moved / mechanism.response
        return Shared(draws=draws, offsets=offsets)
    stretch: tuple[Any, ...] = ()
    if subject.stretched:
        bounds = mechanism.row_bounds(batch.records, past.statistics)
        stretch = past.statistics[-1].following, bounds
    one, two = (exact_moments(each, *kind, *stretch) for each in (first, batch))
    rows, columns = np.triu_indices(one.gram.shape[-1])
    offsets = {
        "gram": (one.gram - two.gram)[..., rows, columns],
        "response": one.response - two.response,
    }
    if one.outcome_sums is not None:
        offsets["told"] = one.outcome_sums - two.outcome_sums
    return Shared(draws=draws, offsets=offsets)


def differing(one: Any, two: Any, tolerance: float = 0.0, path: str = "") -> list[str]:
    """Paths at which two documents differ; arrays may differ by ``tolerance``."""
    if isinstance(one, Mapping) and isinstance(two, Mapping) and set(one) == set(two):
        if tolerance and set(one) == _ARRAY and one["shape"] == two["shape"]:
            left, right = decode_array(one), decode_array(two)
            distance = float(np.abs(left - right).max(initial=0.0))
            return [] if distance <= tolerance * (1.0 + np.abs(left).max()) else [path]
        below = [(key, one[key], two[key]) for key in sorted(one)]
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        below = [(n, *pair) for n, pair in enumerate(zip(one, two, strict=True))]
    else:
        return [] if type(one) is type(two) and one == two else [path]
    return [
        place
        for key, left, right in below
        for place in differing(left, right, tolerance, f"{path}.{key}" if path else str(key))
    ]
