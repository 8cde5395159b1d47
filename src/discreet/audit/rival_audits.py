"""Rivals under audit: what one record moves, and what it may.

A rival's run is a Gaussian release: sums of people's statistics with noise on a clock. An attacker
who sees every later policy sees at most the noisy sums of all nodes, people or batches; the first
person is in the sums of the first 1, 2, 4, … people. [docs/privacy/rivals.md]
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist

from discreet.audit import finding
from discreet.features.unit_ball import UnitBall
from discreet.lab import rivals
from discreet.lab.rivals.coded_bandit import crowd_delta, sampling
from discreet.lab.rivals.linucb_rivals import amplified, local_budget
from discreet.lab.rivals.rival_contract import Rival, RivalProblem, Scales, TreeClock
from discreet.lab.rivals.runner import noisy_sums
from discreet.oracles.contract import Problem
from discreet.privacy.budget import Budget
from discreet.types import NumpyArray

DELTA = 1e-5
ROUNDS, DIMENSION, ACTIONS = 1000, 2, 2
CROWD = 100_000
"""People whom a shuffler hides together."""
RIVALS: dict[str, Rival] = {
    "rival-tree": rivals.TreeLinUCB(),
    "rival-tree-published": rivals.TreeLinUCB(constants="published"),
    "rival-batched": rivals.BatchedLinUCB(),
    "rival-local": rivals.LocalLinUCB(),
    "rival-local-published": rivals.LocalLinUCB(constants="published"),
    "rival-shuffled": rivals.ShuffledLinUCB(batches=1),
    "rival-adaprivate": rivals.AdaPrivateTS(),
    "rival-coded": rivals.CodedBandit(),
}
"""A shuffled report is attacked as its person sends it."""
Record = tuple[NumpyArray, float, int]
"""Features, loss and action."""
UPPER = np.triu_indices(DIMENSION + 1)


def records(angles: int) -> list[Record]:
    """Records at many angles, with hard losses and both actions."""
    cosines = np.linspace(-1.0, 1.0, angles)
    contexts = np.stack([cosines, np.sqrt(np.maximum(0.0, 1.0 - cosines**2))], axis=1)
    rows = UnitBall(DIMENSION).map(contexts)
    return list(itertools.product(rows, (0.0, 1.0), range(ACTIONS)))


def sums_of(b: NumpyArray, response: float, action: int) -> tuple[NumpyArray, NumpyArray]:
    """Sums of one record: packed Grams (A, p(p + 1)/2) and responses (A, p)."""
    gram, responses = np.zeros((ACTIONS, len(UPPER[0]))), np.zeros((ACTIONS, len(b)))
    gram[action], responses[action] = np.outer(b, b)[UPPER], response * b
    return gram, responses


@dataclass(frozen=True)
class RivalSubject:
    """One rival at one ε."""

    mechanism: str
    epsilon: float

    @property
    def name(self) -> str:
        return f"{self.mechanism}, bandit"

    @property
    def rival(self) -> Rival:
        return RIVALS[self.mechanism]

    @property
    def rounds(self) -> int:
        """All people; a shuffler needs many to hide one."""
        return CROWD if isinstance(self.rival, rivals.ShuffledLinUCB) else ROUNDS

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, DELTA)

    @cached_property
    def claimed(self) -> Budget:
        """The budget of one unit that an attacker reads; of a shuffled report its own ε₀."""
        if isinstance(self.rival, rivals.ShuffledLinUCB):
            return local_budget(self.budget, self.rounds)
        return self.budget

    @cached_property
    def scales(self) -> Scales:
        found = self.rival.scales(RivalProblem(ACTIONS, DIMENSION + 1, self.rounds), self.budget)
        if isinstance(self.rival, rivals.ShuffledLinUCB):  # the noise that one person adds
            share = 1.0 / math.sqrt(self.rounds)
            gram, response = share * found.gram, share * found.response
            return replace(found, gram=gram, diagonal=gram, response=response)
        return found

    def noisy(self, gram: NumpyArray, response: NumpyArray, noise: NumpyArray) -> Any:
        """Sums of one run of one setting with noise, as the runner of rivals makes them."""
        scales = {name: np.full((1, 1, 1, 1), each) for name, each in asdict(self.scales).items()}
        return noisy_sums(gram[None, None], response[None, None], noise, scales, DIMENSION + 1)

    @property
    def units(self) -> int:
        """The number of units of noise that cover the same person."""
        return TreeClock.levels(self.rounds) if isinstance(self.rival, rivals.TreeLinUCB) else 1

    @property
    def ends(self) -> list[int]:
        """After how many people sums are read: each holds the first person in another unit."""
        if isinstance(self.rival, rivals.TreeLinUCB):
            return [2**level for level in range(self.units)]
        return self.rival.clock(self.rounds).ends(self.rounds)[:1]

    @property
    def law(self) -> NumpyArray:
        """Noise of the packed entries of a Gram."""
        on_diagonal = UPPER[0] == UPPER[1]
        return np.where(on_diagonal, self.scales.diagonal, self.scales.gram / math.sqrt(2.0))

    def statistics(self, b: NumpyArray, loss: float, action: int) -> NumpyArray:
        """The statistics of one record in units of the noise: block and response of each action."""
        gram, responses = sums_of(b, loss - self.scales.centre, action)
        return np.hstack([gram / self.law, responses / self.scales.response]).reshape(-1)

    @cached_property
    def worst_records(self) -> tuple[Record, Record]:
        """Neighbours that lie furthest apart, of a fine search over angles, losses and actions."""
        tried = records(201)
        rows = np.stack([self.statistics(*each) for each in tried])
        one, two = np.unravel_index(cdist(rows, rows).argmax(), (len(tried), len(tried)))
        return tried[one], tried[two]

    @property
    def shift(self) -> float:
        """Standard deviations between the worlds, over all units that hold the person."""
        one, two = (self.statistics(*record) for record in self.worst_records)
        return float(np.linalg.norm(one - two)) * math.sqrt(self.units)


def exact_move(subject: RivalSubject) -> finding.Finding:
    """The ε that the furthest neighbours imply, compared with the claim; tight noise is used up."""
    tight = "published" not in subject.mechanism
    text = f"worlds lie {subject.shift:.5f} standard deviations apart over {subject.units} units"
    return _move(subject, subject.shift, subject.claimed, text, 0.99 if tight else 0.0)


def _move(
    subject: Any, shift: float, claimed: Budget, text: str, least: float = 0.0
) -> finding.Finding:
    exact, most = finding.gaussian_epsilon(shift, claimed.delta), claimed.epsilon
    verdict = finding.exact_verdict(exact, most)
    if verdict == finding.HOLDS and exact < least * most:
        verdict = finding.WEAK
    question = "largest move by one record"
    return finding.computed(subject, question, verdict, text, exact=exact, claimed=most)


def read_record(subject: RivalSubject) -> finding.Finding:
    """Context and action of a person, by someone who knows all others of the batch.

    The Gram of the batch less that of the others is b bᵀ in the block of the action, plus noise.
    """
    rng, people, p = np.random.default_rng(0), 16, DIMENSION + 1
    rows = UnitBall(DIMENSION).map(rng.normal(size=(people, DIMENSION)))
    actions = rng.integers(ACTIONS, size=people)
    grams = np.stack([sums_of(b, 0.0, int(a))[0] for b, a in zip(rows, actions, strict=True)])
    noise = rng.standard_normal((1, 1, ACTIONS, grams.shape[-1] + p))
    seen, _ = subject.noisy(grams.sum(0), np.zeros((ACTIONS, p)), noise)
    left = np.zeros((ACTIONS, p, p))
    left[:, UPPER[0], UPPER[1]] = seen[0, 0] - grams[1:].sum(0)
    action = int(np.abs(left).sum((1, 2)).argmax())
    found = left[action][0] * math.sqrt(2.0)  # the first feature is 1/√2
    error = float(np.linalg.norm(found - rows[0]))
    text = f"a row of length {np.linalg.norm(rows[0]):.3f} is found up to {error:.1e}"
    read = action == actions[0] and error < 1e-6
    return finding.computed(subject, "one record, all others known", not read, text)


def amplification(subject: RivalSubject) -> finding.Finding:
    """A shuffled batch keeps the budget by the closed form for what one person keeps."""
    local, delta = subject.claimed, subject.budget.delta
    found, spent = local.epsilon, local.delta
    if local != subject.budget:
        found = amplified(local.epsilon, subject.rounds, delta / 2)
        grown = (math.exp(subject.epsilon) + 1) * (1 + math.exp(-local.epsilon) / 2)
        spent = delta / 2 + grown * subject.rounds * local.delta
    holds = found <= subject.epsilon and spent <= delta * (1 + 1e-9)
    text = f"ε₀ = {local.epsilon:.3f} of each report becomes {found:.3f} at δ = {spent:.1e}"
    return finding.computed(subject, "amplification by shuffling", holds, text, exact=found)


def crowds(subject: RivalSubject) -> finding.Finding:
    """δ of one report more in a crowd, or less, each at half of the budget."""
    share, threshold = sampling(subject.budget, "tight")
    found = crowd_delta(share, threshold, subject.epsilon / 2)
    text = f"reports with probability {share:.3f}, {threshold} alike pass: δ = {found:.1e} at ε/2"
    question, claimed = "one report more in a crowd, or less", subject.epsilon
    return finding.computed(subject, question, found <= DELTA / 2, text, claimed=claimed)


ADASSP = "rival-adassp"
CROWDS = 40
"""Grams of others in whose batch a record is replaced: smallest eigenvalues depend on them."""


def adassp_move(subject: RivalSubject) -> finding.Finding:
    """The ε that the furthest neighbours imply, over crowds, angles, losses and actions.

    A world has smallest eigenvalues, Grams (svec) and responses of a crowd and one record.
    """
    made = adassp(subject.budget)
    law = np.where(UPPER[0] == UPPER[1], 1.0, math.sqrt(0.5)) * made.gram

    def world(crowd: NumpyArray, b: NumpyArray, loss: float, action: int) -> NumpyArray:
        grams, (_, responses) = crowd.copy(), sums_of(b, loss - 0.5, action)
        grams[action] += np.outer(b, b)
        smallest = np.linalg.eigvalsh(grams)[:, 0] / made.eigenvalue
        packed = grams[:, UPPER[0], UPPER[1]] / law
        return np.concatenate([smallest, packed.ravel(), (responses / made.response).ravel()])

    rng, most = np.random.default_rng(0), 0.0
    for number in range(CROWDS):
        spread = np.exp2(rng.uniform(-2.0, 12.0, size=(2, DIMENSION + 1)))
        axes = np.linalg.qr(rng.normal(size=(2, DIMENSION + 1, DIMENSION + 1)))[0]
        crowd = (axes * spread[:, None, :]) @ axes.mT * (number > 0)
        worlds = np.stack([world(crowd, *record) for record in records(21)])
        most = max(most, float(pdist(worlds).max()))
    text = f"worlds lie {most:.5f} standard deviations apart over {CROWDS} crowds"
    return _move(subject, most, subject.budget, text)


def adassp(budget: Budget) -> Any:
    """The mechanism of AdaSSP with tight constants for two actions."""
    return rivals.AdaSSP().calibrate(Problem(ACTIONS, DIMENSION + 1), budget)


TRIALS = 10_000


def black_box_rival(subject: RivalSubject, alpha: float, trials: int = TRIALS) -> finding.Finding:
    """The lower bound on ε that hits prove for one rival."""
    one, two = (subject.statistics(*record) for record in subject.worst_records)
    direction = (two - one) / np.linalg.norm(two - one)
    middle = len(subject.ends) * float(direction @ (one + two)) / 2
    first, second = (
        int((_read(subject, record, trials) @ direction > middle).sum())
        for record in subject.worst_records
    )
    about, hits = ("black box", subject.name, "which of two records was it"), (first, second)
    expected = finding.expected_of_gaussian(subject.shift, trials)
    return finding.hits_finding(
        about,
        finding.Hits(*hits, trials),
        subject.claimed,
        alpha,
        expected,
        level=subject.epsilon,
    )


def _read(subject: RivalSubject, record: Record, trials: int) -> NumpyArray:
    """Σ over the sums that hold the person, in units of the declared noise: (trials, numbers)."""
    rng, sums = np.random.default_rng(), sums_of(*record)
    width = sum(each.shape[-1] for each in sums)
    total, clock = np.zeros((trials, ACTIONS * width)), subject.rival.clock(subject.rounds)
    shape = (trials, 1, ACTIONS, width)
    for noise in clock.noise(subject.ends, lambda _: rng.standard_normal(shape)):
        noisy, centred = subject.noisy(*sums, noise)
        seen = np.concatenate([noisy / subject.law, centred / subject.scales.response], axis=-1)
        total += seen.reshape(trials, -1)
    return total
