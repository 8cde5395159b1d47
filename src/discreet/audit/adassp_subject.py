"""AdaSSP under audit: what one record moves of its three parts, in units of their noise."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.confidence_bounds import gaussian_epsilon
from discreet.audit.finding import Finding, exact_verdict
from discreet.audit.rival_subjects import DELTA, DIMENSION, features
from discreet.lab.rivals import AdaSSP
from discreet.oracles.problem import Problem
from discreet.privacy.budget import Budget

ADASSP = "rival-adassp"
CROWDS = 40
"""Grams of other people beside whom a record is replaced: smallest eigenvalues depend on them."""


@dataclass(frozen=True)
class AdaSSPSubject:
    """The oracle with tight constants at one ε; two actions."""

    epsilon: float
    mechanism: str = ADASSP

    @property
    def name(self) -> str:
        return f"{self.mechanism}, bandit"

    @property
    def calibrated(self) -> Any:
        problem = Problem(2, DIMENSION + 1)
        return AdaSSP().calibrate(problem, Budget(self.epsilon, DELTA))

    def parts(self, crowd: Any, b: Any, loss: float, action: int) -> np.ndarray[Any, Any]:
        """Smallest eigenvalues, Grams (svec) and responses of a crowd and one record."""
        mechanism, p = self.calibrated, len(b)
        grams, responses = crowd.copy(), np.zeros((2, p))
        grams[action] += np.outer(b, b)
        responses[action] += (loss - 0.5) * b
        rows, columns = np.triu_indices(p)
        law = np.where(rows == columns, 1.0, math.sqrt(0.5)) * mechanism.gram
        smallest = np.linalg.eigvalsh(grams)[:, 0] / mechanism.eigenvalue
        parts = [smallest, (grams[:, rows, columns] / law).ravel()]
        return np.concatenate([*parts, (responses / mechanism.response).ravel()])


def adassp_move(subject: AdaSSPSubject) -> Finding:
    """The ε that the furthest neighbours imply, over crowds, angles, losses and actions."""
    rng, most = np.random.default_rng(0), 0.0
    first = features((1.0, 0.0))
    for number in range(CROWDS):
        spread = np.exp2(rng.uniform(-2.0, 12.0, size=(2, DIMENSION + 1)))
        axes = np.linalg.qr(rng.normal(size=(2, DIMENSION + 1, DIMENSION + 1)))[0]
        crowd = (axes * spread[:, None, :]) @ axes.mT * (number > 0)
        for cosine, (losses, action) in itertools.product(
            np.linspace(-1.0, 1.0, 21), itertools.product(((1.0, 0.0), (1.0, 1.0)), (0, 1))
        ):
            other = features((cosine, math.sqrt(max(0.0, 1.0 - cosine**2))))
            one = subject.parts(crowd, first, losses[0], 0)
            two = subject.parts(crowd, other, losses[1], action)
            most = max(most, float(np.linalg.norm(one - two)))
    exact = gaussian_epsilon(most, DELTA)
    return Finding(
        "exact",
        subject.name,
        "largest move by one record",
        exact_verdict(exact, subject.epsilon),
        f"worlds lie {most:.5f} standard deviations apart over {CROWDS} crowds",
        claimed=subject.epsilon,
        exact=exact,
        level=subject.epsilon,
    )
