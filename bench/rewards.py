"""Share of the attainable gain on clicks and spend: simulated worlds whose truth is known.

    python bench/rewards.py [--worlds NAME …] [--rounds 5000 20000 …] [--recipes default SquareCB …]
                            [--epsilon 1 2 4 8 inf] [--half develop|confirm|both] [--seeds 4]
                            [--vw] [--thompson] [--rivals [NAME …]] [--device numpy|cuda] [--jobs 2]
                            [--scores FILE.csv] [--figure FILE.png] [--quick]

A ``World`` and a seed give contexts, and expected and realised losses of all actions. Plans learn
from realised losses and are scored by expected ones: (policy − uniform)/(oracle − uniform) over the
first n rounds. 0 is a uniform draw, 1 the best action for each person. One run of the largest n
gives all smaller n, unless a recipe uses the horizon. Even seeds are to develop on, odd seeds to
confirm; ``--seeds`` is the number in each half. Worlds draw their coefficients from the seed, but
those in ``REFERENCE`` have the same ones in all seeds.

Runs are stacked and played by ``discreet.simulate.played_batches.play``. Missing answers, and
visits beyond what a plan with unit="user" counts, are void slots, as in a ``Learner``. Worlds with
late answers are played by a ``Learner`` on the CPU, as in bench/late_losses.py. ``--vw`` adds
Vowpal Wabbit's SquareCB, which is not private (extra ``bench``). Both play at most 20,000 rounds.
``--thompson`` adds Thompson sampling without privacy and without contexts: how close one can come
to the best fixed action, which is known in hindsight only. With at most five actions it is also
played knowing the mean reward of all actions, but not which action has which. ``--rivals`` adds
the published private bandits of ``discreet.lab.rivals`` that act every round (P2B reports labels
only), scored by realised losses.

Behind ± is the standard error over seeds. The end of the report lists cells of the first recipe
that fall with n, and cells below the best fixed action. Noise is seeded: it protects nobody. Scores
are kept in a file and not computed again: delete the file after a change of the code.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, pairwise, permutations, product
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.arrays.backend import to_numpy
from discreet.batches.release_batch import fit_batch
from discreet.batches.users import slots_that_count
from discreet.lab.campaign.hardware import machine, one_thread, shared_gpu
from discreet.lab.campaign.presets import ROUNDS
from discreet.lab.rivals import EpsGreedy, ThompsonSampling, runner
from discreet.lab.rivals.rival_contract import RivalPlan
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.engine import Family, Machine, memory_parts
from discreet.simulate.played_batches import play, played_control
from discreet.text import Advice

Array = np.ndarray[Any, Any]
DELTA = 1e-6
CHUNK = 2**16
"""Rows that are drawn at once, whatever n is: a short run is the beginning of a long one."""
GPU_MEMORY, GPU_DATA = 32.0, 2**32
"""GiB for runs on a GPU, and bytes of drawn rows that are there at once, over all jobs."""
AMOUNT, SPREAD, LARGEST = 3.3, 0.9, 200.0
"""Mean and standard deviation of the logarithm of an amount, and the largest amount."""
FEW_ROUNDS = 20_000
"""The most rounds of a Learner with late answers, and of Vowpal Wabbit."""
CALL = 50
"""Decisions in a call of a Learner."""
VOWPAL, THOMPSON = "VW SquareCB", "Thompson sampling"
KNOWING = "Thompson, means known"
"""Thompson sampling that knows the set of mean rewards, but not which action has which."""
FEW_ACTIONS = 5
"""The most actions whose orders are enumerated by ``KNOWING``."""


@dataclass(frozen=True)
class World:
    """Rewards whose expectation is logistic in a linear function of the context.

    Columns z are uniform in [−1, 1]/√p. Action a has the logit logit(``rate``) + o_a + z·β_a: o has
    the standard deviation ``action_effect`` over actions, and β is normal with that of ``effect``.
    ``family`` is "clicks" (0 or 1), "spend" (heavy-tailed amounts of buyers) or "ratings" (spread
    around their mean). ``fill`` is the share of the declared range that rewards fill. ``columns``
    are "even", "correlated" (by a common factor) or "scaled" (z times 1 down to 0.01). A person has
    ``visits`` on average, with one context; above 1 the unit is a user. ``missing`` is the share of
    answers that never come, and ``late`` the decisions after which the others come. ``truth`` is
    the seed of the coefficients, where all seeds of the world share them.
    """

    name: str
    family: str = "clicks"
    n_actions: int = 5
    p: int = 10
    rate: float = 0.03
    effect: float = 0.7
    action_effect: float = 0.3
    fill: float = 1.0
    columns: str = "even"
    visits: int = 1
    missing: float = 0.0
    late: int = 0
    truth: int | None = None

    def rounds(self, wanted: Sequence[int]) -> list[int]:
        """Return the numbers of rounds that are played in this world."""
        return sorted(n for n in wanted if not self.late or n <= FEW_ROUNDS)


REFERENCE = (
    World("clicks-strong", effect=1.0, truth=4),
    World("clicks-weak", effect=0.4, truth=49),
    World("spend", "spend", 4, 8, rate=0.08, effect=1.0, truth=37),
)
"""The first seeds whose best fixed actions have .45, .91 and .28 of the attainable gain."""
CENTRE = World("centre")
SPEND = World("spend-medium", "spend", rate=0.08)
RATINGS = World("fill-100%", "ratings", rate=0.5)
OTHERS = (
    CENTRE,
    *(replace(CENTRE, name=f"rate-{rate:.0%}", rate=rate) for rate in (0.5, 0.1, 0.01)),
    replace(CENTRE, name="effect-weak", effect=0.4),
    replace(CENTRE, name="effect-strong", effect=1.0),
    replace(CENTRE, name="action-only", effect=0.0),
    replace(CENTRE, name="action-only-50%", effect=0.0, rate=0.5),
    SPEND,
    replace(SPEND, name="spend-weak", effect=0.4),
    *(replace(RATINGS, name=f"fill-{fill:.0%}", fill=fill) for fill in (0.02, 0.1)),
    RATINGS,
    replace(CENTRE, name="correlated", columns="correlated"),
    replace(CENTRE, name="scaled", columns="scaled"),
    *(replace(CENTRE, name=f"actions-{count}", n_actions=count) for count in (2, 20)),
    *(replace(CENTRE, name=f"columns-{p}", p=p) for p in (5, 20, 40)),
    replace(CENTRE, name="people", visits=4),
    replace(SPEND, name="people-spend", visits=2),
    replace(CENTRE, name="missing", missing=0.3),
    replace(CENTRE, name="late", rate=0.1, effect=1.0, late=1_000, missing=0.1),
)
WORLDS = {world.name: world for world in (*REFERENCE, *OTHERS)}

Recipe = Callable[[int, dc.UnitBall, dc.Budget, int], dc.Plan]


def recipe(**chosen: Any) -> Recipe:
    """Return a recipe: problem and budget, and the parts that are not the default."""

    def plan(n_actions: int, features: dc.UnitBall, budget: dc.Budget, _: int) -> dc.Plan:
        return dc.Plan(n_actions=n_actions, features=features, budget=budget, **chosen)

    return plan


for each in (EpsGreedy, ThompsonSampling):
    dc.register(each)
PLAIN = dc.PooledRidge(geometry="plain")
RECIPES: dict[str, Recipe] = {
    "default": recipe(),
    "SquareCB": recipe(policy=dc.SquareCB(scale=16.0, exponent=0.5), oracle=PLAIN),
    "greedy": recipe(policy=dc.Greedy(), oracle=PLAIN),
    "plain geometry": recipe(oracle=PLAIN),
    "Epsilon-greedy": recipe(policy=EpsGreedy(share=0.1)),
    "Thompson": recipe(policy=ThompsonSampling(width=0.1)),
}


RIVALS = {
    f"{name}({rival.width:g}{'' if getattr(rival, 'inflated', True) else ', plain'})": rival
    for name, rivals in ROUNDS.items()
    for rival in rivals
    if not name.startswith("P2B")
}
"""Published private bandits, by name and width."""


class Rows(NamedTuple):
    """Rows (n, …) of a world in one seed; floats in single precision."""

    features: Array
    losses: Array
    gains: Array
    """Expected loss of a uniform draw less that of each action (n, A)."""
    u: Array
    users: Array
    answered: Array

    @property
    def contexts(self) -> Array:
        return math.sqrt(2.0) * self.features[:, 1:].astype(float)


def drawn(world: World, seed: int, n: int) -> Rows:
    """Draw the first n rows of a world."""
    name = zlib.crc32(world.name.encode())
    rng = np.random.default_rng([name, seed] if world.truth is None else world.truth)
    slopes = world.effect * rng.standard_normal((world.p, world.n_actions))
    offsets = rng.standard_normal(world.n_actions)
    offsets *= world.action_effect / offsets.std()
    offsets += math.log(world.rate / (1 - world.rate)) - offsets.mean()
    signs = rng.choice([-1.0, 1.0], world.p)
    chunks = [
        _chunk(world, slopes, offsets, signs, first, np.random.default_rng([name, seed, first]))
        for first in range(0, n, CHUNK)
    ]
    return Rows(*(np.concatenate(each)[:n] for each in zip(*chunks, strict=True)))


def _chunk(
    world: World, slopes: Array, offsets: Array, signs: Array, first: int, rng: np.random.Generator
) -> Rows:
    people = CHUNK // world.visits
    z = rng.uniform(-1.0, 1.0, (people, world.p))
    if world.columns == "correlated":
        z = 0.9 * signs * rng.uniform(-1.0, 1.0, (people, 1)) + math.sqrt(1 - 0.9**2) * z
    z /= math.sqrt(world.p)
    contexts = z * np.logspace(0, -2, world.p) if world.columns == "scaled" else z
    users = np.arange(CHUNK) if world.visits == 1 else rng.integers(people, size=CHUNK)
    expected, luck = 1.0 / (1.0 + np.exp(-(offsets + z @ slopes)))[users], rng.random((CHUNK, 1))
    rewards: Array = luck < expected
    if world.family == "ratings":
        rewards = expected + (2 * luck - 1) * np.minimum(expected, 1 - expected)
    elif world.family == "spend":
        amounts = np.exp(AMOUNT + SPREAD * rng.standard_normal((CHUNK, 1)))
        rewards = rewards * np.minimum(amounts, LARGEST) / LARGEST
        expected *= mean_amount() / LARGEST
    gains = world.fill * (expected - expected.mean(axis=1, keepdims=True))
    u = np.minimum(rng.random((CHUNK, 2)), np.nextafter(np.float32(1), np.float32(0)))
    answered = rng.random(CHUNK) >= world.missing
    floats = (dc.UnitBall(world.p).map(contexts)[users], 1.0 - world.fill * rewards, gains, u)
    return Rows(*(each.astype(np.float32) for each in floats), users + first, answered)


def mean_amount() -> float:
    """Return the mean of a lognormal amount that is cut at ``LARGEST``."""
    cut = (math.log(LARGEST) - AMOUNT) / SPREAD
    below = math.exp(AMOUNT + SPREAD**2 / 2) * NormalDist().cdf(cut - SPREAD)
    return below + LARGEST * (1.0 - NormalDist().cdf(cut))


class Job(NamedTuple):
    """One plan in one world, with the numbers of rounds at which its run is scored."""

    recipe: str
    epsilon: float
    plan: dc.Plan | None
    rounds: list[int]

    def key(self, world: World, n: int, seed: int) -> tuple:
        """Return the key of a score, with a checksum of all parameters of world and plan."""
        plan = self.plan and [getattr(self.plan, each.name) for each in fields(self.plan)]
        check = f"{zlib.crc32(repr((world, plan)).encode()):08x}"
        return self.recipe, world.name, check, n, self.epsilon, seed


def jobs_of(world: World, options: argparse.Namespace) -> list[Job]:
    """Return the runs of all recipes: one for all n, unless the plan depends on n."""
    features, found, rounds = dc.UnitBall(world.p), {}, world.rounds(options.rounds)
    unit = {"unit": "user"} if world.visits > 1 else {}
    for name, epsilon, n in product(options.recipes, options.epsilon, rounds):
        budget = dc.Budget(epsilon, DELTA) if math.isfinite(epsilon) else dc.Budget.none()
        plan = replace(RECIPES[name](world.n_actions, features, budget, n), **unit)
        found.setdefault((name, epsilon, plan), []).append(n)
    few = [n for n in rounds if n <= FEW_ROUNDS]
    peers = [Job(VOWPAL, math.inf, None, few)] if options.vw and few else []
    if options.thompson and rounds:
        names = [THOMPSON] + [KNOWING] * (world.n_actions <= FEW_ACTIONS)
        peers += [Job(name, math.inf, None, rounds) for name in names]
    if options.rivals is not None and not (world.late or world.visits > 1 or world.missing):
        peers += [
            Job(name, epsilon, None, rounds)
            for name, epsilon in product(RIVALS, options.epsilon)
            if (name.startswith("Plain")) == math.isinf(epsilon)
            and (not options.rivals or name.split("(")[0] in options.rivals)
        ]
    return [Job(*key, ns) for key, ns in found.items()] + peers


Gained = Iterator[tuple[Job, int, int, float]]
"""A job, the place of a seed, a number of rounds, and the expected gain summed over them."""


def play_world(world: World, seeds: Sequence[int], jobs: list[Job], where: Machine) -> list[tuple]:
    """Play all jobs of a world in some seeds; return keys, shares, and those of the best action."""
    rows = [drawn(world, seed, max(max(job.rounds) for job in jobs)) for seed in seeds]
    ours, found = [job for job in jobs if job.plan], []
    stacks = _late(world, seeds, rows, ours) if world.late else _in_stacks(seeds, rows, ours, where)
    played = {VOWPAL: _vowpal, THOMPSON: _thompson, KNOWING: _thompson}
    others = [job for job in jobs if not job.plan]
    peers = (
        each for job in others if job.recipe in played for each in played[job.recipe](rows, job)
    )
    rivals = _rivals(seeds, rows, [job for job in others if job.recipe in RIVALS], where)
    with warnings.catch_warnings(), one_thread(where.device):
        warnings.simplefilter("ignore", Advice)
        for job, s, n, gained in (*stacks, *peers, *rivals):
            gains = rows[s].gains[:n]
            attainable = gains.max(axis=1).sum(dtype=float)
            fixed = gains.sum(axis=0, dtype=float).max()
            found.append((job.key(world, n, seeds[s]), gained / attainable, fixed / attainable))
    return found


def _in_stacks(seeds: Sequence[int], rows: list[Rows], jobs: list[Job], where: Machine) -> Gained:
    """Play the jobs that share a schedule together, as ``discreet.simulate.engine`` does."""
    together = defaultdict(list)
    for job in jobs:
        together[replace(job.plan.schedule, horizon=None), max(job.rounds)].append(job)
    for (batches, length), group in together.items():
        schedule, plans = replace(batches, horizon=length), [job.plan for job in group]
        counts, often = [each.answered[:length] for each in rows], plans[0].participation
        if often is not None:
            owners, lengths = [each.users[:length] for each in rows], schedule.lengths()
            allowed = [slots_that_count(each, lengths, often) for each in owners]
            counts = [a & b for a, b in zip(counts, allowed, strict=True)]
        arrays = *([each[i][:length] for each in rows] for i in range(4)), counts
        x, losses, gains, u, counted = (where.array(np.stack(each)[:, None]) for each in arrays)
        for indices, some in memory_parts(plans, x.shape[-2:], schedule, len(seeds), where):
            family, at = Family.of([plans[i] for i in indices]), slice(some[0], some[-1] + 1)
            noise = SeededNoise(tuple(seeds[s] for s in some))
            released, start, control = Released(plans[0].n_actions, schedule), 0, None
            if family.control is not None:
                shares = family.control, family.planned
                control = where.array(played_control(*shares, length, None))
            total: Any = defaultdict(float)
            release = partial(fit_batch, family, noise)
            run = x[at], losses[at], u[at], release, counted[at], control
            for batch in play(family, released, *run):
                chosen, part = batch.chosen, gains[at, :, start : start + batch.chosen.shape[-1]]
                gained = sum((chosen == a) * part[..., a] for a in range(part.shape[-1]))
                for n in {n for i in indices for n in group[i].rounds if n > start}:
                    total[n] = total[n] + gained[..., : n - start].sum(-1)
                start += chosen.shape[-1]
            total = {
                n: to_numpy(each) for n, each in total.items()
            }  # to fetch is to wait for a GPU
            for (k, i), (j, s) in product(enumerate(indices), enumerate(some)):
                yield from ((group[i], s, n, total[n][j, k]) for n in group[i].rounds)


def _late(world: World, seeds: Sequence[int], rows: list[Rows], jobs: list[Job]) -> Gained:
    """Play each job with a ``Learner`` that is told losses late, or never."""
    for job, (s, seed) in product(jobs, enumerate(seeds)):
        n, contexts, told = max(job.rounds), rows[s].contexts, 0
        learner = dc.Learner(
            job.plan,
            window=max(1_000, world.late),
            noise=SeededNoise(seed),
            draws=np.random.default_rng([seed, 1]),
        )
        ids, actions = np.empty((2, n), dtype=np.int64)
        for first in range(0, n, CALL):
            last = min(first + CALL, n)
            decided = learner.decide(contexts[first:last])
            ids[first:last], actions[first:last] = decided.id, decided.action
            due = np.arange(told, max(told, last - world.late))
            told = max(told, last - world.late)
            due = due[rows[s].answered[due]]
            learner.observe(ids[due], rows[s].losses[due, actions[due]].astype(float))
        gained = rows[s].gains[np.arange(n), actions].astype(float)
        yield from ((job, s, mark, gained[:mark].sum()) for mark in job.rounds)


def _vowpal(rows: list[Rows], job: Job) -> Gained:
    """Play Vowpal Wabbit's SquareCB, which is told the losses of all answers at once."""
    import vowpalwabbit

    for s, data in enumerate(rows):
        vw = vowpalwabbit.Workspace("--cb_explore_adf --squarecb -q ca --quiet")
        actions, gained = [f"|a a{a}" for a in range(data.gains.shape[1])], []
        for t, row in enumerate(data.contexts[: max(job.rounds)]):
            columns = " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(row))
            lines = [f"shared |c {columns}", *actions]
            chances = vw.predict(lines)
            place = np.searchsorted(np.cumsum(chances), data.u[t, 0], side="right")
            action = min(int(place), len(actions) - 1)
            gained.append(data.gains[t, action])
            if data.answered[t]:
                cost = data.losses[t, action] - 1.0  # the reward with a minus, as in its tutorials
                lines[1 + action] = f"0:{cost:.6g}:{chances[action]:.6g} {actions[action]}"
                vw.learn(lines)
        vw.finish()
        yield from ((job, s, n, float(np.sum(gained[:n], dtype=float))) for n in job.rounds)


