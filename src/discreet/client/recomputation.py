"""Recompute the conclusions of releases from their published statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import CorruptRelease
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import matrix_bits
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.plan.plan import Plan
from discreet.privacy.events import NonPrivate
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics
from discreet.types import Array

TOLERANCE = 1e-9
"""Share of the largest number by which machines may differ: in the last bits of eigenvectors."""
WITHOUT_NOISE = 1e-6
"""The same where no noise bounds how singular the sums are, only a ridge of 1e-8."""


def recompute(released: Released) -> dict[int, list[str]]:
    """The parts of each release that were recomputed; nothing if the oracle pools no statistics.

    Predictor, next matrix and signal of each release must follow from the statistics up to it, and
    the statistics must fit the plan; else CorruptRelease names the release and the part that
    differs.
    """
    plan: Any = released.plan
    oracle = plan.get("oracle")
    if isinstance(oracle, Mapping) and oracle.get("kind") != "PooledRidge":
        return {}
    # Without counts of people the unit does not enter the noise, and a plan outside the service
    # may promise only this one.
    counted = plan.get("batches_per_user") is not None
    whole = Plan.from_config(plan if counted else {**plan, "unit": "decision"})
    pooling = whole.pooling
    assert pooling is not None
    known: list[Statistics] = [] if released.prior is None else [released.prior]
    for release in released.items:
        blocks = len(release.predictor.weights)
        part = misfit(pooling, known[-1].following if known else None, release, blocks)
        part = "predictor" if blocks not in released.possible_blocks else part
        part = part or misfit_of_parts(whole, release)
        if part is None and release.statistics is not None:
            known.append(release.statistics)
            part = _differing(pooling, known, release)
        if part is not None:
            raise CorruptRelease(
                f"{part} of release {release.number} must follow from the plan and the published "
                "statistics; recomputation gives another. Do not use the file: ask its publisher."
            )
    parts = ["predictor", *(["matrix", "following"] if pooling.stretched else [])]
    parts += ["signal"] if released.signal is not None else []
    return {release.number: parts for release in released.items}


def misfit(
    pooling: PooledStatistics | None,
    matrix: Array | None,
    release: Release,
    blocks: int | None = None,
) -> str | None:
    """The part of a release that does not fit its plan, or None; cheap, nothing is recomputed.

    ``matrix`` is the one that the release before published for this one, None for the first;
    ``blocks`` is how many actions its batch has, if some joined since the plan. Oracles that pool
    no statistics fit.
    """
    if pooling is None:
        return None
    if release.statistics is None:
        return "statistics"
    new: Any = release.statistics  # its optional parts are there once their shapes hold
    gram, problem = release.gram, pooling.problem
    p, stretched = problem.p, pooling.stretched
    if (name := pooling.misfit(new, blocks)) is not None:
        return f"statistics.{name}"
    same_gram = gram is not None and not gram.dense and np.array_equal(gram.values, new.gram)
    holds = {
        "statistics.records": new.records == release.records,
        "statistics.variance": math.isclose(new.variance, pooling.gram**2, rel_tol=TOLERANCE),
        "gram": same_gram if problem.radii else gram is None,
    }
    if stretched:
        used: Any = np.eye(p) if matrix is None else matrix
        holds["statistics.matrix"] = np.array_equal(new.matrix, used)
        holds["statistics.following"] = isinstance(release.event, NonPrivate) or bool(
            np.any(new.following) and np.array_equal(publishable(new.following), new.following)
        )
    if new.signal is not None:
        clear, errors = new.signal[0], new.signal[1:]
        holds["statistics.signal"] = bool(0.0 <= clear <= 1.0 and (errors > 0.0).all())
    return next((part for part, good in holds.items() if not good), None)


def misfit_of_parts(plan: Plan, release: Release) -> str | None:
    """``part_losses`` or ``guardrails`` where they are not as the plan declares them, or None."""
    for name, sums in (("part_losses", plan.loss_sums), ("guardrails", plan.guardrail_sums)):
        published = getattr(release, name)
        if published is None or sums is None:
            if published is not None or sums is not None:
                return name
            continue
        same = math.isclose(published.variance, sums.sigma**2, rel_tol=TOLERANCE)
        same &= published.sums.size == 4 * sums.outcomes
        if not same or not np.isfinite(published.sums).all():
            return name
    return None


def _differing(
    pooling: PooledStatistics, statistics: Sequence[Statistics], release: Release
) -> str | None:
    """The part of a release that the statistics up to it do not give."""
    try:
        with np.errstate(all="ignore"):
            weights, following, signal = pooling.conclusion(statistics)
    except np.linalg.LinAlgError:
        return "statistics"
    share = TOLERANCE if pooling.gram > 0.0 else WITHOUT_NOISE
    if release.predictor.link != "clip" or _far(release.predictor.weights, weights, share):
        return "predictor"
    if signal is not None and _far(statistics[-1].signal, signal, share):
        return "statistics.signal"
    if following is not None:
        # Published entries are cut off below the last bit of their common integers, of which the
        # largest entry may fill only half.
        share += 2.0 ** (1 - matrix_bits(following.shape[-1]))
        size, published = float(np.abs(following).max()), statistics[-1].following
        if not size or published is None or _far(published / size, following / size, share):
            return "statistics.following"
    return None


def _far(published: Any, recomputed: Any, share: float) -> bool:
    """Return whether arrays differ by more than a share of the largest number, or one is NaN."""
    if np.shape(published) != np.shape(recomputed):
        return True
    allowed = share * max(1.0, float(np.abs(recomputed).max()))
    return not bool((np.abs(published - recomputed) <= allowed).all())
