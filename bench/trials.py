"""Replay randomised trials and Jester's ratings, and compare with the best fixed action.

Three ways to measure the default plan, or a plan with the unit "user":

- import: a learner imports 60 % of the rows, and its policy is estimated on the other 40 %.
- online: the plan proposes an action for each row in a random order, and a row becomes a round
  where the trial gave the proposed action (rejection sampling). Arms with larger shares are
  thinned first, so that every arm has the same probability.
- Jester: all ratings of a person are known, so ``evaluate`` plays the plan.

    python bench/trials.py --actg175 ACTG175.csv --star STAR.csv --randhie RandHIE.csv
    python bench/trials.py --hillstrom hillstrom.parquet --outcome spend --units
    python bench/trials.py --social_pressure social_pressure.parquet --jester jester5k.npz
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np

import discreet as dc
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.batches.users import PeopleCounts
from discreet.data.randomised_trials import TRIALS, RandomisedLog, randomised_log
from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.off_policy import Logs, evaluate_offline
from discreet.simulate.played_batches import shuffle

LEVELS = (1.0, 2.0, 4.0, 8.0, math.inf)
DELTA = 1e-6
"""Below one over the number of people in every trial."""
SHARE = 0.6
"""Share of the rows that a learner imports."""
GAUGE = (5, 7, 8, 13, 15, 16, 17, 18, 19, 20)
"""Numbers of the jokes that Jester shows to everybody first."""


class Measured(NamedTuple):
    """Mean loss of the best fixed action, and the excess of the plan with its standard error."""

    best: float
    excess: float
    error: float


Measure = Callable[[float, int], Measured]
"""Of ε and a seed."""


def plan_of(contexts: np.ndarray, n_actions: int, epsilon: float, **parts: Any) -> dc.Plan:
    """Return the default plan for these contexts, with the given parts."""
    budget = dc.Budget(epsilon, DELTA) if math.isfinite(epsilon) else dc.Budget.none()
    features = dc.UnitBall(contexts.shape[1])
    return dc.Plan(n_actions=n_actions, features=features, budget=budget, **parts)


def imported(
    log: RandomisedLog,
    epsilon: float,
    seed: int,
    *,
    rows: int | None = None,
    greedy: bool = False,
    **parts: Any,
) -> Measured:
    """Import 60 % of a trial, and estimate the policy on the rest (doubly robust).

    With ``rows`` at least so many rows are drawn from the 60 % with replacement.
    """
    rng = np.random.default_rng(seed)
    first, rest = split(log, np.arange(len(log.actions)), rng)
    means = [log.losses[first][log.actions[first] == a].mean() for a in range(log.n_actions)]
    fixed = np.eye(log.n_actions)[int(np.argmin(means))]
    if rows is not None and rows > len(first):
        first = rng.choice(first, rows)
    plan = plan_of(log.contexts, log.n_actions, epsilon, imported=len(first), **parts)
    learner = dc.Learner(plan, noise=SeededNoise(seed))
    users = None if plan.participation is None else log.users[first]
    learner.import_log(log.contexts[first], log.actions[first], log.losses[first], user=users)
    features = plan.features.map(log.contexts[rest])
    logs = Logs(features, log.actions[rest], log.losses[rest], log.propensities[rest])
    policy = (dc.Greedy(), learner.released) if greedy else (learner, None)
    learnt = evaluate_offline(logs, policy[0], released=policy[1]).dr.value
    best = evaluate_offline(logs, lambda x: np.tile(fixed, (len(x), 1))).dr.value
    return Measured(best, learnt - best, math.nan)


def online(
    log: RandomisedLog, epsilon: float, seed: int, *, rounds: int | None = None, **parts: Any
) -> Measured:
    """Play a trial by rejection sampling [Li et al. 2011], batch by batch.

    Without ``rounds`` the plan passes each row once, and the excess is doubly robust over these
    rows, whether they became rounds or not: the policy of a row has not seen it. With ``rounds``
    the plan passes 60 % of the rows as often as needed. It has then seen most of them before, so
    the excess is that on the other 40 %, weighted by the lengths of batches.
    """
    plan = plan_of(log.contexts, log.n_actions, epsilon, **parts)
    A, rng, noise = log.n_actions, np.random.default_rng([seed, 1]), SeededNoise(seed)
    order, held = rng.permutation(thinned(log, rng)), np.array([], dtype=int)
    if rounds is not None:
        order, held = split(log, order, rng)
        passes = math.ceil(rounds * A / len(order)) + 1
        order = np.concatenate([rng.permutation(order) for _ in range(passes)])
    others = np.isin(np.arange(len(log.actions)), held, invert=True)
    means = np.array([log.losses[others & (log.actions == a)].mean() for a in range(A)])
    best = int(np.argmin(means))
    features, u = plan.features.map(log.contexts), rng.random((len(order), 2))
    people = None if plan.participation is None else PeopleCounts(plan.participation)
    users = np.arange(len(log.actions)) if log.users is None else log.users
    released, ledger = plan.nothing_released(), Ledger(dc.Budget.none())
    left, start, scores = rounds or len(order), 0, []
    for batch in count(1):
        need = min(plan.schedule.length(batch), left)
        found = matches(plan, released, features, log.actions, order[start:], u[start:], need)
        rows, left = order[start + found], left - len(found)
        end = start + int(found[-1]) + 1 if len(found) == need else len(order)
        judged = order[start:end] if rounds is None else held
        chances = plan.played_policy.probabilities(released, features[judged])
        score = excess(chances, log.actions[judged], log.losses[judged], means, best)
        scores.append(score if rounds is None else len(rows) / rounds * score)
        start = end
        if not left or start == len(order):
            break
        observed = np.arange(A) == log.actions[rows, None]
        if people is not None:
            observed &= people.hand_out(users[rows].tolist(), batch)[:, None]
        told = Batch(features[rows], np.repeat(log.losses[rows, None], A, axis=1), observed)
        release, ledger = release_batch(plan, noise, told, released, ledger)
        released = released.add(release)
    if rounds is None:
        return Measured(means[best], *clustered(np.concatenate(scores), users[order[:start]]))
    return Measured(means[best], *clustered(np.sum(scores, axis=0), users[held]))


def split(log: RandomisedLog, rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return 60 % of the rows and the rest, in random order; all rows of a user are in one part."""
    if log.users is None:
        return np.split(rng.permutation(rows), [int(SHARE * len(rows))])
    learned = rng.random(log.users.max() + 1)[log.users[rows]] < SHARE
    return [rng.permutation(rows[learned]), rng.permutation(rows[~learned])]


