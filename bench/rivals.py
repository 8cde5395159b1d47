"""Questions about the rivals that a campaign does not answer.

    python bench/rivals.py leaks
    python bench/rivals.py lag --data DIR --sets phoneme banknote cmc wilt
    python bench/rivals.py synthetic
    python bench/rivals.py thompson
    python bench/rivals.py mixing
    python bench/rivals.py squarecb --data DIR --sets phoneme churn --features ranges --seeds 2

``leaks``: the ε that published constants really cost one replaced record, at δ = 1e-5.
``lag``: losses of clocks that change the policy every round, and of the lag that campaigns use.
``synthetic``: excess loss on exactly linear losses, in the order that papers draw.
``thompson``: reward of AdaPrivate-TS, in percent of its reward without privacy; what a clear Gram
shows.
``mixing``: what Iterative Hessian Mixing adds to a Gram for one replaced record, beside AdaSSP.
``squarecb``: Vowpal Wabbit on the same rows (extra ``bench``).
The table itself is ``discreet campaign run --preset rivals`` [docs/results/table.md].
"""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dp_accounting import NeighboringRelation, dp_event, rdp
from scipy.optimize import brentq

import discreet as dc
from discreet.audit.finding import gaussian_epsilon
from discreet.audit.rival_audits import DELTA, RIVALS, RivalSubject, read_record
from discreet.data import linear
from discreet.lab.campaign.presets import FEATURES, budget_of
from discreet.lab.campaign.tasks import scaled
from discreet.lab.rivals import (
    AdaPrivateTS,
    AdaSSP,
    BatchedLinUCB,
    LocalLinUCB,
    ShuffledLinUCB,
    TreeLinUCB,
)
from discreet.lab.rivals.coded_bandit import crowd_divergences, sampling
from discreet.lab.rivals.rival_contract import RivalPlan, Scales
from discreet.lab.rivals.runner import run
from discreet.privacy.accounting import epsilon as cost
from discreet.simulate.engine import Machine
from discreet.simulate.played_batches import shuffle

LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0)
PEOPLE = 20
"""The batch of the shuffle model's published experiment."""


@dataclass(frozen=True)
class Formula(LocalLinUCB):
    """A local mechanism with σ = f(ε): noise (Z + Zᵀ)/2 on the matrix, σ on the vector."""

    name: str = ""

    def scales(self, problem, budget):  # noqa: ARG002
        sigma, triangle = FORMULAS[self.name](budget.epsilon)
        # (Z + Zᵀ)/2 has σ on the diagonal and σ/√2 beside it: σ in svec. A triangle has √2 more.
        gram = math.sqrt(2.0) * sigma if triangle else sigma
        return Scales(gram, sigma, sigma, centre=1.0)


FORMULAS = {
    "local, 4√log(1.25/δ)/ε": lambda e: (4 * math.sqrt(math.log(1.25 / DELTA)) / e, True),
    "local, √log(2.5/δ)/ε": lambda e: (math.sqrt(math.log(2.5 / DELTA)) / e, False),
    "shuffled batch of 20, √log(50/δ)/ε": lambda e: (
        math.sqrt(math.log(2.5 * PEOPLE / DELTA)) / e,
        False,
    ),
    "vector sum of 5 numbers, √(3/16)·log(5/δ)/ε": lambda e: (
        math.sqrt(3 / 16) * math.log(5 / DELTA) / e,
        True,
    ),
}


def leaks(_: argparse.Namespace) -> None:
    print(f"{'ε that one replaced record costs, claimed':48}", *(f"{e:>7g}" for e in LEVELS))
    published = [name for name in RIVALS if name.endswith("published")]
    for name in published:
        found = [gaussian_epsilon(RivalSubject(name, e).shift, DELTA) for e in LEVELS]
        print(f"{name:48}", *(f"{each:7.3f}" for each in found))
    for name in FORMULAS:
        RIVALS[name] = Formula(name=name)
        found = [gaussian_epsilon(RivalSubject(name, e).shift, DELTA) for e in LEVELS]
        print(f"{name:48}", *(f"{each:7.3f}" for each in found))
    problem = dc.Problem(2, 3, "bandit", "general", False)
    found = [AdaSSP("published").calibrate(problem, dc.Budget(e, DELTA)).event for e in LEVELS]
    print(f"{'AdaSSP, √log(6/δ)/(ε/3)':48}", *(f"{cost(each, DELTA):7.3f}" for each in found))
    found = [gaussian_epsilon(_descent(e), DELTA) for e in LEVELS]
    print(
        f"{'generalised linear bandits, a fit of 25 steps':48}", *(f"{each:7.3f}" for each in found)
    )
    print("P2B, δ at the claimed ε of a crowd of ten with threshold ten:")
    shares = [sampling(dc.Budget(e, DELTA), "published")[0] for e in LEVELS]
    deltas = [
        crowd_divergences(q, 10, e, np.array([9])).max()
        for q, e in zip(shares, LEVELS, strict=True)
    ]
    print(f"{'':48}", *(f"{each:7.1e}" for each in deltas))


