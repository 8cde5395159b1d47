"""Priors from public records: public logs, or the releases of another experiment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.batch import Batch
from discreet.batches.log_import import logged_rows
from discreet.errors import InvalidInput
from discreet.oracles.mechanisms.geometry import pooled, publishable
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.plan.checks import pooling_for_prior
from discreet.plan.plan import Plan
from discreet.privacy.events import NonPrivate, flattened
from discreet.privacy.noise import SeededNoise
from discreet.releases.canonical import digest_of
from discreet.releases.prior import Prior, shared_digest
from discreet.releases.release import Fit
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics
from discreet.types import Contexts, Values
from discreet.validate import instance

ROUNDS = 3
"""Repetitions of stretching rows of public logs; more changes nothing."""


def prior_from_logs(
    plan: Plan,
    contexts: Contexts,
    actions: Values,
    losses: Values = None,
    *,
    reward: Values = None,
    weight: float = 1.0,
    source: str = "public logs",
) -> Prior:
    """Sum over logs that are PUBLIC: the sums become part of the plan, without noise.

    A loss is regressed on its context, action by action, so no propensities are needed.
    Private logs do not belong here: import them with ``Learner.import_log``.

    Args:
        plan: The plan that the prior is for.
        contexts: (n, d) numbers, dicts or a frame; the others may be names of its columns.
        actions: (n,) chosen actions, or None with full feedback.
        losses: (n,), or (n, A) with full feedback.
        reward: Instead of losses, where the plan declares rewards.
        weight: Weight of a record compared with one of the experiment, above 0.
        source: Source of the logs, in words.

    Returns:
        A ``Prior``, for ``dataclasses.replace(plan, prior=prior)``.

    Raises:
        InvalidInput: Rows that do not fit the plan.

    >>> from discreet import Budget, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget(1.0, 1e-5))
    >>> x, played = np.eye(2).repeat(50, axis=0), np.arange(100) % 2
    >>> prior = prior_from_logs(plan, x, played, losses=(played == 0) * 1.0, weight=0.5)
    >>> print(replace(plan, prior=prior).prior.text)
    public logs: 100 records, each worth 0.5
    """
    mechanism = _pooling(plan)
    # The rows are public: no user is needed.
    without_users = replace(plan, unit="decision", batches_per_user=None, records_per_batch=None)
    rows = logged_rows(without_users, contexts, actions, losses, reward)
    table, observed = rows.losses, np.ones((len(rows.actions), plan.n_actions), dtype=bool)
    if plan.feedback == "bandit":
        observed = np.arange(plan.n_actions) == rows.actions[:, None]
        table = np.repeat(rows.losses[:, None], plan.n_actions, axis=-1)
    silent = replace(mechanism, gram=0.0, response=0.0)
    batch = Batch(rows.features, table, observed)
    found = _statistics(silent.fit(batch, SeededNoise(0)))
    # The rows are public, so they may be summed again, stretched by the sums before.
    for _ in range(ROUNDS if mechanism.stretched else 0):
        found = _statistics(silent.fit(batch, SeededNoise(0), (found,)))
        made = silent.conclusion((found,))
        found = replace(found, following=made.following, signal=made.signal)
    return _prior(plan, found, len(rows.actions), source, weight)


def prior_from_released(plan: Plan, released: Released, *, weight: float = 1.0) -> Prior:
    """Pool the releases of another experiment with the same features, actions and outcome.

    Releases are public, so this costs no privacy; their noise stays in them, and is allowed for.
    Releases that are marked ``NonPrivate`` protect no one, and are refused: the ledger of the new
    plan would not show it.

    Args:
        plan: The plan that the prior is for.
        released: Releases of ``PooledRidge``, of this experiment or another.
        weight: Weight of a record compared with one of the experiment.

    Returns:
        A ``Prior``, for ``dataclasses.replace(plan, prior=prior)``.

    Raises:
        InvalidInput: Other features, actions or outcome than the plan's, or releases without
            protection.

    >>> from discreet import Budget, Learner, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget(1.0, 1e-5), first_batch=2)
    >>> earlier = Learner(plan)
    >>> for _ in range(3):
    ...     earlier.observe(earlier.decide([0.1, 0.2]).id, loss=1.0)
    >>> prior_from_released(plan, earlier.released).source[:10]
    '1 releases'
    """
    mechanism = _pooling(plan)
    instance("released", released, (Released,), "Read one with Released.load(path).")
    if released.plan is None or not released.statistics:
        raise InvalidInput(
            "released must have a plan and at least one release with statistics; this has none. "
            "Save learner.released of an experiment with PooledRidge after its first release."
        )
    wrong = mechanism.misfit(released.statistics[-1]) is not None
    if wrong or shared_digest(released.plan) != shared_digest(plan.to_config()):
        raise InvalidInput(
            "released must have the features, actions, outcome and feedback of the plan, and its "
            "geometry; it has others. Give the plan those of the released file, or log rows again."
        )
    # Privacy: sums without protection would be part of a plan that claims to protect.
    # [docs/warm-start.md, "Public rows: a prior"]
    for item in released.items:
        unprotected = [part for part in flattened(item.event) if isinstance(part, NonPrivate)]
        if unprotected:
            raise InvalidInput(
                f"released must hold private releases; release {item.number} is marked NonPrivate: "
                f"{unprotected[0].reason}. Release with a budget and SecureNoise(); rows that are "
                "public go through prior_from_logs."
            )
    pool = pooled(released.statistics, mechanism.oracle.clear)
    records = max(1, round(float(pool.records)))
    variance = float(pool.noise) ** 2 / (2 * plan.features.p)
    newest, sums_of = released.statistics[-1], pool.outcome_sums
    if sums_of is not None:
        sums_of = np.concatenate([np.atleast_1d(pool.observed_count), sums_of[1:]])
    sums = pool.gram, pool.response, records, variance
    found = Statistics(*sums, pool.matrix, newest.following, sums_of, newest.signal)
    number = len(released.items)
    source = f"{number} releases of plan {digest_of(released.plan)[:12]}"
    return _prior(plan, found, records, source, weight)


def _statistics(fit: Fit) -> Statistics:
    assert fit.statistics is not None  # those of pooled statistics
    return fit.statistics


def _pooling(plan: Plan) -> PooledStatistics:
    instance("plan", plan, (Plan,), "Make a Plan first; its prior is made for it.")
    return pooling_for_prior(plan)


def _prior(plan: Plan, found: Statistics, records: int, source: str, weight: float) -> Prior:
    following = None if found.following is None else publishable(np.asarray(found.following))
    return Prior(
        source=source,
        made_for=shared_digest(plan.to_config()),
        weight=weight,
        records=records,
        variance=float(found.variance),
        gram=np.asarray(found.gram),
        response=np.asarray(found.response),
        matrix=found.matrix,
        following=following,
        told=found.outcome_sums,
        signal=found.signal,
    )