def thinned(log: RandomisedLog, rng: np.random.Generator) -> np.ndarray:
    """Rows of a trial in which every action has the same probability."""
    accepted = rng.random(len(log.actions)) < log.propensities.min() / log.propensities
    return np.flatnonzero(accepted)


def matches(
    plan: dc.Plan,
    released: Released,
    features: np.ndarray,
    actions: np.ndarray,
    order: np.ndarray,
    u: np.ndarray,
    need: int,
) -> np.ndarray:
    """Places in ``order`` of the first ``need`` rows with the action that the plan proposes.

    The policy is frozen within a batch, so it proposes for many rows at once.
    """
    width = 2 * plan.n_actions * need
    while True:
        rows = order[:width]
        proposed = plan.played_policy.sample(released, features[rows], u[:width])
        found = np.flatnonzero(proposed == actions[rows])
        if len(found) >= need or width >= len(order):
            return found[:need]
        width *= 2


def excess(
    chances: np.ndarray, actions: np.ndarray, losses: np.ndarray, means: np.ndarray, best: int
) -> np.ndarray:
    """Doubly robust loss of each row under a policy, less that under the best action.

    The rows are thinned, so every one of the A actions had the probability 1/A.
    """
    apart = np.take_along_axis(chances, actions[:, None], axis=1)[:, 0] - (actions == best)
    return chances @ means - means[best] + len(means) * apart * (losses - means[actions])


def clustered(scores: np.ndarray, users: np.ndarray) -> tuple[float, float]:
    """Mean of scores, and its standard error over independent users."""
    _, place = np.unique(users, return_inverse=True)
    sums = np.bincount(place, scores - scores.mean())
    return float(scores.mean()), float(np.sqrt((sums**2).sum()) / len(scores))


def jester(path: str) -> tuple[np.ndarray, np.ndarray, Outcome]:
    """Read Jester: contexts (n, 10), losses of ten jokes (n, 10) and the range of ratings.

    A context is the ratings of the jokes that Jester shows first, 0 where one is missing. The
    actions are the ten other jokes that most people rated. People who lack one of these ratings
    are left out.
    """
    ratings, outcome = np.load(path)["ratings"].astype(float), dc.Reward(-10, 10, clip=True)
    gauge = np.array(GAUGE) - 1
    counts = np.isfinite(ratings).sum(0)
    counts[gauge] = 0
    offered = np.argsort(-counts, kind="stable")[:10]
    ratings = ratings[np.isfinite(ratings[:, offered]).all(1)]
    contexts = np.clip(np.nan_to_num(ratings[:, gauge]) / 10, -1, 1) / math.sqrt(len(gauge))
    return contexts, outcome.losses_of(ratings[:, offered], (len(ratings), 10)), outcome


def all_known(
    contexts: np.ndarray, losses: np.ndarray, epsilon: float, seed: int, **parts: Any
) -> Measured:
    """Play people all of whose losses are known."""
    plan = plan_of(contexts, losses.shape[1], epsilon, **parts)
    run = dc.evaluate(plan, contexts, losses=losses, seed=seed)
    order, _ = shuffle(seed, len(losses))
    fixed = losses[order, int(losses.mean(0).argmin())]
    return Measured(float(fixed.mean()), *clustered(run.losses - fixed, order))