def _descent(claimed: float, steps: int = 25) -> float:
    """Distance of worlds in a fit by the code: full batches, clipped gradients x and −x.

    It calibrates the noise of ``steps`` gradients by Rényi privacy for a move of one clipping
    norm; a replaced record moves their sum by two.
    """

    def found(sigma: float) -> float:
        account = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        account.compose(dp_event.GaussianDpEvent(sigma), steps)
        return account.get_epsilon(DELTA) - claimed

    return 2.0 * math.sqrt(steps) / brentq(found, 0.1, 1e4)


def lag(options: argparse.Namespace) -> None:
    levels, machine = (1.0, 4.0, 8.0, math.inf), Machine(dtype="float32")
    for kind in (TreeLinUCB, LocalLinUCB):
        found = {each: [] for each in (0.0, 0.01, 0.02, 0.05)}
        for name in options.sets:
            with np.load(options.data / f"{name}.npz") as data:
                x, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
            rows = dc.UnitBall(x.shape[1]).map(scaled(x, "standard"))
            for each, losses in found.items():
                rival = kind(lag=each)
                plans = [
                    RivalPlan(rival, int(y.max()) + 1, rows.shape[1], budget_of(e)) for e in levels
                ]
                played = run(plans, rows, y, range(options.seeds), machine)
                losses.append(played[:, :, -1].mean(1))
        base = np.array(found[0.0])
        for each, losses in found.items():
            apart = np.array(losses) - base
            error = apart.std(0) / math.sqrt(len(options.sets))
            print(f"{kind.__name__} lag {each:g}: {np.mean(losses, 0).round(4)}", end=" ")
            print(f"less every round: {apart.mean(0).round(4)} ± {error.round(4)}")


def synthetic(options: argparse.Namespace) -> None:
    """Excess loss on linear losses, with the ε, δ and T of the shuffle model's experiment."""
    data = linear(options.rounds)
    rows = dc.UnitBall(data.dimension).map(data.contexts)
    rivals = {"tree": TreeLinUCB(), "batches": BatchedLinUCB(), "shuffled": ShuffledLinUCB()}
    for name, rival in {**rivals, "local": LocalLinUCB()}.items():
        budgets = [dc.Budget(e, 0.1) for e in (0.2, 1.0, 10.0)]
        plans = [RivalPlan(rival, data.n_actions, rows.shape[1], each) for each in budgets]
        plans.append(RivalPlan(rival, data.n_actions, rows.shape[1], dc.Budget.none()))
        losses = run(plans, rows, data.labels, range(options.seeds))[:, :, -1]
        excess, error = losses.mean(1) - data.best_loss, losses.std(1) / math.sqrt(options.seeds)
        print(f"{name:9} ε = 0.2, 1, 10, ∞: {excess.round(4)} ± {error.round(4)}")