def _thompson(rows: list[Rows], job: Job) -> Gained:
    """Play Thompson sampling without contexts, which learns after each call.

    Its prior is uniform, or it is over the orders of the true mean rewards.
    """
    for s, data in enumerate(rows):
        rng, actions = np.random.default_rng(s), data.gains.shape[1]
        won, lost, gained = np.ones(actions), np.ones(actions), []
        means = 1.0 - data.losses.mean(axis=0, dtype=float)
        orders = means[list(permutations(range(actions)))] if job.recipe == KNOWING else None
        for first in range(0, max(job.rounds), CALL):
            part = slice(first, min(first + CALL, max(job.rounds)))
            if orders is None:
                chosen = rng.beta(won, lost, (part.stop - first, actions)).argmax(axis=1)
            else:
                logs = np.log(orders) @ (won - 1.0) + np.log1p(-orders) @ (lost - 1.0)
                chances = np.exp(logs - logs.max())
                picks = rng.choice(len(orders), part.stop - first, p=chances / chances.sum())
                chosen = orders[picks].argmax(axis=1)
            picked = np.arange(len(chosen)), chosen
            gained.append(data.gains[part][picked])
            losses, answered = data.losses[part][picked], data.answered[part]
            np.add.at(won, chosen, answered * (1.0 - losses))
            np.add.at(lost, chosen, answered * losses)
        total = np.cumsum(np.concatenate(gained), dtype=float)
        yield from ((job, s, n, float(total[n - 1])) for n in job.rounds)