def ridge_gain(contexts: np.ndarray, losses: np.ndarray, folds: int = 5) -> tuple[float, float]:
    """Cross-validated excess of a ridge regression without privacy, and its standard error."""
    x, fold = np.insert(contexts, 0, 1.0, axis=1), np.arange(len(losses)) % folds
    chosen = np.empty(len(losses), dtype=int)
    for each in range(folds):
        seen, rest = x[fold != each], x[fold == each]
        gram = seen.T @ seen + 0.1 * np.eye(x.shape[1])
        weights = np.linalg.solve(gram, seen.T @ losses[fold != each])
        chosen[fold == each] = (rest @ weights).argmin(1)
    rows = np.arange(len(losses))
    return clustered(losses[rows, chosen] - losses[:, losses.mean(0).argmin()], rows)


def half_width(found: list[Measured]) -> float:
    """Half of a 95 % interval for the mean excess over seeds.

    Errors of rows are common to all seeds, and do not shrink with the number of seeds. Splits
    overlap, so their interval is widened [Nadeau and Bengio 2003].
    """
    spread = float(np.var([each.excess for each in found], ddof=1))
    error = float(np.mean([each.error for each in found]))
    if math.isnan(error):
        return 1.96 * math.sqrt(spread * (1 / len(found) + (1 - SHARE) / SHARE))
    return 1.96 * math.sqrt(spread / len(found) + error**2)


def lines(title: str, uniform: float, units: Outcome, measure: Measure, seeds: int) -> None:
    """Print two lines of the table: means, and differences from the best fixed action."""
    means, apart = [], []
    for epsilon in LEVELS:
        found = [measure(epsilon, seed) for seed in range(seeds)]
        best, excess = np.array(found)[:, :2].mean(0)
        means.append(f"{units.value_of(best + excess):.4f}")
        width = units.error_of(half_width(found))
        apart.append(f"{units.difference_of(excess):+.4f} ± {width:.4f}")
    fixed = f"{units.value_of(best):.4f} | {units.value_of(uniform):.4f}"  # the same for every ε
    print(f"| {title} | {fixed} | {' | '.join(means)} |")
    print(f"| difference | | | {' | '.join(apart)} |", flush=True)


def trial_lines(log: RandomisedLog, options: argparse.Namespace) -> None:
    """Print the lines of a trial: each method, at the level of a decision and of a user."""
    units = log.outcome if options.units else UNIT_LOSS
    user = {
        "unit": "user",
        "batches_per_user": options.batches_per_user,
        "records_per_batch": options.records_per_batch,
    }
    uniform = float(log.action_losses().mean())
    n, least = len(log.actions), float(log.propensities.min())
    learnt, played = max(options.rows or 0, int(SHARE * n)), options.rounds or round(n * least)
    for unit, parts in {"decision": {}, "user": user}.items():
        if options.unit not in (None, unit) or (unit == "user" and log.users is None):
            continue
        if options.method != "online":
            rule = partial(imported, log, rows=options.rows, greedy=options.greedy, **parts)
            title = f"{log.name}, import, {unit}, n = {learnt:,}"
            lines(title, uniform, units, rule, options.seeds)
        if options.method != "import":
            rule = partial(online, log, rounds=options.rounds, **parts)
            title = f"{log.name}, online, {unit}, n = {played:,}"
            lines(title, uniform, units, rule, options.seeds)


def jester_lines(path: str, options: argparse.Namespace) -> None:
    """Print the lines of Jester: with feedback for the chosen joke, and for all ten."""
    contexts, losses, outcome = jester(path)
    for feedback in ("bandit", "full"):
        rule = partial(all_known, contexts, losses, feedback=feedback)
        title = f"jester, {feedback} feedback, n = {len(losses):,}"
        units = outcome if options.units else UNIT_LOSS
        lines(title, float(losses.mean()), units, rule, options.seeds)
    gain, error = ridge_gain(contexts, losses)
    apart, width = units.difference_of(gain), units.error_of(1.96 * error)
    print(f"\nRidge regression without privacy: {apart:+.4f} ± {width:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in TRIALS:
        parser.add_argument(f"--{name}", metavar="FILE")
    parser.add_argument("--jester", metavar="FILE.npz")
    parser.add_argument("--outcome", help="an outcome other than the first of the trial")
    parser.add_argument("--method", choices=("import", "online"), help="by default both")
    parser.add_argument("--unit", choices=("decision", "user"), help="by default both")
    parser.add_argument("--batches-per-user", type=int)
    parser.add_argument("--records-per-batch", type=int)
    parser.add_argument("--rows", type=int, help="import at least so many, with replacement")
    parser.add_argument(
        "--rounds", type=int, help="play so many online, in several passes of 60 %%"
    )
    parser.add_argument("--greedy", action="store_true", help="import: estimate Greedy() instead")
    parser.add_argument("--units", action="store_true", help="print the outcome, not losses")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    print(f"| | best fixed | uniform | {' | '.join(f'ε = {each:g}' for each in LEVELS)} |")
    print("|---" * (3 + len(LEVELS)) + "|")
    for name in TRIALS:
        if path := getattr(options, name):
            trial_lines(randomised_log(name, path, options.outcome), options)
    if options.jester:
        jester_lines(options.jester, options)


if __name__ == "__main__":
    main()