def thompson(options: argparse.Namespace) -> None:
    """Reward of AdaPrivate-TS as a share of that without privacy, on exactly linear losses."""
    data, levels = linear(options.rounds), (0.5, 1.0, 2.0, 5.0)
    rows = dc.UnitBall(data.dimension).map(data.contexts)
    budgets = [*(budget_of(e) for e in levels), dc.Budget.none()]
    for rival in (
        AdaPrivateTS(gram="clear"),
        AdaPrivateTS(),
        BatchedLinUCB(),
    ):
        plans = [RivalPlan(rival, data.n_actions, rows.shape[1], each) for each in budgets]
        gained = 1.0 - run(plans, rows, data.labels, range(options.seeds))[:, :, -1]
        shares = 100 * gained[:-1] / gained[-1]
        error = shares.std(1) / math.sqrt(options.seeds)
        name = f"{type(rival).__name__} {getattr(rival, 'gram', '')}"
        print(f"{name:24} ε = {levels}: {shares.mean(1).round(1)} ± {error.round(1)} %")
    RIVALS["AdaPrivate-TS, clear Gram"] = AdaPrivateTS(gram="clear")
    for name in ("AdaPrivate-TS, clear Gram", "rival-adaprivate"):
        print(f"{name}, ε = 0.5: {read_record(RivalSubject(name, 0.5)).said}")


def mixing(_: argparse.Namespace) -> None:
    """γ of Iterative Hessian Mixing and the ridge of AdaSSP, both for one replaced record.

    k rows of N(0, G + γI) at order α: k·(α log(1 − 1/γ) − log(1 − α/γ))/(2(α − 1)) for a record
    that is set to zero. Two such steps replace it: (ε, δ) at (ε/2, δ/(1 + e^{ε/2})) each, of which
    the sketches of all iterations get half.
    """
    failure, iterations = 0.05, 3
    orders = 1.0 + np.logspace(-2, 4, 400)
    print("p, ε: γ of mixing, ridge of AdaSSP at least and at most")
    for p, level in itertools.product((5, 20), (1.0, 4.0, 8.0)):
        k = 6 * max(p, math.log(4 * iterations / failure))
        one = level / 2
        delta = DELTA / (1 + math.exp(one)) / 2

        def cost(gamma: float, k=k, delta=delta) -> float:
            a = orders[orders < gamma]
            spent = k * (a * np.log1p(-1 / gamma) - np.log1p(-a / gamma)) / (2 * (a - 1))
            turned = (math.log(1 / delta) + (a - 1) * np.log1p(-1 / a) - np.log(a)) / (a - 1)
            return float((iterations * spent + turned).min())

        gamma = brentq(lambda g, one=one, cost=cost: cost(g) - one / 2, 2.0, 1e7)
        mechanism = AdaSSP().calibrate(dc.Problem(2, p), dc.Budget(level, DELTA))
        most = math.sqrt(p * math.log(2 * p**2 / failure)) * mechanism.gram
        print(f"{p:3} {level:4g}: {gamma:8.1f}  0 to {most:.1f}")


def squarecb(options: argparse.Namespace) -> None:
    """Vowpal Wabbit's SquareCB on the rows, orders and uniforms of a campaign; no privacy."""
    means = []
    for name in options.sets:
        with np.load(options.data / f"{name}.npz") as data:
            x, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
        rows = scaled(x, options.features)
        lost = [_vowpal(rows, y, seed) for seed in range(options.seeds)]
        means.append(float(np.mean(lost)))
        print(f"{name}: {means[-1]:.4f}", flush=True)
    print(f"mean over {len(means)} sets: {np.mean(means):.4f}")


def _vowpal(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    import vowpalwabbit

    vw = vowpalwabbit.Workspace("--cb_explore_adf --squarecb -q ca --quiet")
    order, uniforms = shuffle(seed, len(x))
    actions = [f"|a a{a}" for a in range(int(y.max()) + 1)]
    lost = 0
    for row, u in zip(order, uniforms[:, 0], strict=True):
        told = " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(x[row]))
        lines = [f"shared |c {told}", *actions]
        chances = vw.predict(lines)
        action = min(int(np.searchsorted(np.cumsum(chances), u, side="right")), len(actions) - 1)
        loss = int(action != y[row])
        lost += loss
        lines[1 + action] = f"0:{loss}:{chances[action]:.6g} {actions[action]}"
        vw.learn(lines)
    vw.finish()
    return lost / len(y)


QUESTIONS = {each.__name__: each for each in (leaks, lag, synthetic, thompson, mixing, squarecb)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=QUESTIONS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["phoneme", "banknote", "cmc", "wilt"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--features", default="ranges", choices=FEATURES)
    parser.add_argument("--rounds", type=int, default=20_000)
    options = parser.parse_args()
    QUESTIONS[options.question](options)


if __name__ == "__main__":
    main()