def _rivals(seeds: Sequence[int], rows: list[Rows], jobs: list[Job], where: Machine) -> Gained:
    """Play published private bandits, each for its number of rounds, by realised losses."""
    for (s, data), n in product(enumerate(rows), jobs[0].rounds if jobs else []):
        x, losses = data.features[:n].astype(float), data.losses[:n].astype(float)
        plans = [
            RivalPlan(
                RIVALS[job.recipe],
                losses.shape[1],
                x.shape[1],
                dc.Budget(job.epsilon, DELTA) if math.isfinite(job.epsilon) else dc.Budget.none(),
            )
            for job in jobs
        ]
        means = runner.run(plans, x, losses, [seeds[s]], where)[:, 0, -1]
        yield from (
            (job, s, n, n * float(losses.mean() - mean))
            for job, mean in zip(jobs, means, strict=True)
        )


class Scores:
    """Shares of policies and of best fixed actions by recipe, world, check, n, ε and seed."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.of = path, {}
        if path and path.exists():
            with path.open(newline="") as file:
                for name, world, check, n, epsilon, seed, *shares in csv.reader(file):
                    key = name, world, check, int(n), float(epsilon), int(seed)
                    self.of[key] = tuple(map(float, shares))

    def complete(self, options: argparse.Namespace, seeds: Sequence[int]) -> None:
        """Play what is missing: on a CPU seed by seed, on a GPU all seeds that fit at once."""
        tasks, on_gpu = [], options.device == "cuda"
        for world in (WORLDS[name] for name in options.worlds):
            pairs = list(product(jobs_of(world, options), seeds))
            known = [
                all(job.key(world, n, seed) in self.of for n in job.rounds) for job, seed in pairs
            ]
            missing = [pair for pair, done in zip(pairs, known, strict=True) if not done]
            jobs = list({id(job): job for job, _ in missing}.values())
            some = sorted({seed for _, seed in missing})
            size = 4 * max(options.rounds) * (world.p + 2 * world.n_actions + 3)
            step = max(1, GPU_DATA // options.jobs // size) if on_gpu else 1
            tasks += [(world, some[i : i + step], jobs) for i in range(0, len(some), step)]
        where = machine(options.device, options.jobs, GPU_MEMORY if on_gpu else None)
        parallel = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        start, played = time.perf_counter(), (delayed(play_world)(*each, where) for each in tasks)
        with shared_gpu(options.device, options.jobs):
            for done, found in enumerate(parallel(played), start=1):
                self.of |= {key: shares for key, *shares in found}
                print(f"\r{done} of {len(tasks)} tasks played", end="", flush=True)
                if self.path:
                    with self.path.open("a", newline="") as file:
                        csv.writer(file).writerows((*key, *shares) for key, *shares in found)
        print(f" in {time.perf_counter() - start:.1f} s" if tasks else "")

    def cells(self, world: World, options: Any, seeds: Sequence[int]) -> dict[tuple, dict]:
        """Return {(recipe, ε): {n: shares (seeds, 2) of the policy and the best fixed action}}."""
        found: Any = defaultdict(dict)
        for job in jobs_of(world, options):
            for n in job.rounds:
                shares = [self.of[job.key(world, n, seed)] for seed in seeds]
                found[job.recipe, job.epsilon][n] = np.array(shares)
        return found


def error(shares: Array) -> float:
    """Return the standard error of a mean over seeds; infinite for one seed."""
    return float(shares.std(ddof=1) / math.sqrt(len(shares))) if len(shares) > 1 else math.inf


def line(name: str, cells: Sequence[Array]) -> str:
    shown = (f"{each.mean():6.2f} ± {error(each):4.2f}" for each in cells)
    return f"  {name:24}" + " ".join(f"{each:>15}" for each in shown)


def level(epsilon: float) -> str:
    return f"ε = {epsilon:g}".replace("inf", "∞")


def report(options: argparse.Namespace, scores: Scores, half: str, seeds: Sequence[int]) -> None:
    """Print a table for each world, their mean, and the cells that break a rule."""
    falling, below = [], []
    means: Any = defaultdict(lambda: defaultdict(list))
    for world in (WORLDS[name] for name in options.worlds):
        cells, rounds = scores.cells(world, options, seeds), world.rounds(options.rounds)
        print(f"\n{half}, {len(seeds)} seeds: {world}")
        print(f"  {'rounds':24}" + " ".join(f"{n:>15,}" for n in rounds))
        first = cells[options.recipes[0], options.epsilon[0]]
        print(line("best fixed action", [first[n][:, 1] for n in rounds]))
        for (name, epsilon), by_n in cells.items():
            print(line(f"{name}, {level(epsilon)}", [by_n[n][:, 0] for n in by_n]))
            for n, shares in by_n.items():
                means[name, epsilon][n].append(shares[:, 0].mean())
        for epsilon in options.epsilon:
            by_n, cell = cells[options.recipes[0], epsilon], f"{world.name}, {level(epsilon)}"
            for n, more in pairwise(by_n):
                rise = by_n[more][:, 0] - by_n[n][:, 0]
                if rise.mean() < -2 * error(rise):
                    falling.append(
                        f"{cell}, {n:,} to {more:,}: {rise.mean():+.3f} ± {error(rise):.3f}"
                    )
            for n in (n for n in by_n if n >= 50_000 and epsilon >= 4.0):
                apart = by_n[n][:, 0] - by_n[n][:, 1]
                if apart.mean() < -0.05:
                    below.append(f"{cell}, {n:,}: {apart.mean():+.3f} ± {error(apart):.3f}")
    print(f"\n{half}: mean over worlds, with the standard error over worlds")
    for (name, epsilon), by_n in means.items():
        print(line(f"{name}, {level(epsilon)}", [np.array(by_n[n]) for n in sorted(by_n)]))
    listed = {"the share falls with n by more than two standard errors": falling}
    listed["n ≥ 50,000, ε ≥ 4 and it is below the best fixed action by more than .05"] = below
    for rule, found in listed.items():
        print(
            f"\n{half}, {options.recipes[0]}: {len(found)} cells where {rule}", *found, sep="\n  "
        )


def draw(options: argparse.Namespace, scores: Scores, seeds: Sequence[int]) -> None:
    """Draw the share of the first recipe against n: a panel for each world, a line for each ε."""
    import matplotlib.pyplot as plt

    across = min(6, len(options.worlds))
    down = math.ceil(len(options.worlds) / across)
    size = {"figsize": (2.5 * across, 2.2 * down + 1.0), "layout": "constrained", "squeeze": False}
    figure, panels = plt.subplots(down, across, sharex=True, sharey=True, **size)
    for panel in panels.flat[len(options.worlds) :]:
        panel.set_visible(False)
    for name, panel in zip(options.worlds, panels.flat, strict=False):
        cells = scores.cells(WORLDS[name], options, seeds)
        for i, epsilon in enumerate(sorted(options.epsilon)):
            by_n = cells[options.recipes[0], epsilon]
            shares, hue = [each[:, 0] for each in by_n.values()], plt.cm.viridis(0.9 - 0.2 * i)
            errors = [error(each) if len(seeds) > 1 else 0.0 for each in shares]
            means = [each.mean() for each in shares]
            panel.errorbar(list(by_n), means, errors, color=hue, marker=".", label=level(epsilon))
        fixed = [each[:, 1].mean() for each in by_n.values()]
        panel.plot(list(by_n), fixed, "--", color="0.5", label="best fixed action")
        panel.set(title=name, xscale="log", ylim=(-0.3, 1.03))
        panel.minorticks_off()
        panel.title.set_fontsize(9)
    figure.supxlabel("rounds")
    figure.supylabel("share of the attainable gain")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
    figure.savefig(options.figure, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--worlds", nargs="+", default=list(WORLDS), choices=WORLDS, metavar="NAME")
    add("--rounds", nargs="+", type=int, default=[5_000, 20_000, 50_000, 200_000])
    add("--recipes", nargs="+", default=["default", "SquareCB", "greedy"], choices=RECIPES)
    add("--epsilon", nargs="+", type=float, default=[1.0, 2.0, 4.0, 8.0, math.inf])
    add("--half", choices=("develop", "confirm", "both"), default="both")
    add("--seeds", type=int, default=4, help="in each half")
    add("--vw", action="store_true", help="Vowpal Wabbit beside it")
    add("--thompson", action="store_true", help="Thompson sampling without contexts beside it")
    add("--rivals", nargs="*", choices=ROUNDS, metavar="NAME", help="private bandits as well")
    add("--device", choices=("numpy", "cuda"), default="numpy")
    add("--jobs", type=int, default=1)
    add("--scores", type=Path)
    add("--figure", type=Path)
    add("--quick", action="store_true", help="few worlds and rounds, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.worlds, options.half = ["clicks-weak", "spend", "people", "late"], "develop"
        options.rounds, options.seeds, options.epsilon = [1_000, 4_000], 2, [4.0, math.inf]
    halves = {"develop": range(0, 2 * options.seeds, 2), "confirm": range(1, 2 * options.seeds, 2)}
    halves = {name: list(of) for name, of in halves.items() if options.half in (name, "both")}
    scores, seeds = Scores(options.scores), sorted(chain(*halves.values()))
    scores.complete(options, seeds)
    for half, some in halves.items():
        report(options, scores, half, some)
    if options.figure:
        draw(options, scores, seeds)


if __name__ == "__main__":
    main()
