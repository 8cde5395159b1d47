"""Every GPU kernel and every family of plans, compared with float64 NumPy on a real GPU.

    make test-gpu [GPU_PYTHON=python3]

The Python must have a CUDA build of torch. Prints a table (case, largest difference, bound) and
ends with status 1 where a difference exceeds its bound. The interpreter of Triton does not replace
this suite: it does not read out of bounds, has no launch limits and computes in another order.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.arrays import linear_algebra
from discreet.arrays.backend import softmax
from discreet.arrays.stacking import stack
from discreet.data.dataset import Dataset
from discreet.design.schedule import Schedule
from discreet.lab.campaign.grid import Grid
from discreet.lab.campaign.hardware import cores, one_thread
from discreet.lab.campaign.presets import budget_of
from discreet.lab.campaign.tasks import Task, compute
from discreet.oracles.mechanisms import newton
from discreet.plan.registry import register
from discreet.policies import ReplayBonusPO
from discreet.policies.allocation import draw
from discreet.policies.bonus_po import average_of_updates
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from discreet.simulate.engine import Machine, run
from discreet.simulate.labelled_data import played_offers

GPU = Machine("cuda", "float32", 2**33)
DOUBLE = Machine("numpy", "float64", 2**28)
LEVELS = (1.0, 2.0, 4.0, 8.0, float("inf"))

PROBABILITY = 1e-5
"""A kernel may choose another action where the uniform is this close to the boundary."""
PREDICTION = 2e-5
"""Predictions of a logistic fit."""
SOLUTION = 5e-5
"""Of a linear system, relative to the largest entry."""
UPDATES = 1e-12
"""Updates of BonusPO, which the kernel computes in double precision."""
LOSS = 0.01
"""Mean loss of an algorithm at a level: one rounding can change one action, and from there on the
run is another draw of the same distribution."""
RUNS = 0.004
"""Mean absolute difference of all runs of a case."""

Case = tuple[str, float, float]


# Kernels


def on_gpu(values: Any, dtype: Any = np.float32) -> Any:
    import torch

    return torch.from_numpy(np.array(values, dtype=dtype, order="C")).cuda()


def rounded(values: Any) -> Any:
    """What single precision holds, in double precision."""
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def distance(probabilities: Any, u: Any, chosen: Any) -> float:
    """How far a uniform lies outside the interval of the chosen action, at most."""
    sums = np.cumsum(probabilities, axis=-1)
    u = np.broadcast_to(u, chosen.shape)
    upper = np.take_along_axis(sums, chosen[..., None], -1)[..., 0]
    lower = upper - np.take_along_axis(probabilities, chosen[..., None], -1)[..., 0]
    return float(np.maximum(np.maximum(lower - u, u - upper), 0.0).max())


def draw_cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    shapes = [(1, 1, 1, 2), (2, 3, 1025, 5), (1, 7, 1023, 64), (3, 1, 2049, 100)]
    for S, R, n, A in [*shapes, (2, 40_000, 3, 2), (70_000, 1, 2, 3)]:
        shares = rng.random((S, R, A, n))
        shares = rounded(shares / shares.sum(-2, keepdims=True))
        u = rounded(rng.random((S, 1, n, 2)))
        for stored in ("rows", "actions"):
            given = on_gpu(shares).mT if stored == "rows" else on_gpu(np.swapaxes(shares, -1, -2))
            chosen = draw(given, on_gpu(u)[..., 0]).cpu().numpy()
            far = distance(np.swapaxes(shares, -1, -2), u[..., 0], chosen)
            yield f"draw {S}×{R} runs, {n} rows, {A} actions, {stored} contiguous", far, PROBABILITY


def replay_cases() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    kinds = {
        "shared": [ReplayBonusPO()] * 11,
        "one bonus": [ReplayBonusPO(learning_rate=0.1 * k, bonus=0.01) for k in range(1, 12)],
        "arrays": [ReplayBonusPO(0.02 * k, 0.1 / k) for k in range(1, 12)],
        "one run": [ReplayBonusPO(0.3, 0.02)],
        "AdaptivePO, one bonus": [dc.AdaptivePO(bonus=0.05)] * 11,
        "AdaptivePO, arrays": [dc.AdaptivePO(0.02 * k, 0.1 / k) for k in range(1, 12)],
        "scalars": None,
    }
    shapes = [(2, 3, 5), (3, 17, 70), (5, 33, 1), (16, 2, 65), (17, 65, 64), (64, 127, 129)]
    shapes += [(2, 1, 1000), (7, 200, 63), (26, 16, 333)]
    for number, (A, p, n) in enumerate(shapes):
        for name, policies in kinds.items():
            link = ("identity", "clip", "logistic")[number % 3]
            R = 6 if policies is None else len(policies)
            policy = ReplayBonusPO() if policies is None else stack(policies)
            S, half_life = 1 + number % 3, (None, 2)[number % 2]
            yield _replayed(rng, policy, (S, R, n, A, p), link, half_life, name)
    many = stack([ReplayBonusPO(bonus=0.01 * (1 + k % 5)) for k in range(70_001)])
    yield _replayed(rng, many, (1, 70_001, 3, 20, 3), "clip", None, "many runs")
    few = stack([ReplayBonusPO()] * 3)
    yield _replayed(rng, few, (30_000, 3, 2, 7, 3), "clip", None, "many seeds")


def _replayed(
    rng: Any, policy: Any, shape: tuple[int, ...], link: str, half_life: Any, name: str
) -> Case:
    S, R, n, A, p = shape
    ours = theirs = Released(A, Schedule(half_life=half_life))
    for j in range(4):  # all runs begin alike, and those of the last release may be shared again
        weights = rounded(rng.normal(size=(S, R if j in (1, 2) else 1, A, p)) / 2)
        ours = ours.add(Release(j + 1, 8 * 2**j, Predictor(weights, link)))
        theirs = theirs.add(Release(j + 1, 8 * 2**j, Predictor(on_gpu(weights), link)))
    x = rng.normal(size=(S, 1, n, p))
    x = rounded(x / np.linalg.norm(x, axis=-1, keepdims=True))
    u = rounded(rng.random((S, 1, n, 2)))
    chosen = policy.sample(theirs, on_gpu(x), on_gpu(u)).cpu().numpy()
    want = policy.probabilities(ours, x)
    assert chosen.shape == want.shape[:-1], (chosen.shape, want.shape)
    far = distance(want, u[..., 0], chosen)
    return f"replay, {name}, {S}×{R} runs, {n} rows, {A} actions, {p} features", far, PROBABILITY


def rule_cases() -> Iterator[Case]:
    rng = np.random.default_rng(6)
    kinds: list[Callable[[int], Any]] = [
        lambda k: dc.SquareCB(scale=2.0**k, exponent=0.5),
        lambda k: dc.FastCB(scale=10.0**k, exponent=0.25),
        lambda k: dc.LinUCB(width=0.1 * 3**k),
        lambda k: dc.RegCB(width=0.1 * 3**k),
        lambda k: dc.AdaCB(scale=2.0**k, exponent=0.5, width=0.1 * 3**k),
        lambda k: dc.VanillaPO(scale=2.0**k),
        lambda _: dc.Greedy(),
    ]
    shapes = [(2, 5, 1025), (3, 17, 1), (5, 30, 333), (16, 2, 129), (64, 9, 65), (26, 4, 70)]
    for number, (A, p, n) in enumerate(shapes):
        link = ("logistic", "identity", "clip")[number % 3]
        for kind in kinds:
            S, R = 1 + number % 3, 1 + number % 4
            yield _ruled(rng, [kind(k) for k in range(R)], (S, R, n, A, p), link)
    yield _ruled(rng, [kinds[4](k % 4) for k in range(40_000)], (2, 40_000, 3, 2, 2), "identity")


def _ruled(rng: Any, policies: list[Any], shape: tuple[int, ...], link: str) -> Case:
    """As the kernel draws with one uniform, but VanillaPO's mixture takes two of them."""
    S, R, n, A, p = shape
    policy, name = stack(policies), type(policies[0]).__name__
    weights = rounded(rng.normal(size=(S, R, A, p)) / 2)
    half = rng.normal(size=(S, R, A, p, 2 * p))
    gram = rounded(half @ np.swapaxes(half, -1, -2))
    x = rng.normal(size=(S, 1, n, p))
    x = rounded(x / np.linalg.norm(x, axis=-1, keepdims=True))
    u = rounded(rng.random((S, 1, n, 2)))
    views = [
        Released(A).add(Release(1, 16, Predictor(on(weights), link), Gram(on(gram), False, 1.0)))
        for on in (np.asarray, on_gpu)
    ]
    chosen = policy.sample(views[1], on_gpu(x), on_gpu(u)).cpu().numpy()
    if name == "VanillaPO":
        length, rate = policy._length_and_rate(views[0], x)
        times = np.floor(u[..., :1].astype(np.float32) * length)
        want = softmax(-(rate * times) * views[0].latest.predictor.losses(x))
        far = distance(want, u[..., 1], chosen)
    else:
        far = distance(policy.probabilities(views[0], x), u[..., 0], chosen)
    assert chosen.shape == (S, R, n), chosen.shape
    return f"{name}, {S}×{R} runs, {n} rows, {A} actions, {p} features", far, PROBABILITY


def matrix_cases() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for p in (1, 2, 15, 16, 17, 18, 32, 33, 34, 64, 65, 66, 100, 127, 128, 129):
        for N in (1, 7):
            half = rng.normal(size=(N, p, 2 * p))
            matrices = half @ np.moveaxis(half, 1, 2) / p
            matrices[0] -= (0.1 + np.linalg.eigvalsh(matrices[0])[0]) * np.eye(p)
            matrices[-1] *= 1e4
            yield from _solved(matrices, rng.normal(size=(N, p)), f"{N} matrices of {p}")
    many = rng.normal(size=(70_000, 3, 6))
    many = many @ np.moveaxis(many, 1, 2) + 0.5 * np.eye(3)
    yield from _solved(many, rng.normal(size=(70_000, 3)), "70000 matrices of 3")


def _solved(matrices: Any, vectors: Any, name: str) -> Iterator[Case]:
    matrices, vectors = rounded(matrices), rounded(vectors)
    step = np.full(len(matrices), 0.06)
    given = on_gpu(matrices), on_gpu(vectors), on_gpu(step)
    pairs = {
        "inverse": (
            linear_algebra.inverse_repaired(given[0], given[2]),
            linear_algebra.inverse_repaired(matrices, step),
        ),
        "solution": (
            linear_algebra.solve_repaired(*given),
            linear_algebra.solve_repaired(matrices, vectors, step),
        ),
    }
    for kind, (found, want) in pairs.items():
        axes = tuple(range(1, want.ndim))
        error = abs(found.cpu().numpy() - want).max(axes) / abs(want).max(axes)
        yield f"{kind}, {name}", float(error.max()), SOLUTION


def newton_cases() -> Iterator[Case]:
    rng = np.random.default_rng(4)
    for number, p in enumerate((1, 2, 16, 17, 18, 33, 34, 65, 66, 100, 128, 129)):
        for S, R, A, n in ((1, 1, 2, 1), (2, 3, 3, 333), (1, 5, 2, 5001)):
            x = rng.normal(size=(S, 1, n, p))
            x = rounded(x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True)))
            chosen = rng.integers(0, A, size=(S, R if number % 2 else 1, 1, n))
            observed = np.swapaxes(chosen == np.arange(A)[:, None], -1, -2).copy()
            observed[:, :, : n // 9] = False  # void slots
            truth = rng.integers(0, A, size=(S, 1, 1, n))
            labels = np.swapaxes(truth != np.arange(A)[:, None], -1, -2).astype(float)
            ridge = rounded(np.geomspace(1e-3, 3.0, R)[:, None] * n)
            tilt = rounded(rng.normal(size=(S, 1, A, p)) * np.linspace(0, 9, R)[:, None, None])
            want = newton.minimise(x, observed.astype(float), labels, ridge, tilt, 1e-9)
            given = on_gpu(x), on_gpu(observed, bool), on_gpu(labels), on_gpu(ridge), on_gpu(tilt)
            found = newton.minimise(*given, None).cpu().numpy().astype(np.float64)
            means = (1.0 / (1.0 + np.exp(-(x @ np.swapaxes(t, -1, -2)))) for t in (found, want))
            error = float(abs(np.subtract(*means)).max())
            yield f"Newton, {S}×{R} runs, {n} rows, {A} actions, {p} features", error, PREDICTION


def bonus_cases() -> Iterator[Case]:
    rng = np.random.default_rng(5)
    for A in (2, 3, 5, 17, 64):
        for R, n, length in ((1, 1, 5), (3, 333, 100), (2, 65, 1000)):
            gaps = rng.random((R, n, A))
            gaps = gaps - gaps.min(-1, keepdims=True)
            reach = rng.random((R, 1, 1)) * length**0.5
            rate = 0.1 + rng.random((R, 1, 1))
            want = average_of_updates(gaps, reach, rate, length)
            given = on_gpu(gaps, float), on_gpu(reach, float), on_gpu(rate, float)
            found = average_of_updates(*given, length).cpu().numpy()
            error = float(abs(found - want).max())
            yield f"BonusPO, {R} runs, {n} rows, {A} actions, {length} steps", error, UPDATES


KERNELS: tuple[Callable[[], Iterator[Case]], ...] = (
    draw_cases,
    replay_cases,
    rule_cases,
    matrix_cases,
    newton_cases,
    bonus_cases,
)


# Families of plans


def made_set(rows: int, columns: int, actions: int) -> tuple[Any, Any]:
    """Contexts and labels: a linear score for each action, and noise."""
    rng = np.random.default_rng([rows, columns, actions])
    contexts = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) / columns
    scores = contexts @ rng.normal(size=(columns, actions)) + 0.3 * rng.normal(size=(rows, actions))
    return contexts, scores.argmax(axis=1)


Job = tuple[str, str, tuple[int, int, int], Any]
"""A name, a kind of job, the shape of its made-up set, and what it plays there."""


def jobs() -> list[Job]:
    listed: list[Job] = []
    grids = [("paper", "structured", (701, 5, 2)), ("paper", "paper", (701, 16, 3))]
    grids += [("quick", "structured", (1501, 16, 5)), ("quick", "paper", (1001, 40, 2))]
    grids += [("default", None, (2001, 10, 3)), ("default", None, (1301, 64, 7))]
    grids += [("default", None, (3001, 3, 26)), ("rivals", None, (501, 5, 3))]
    for preset, mechanism, shape in grids:
        epsilons = (1.0, 4.0, float("inf")) if preset == "paper" else None
        seeds = 3 if preset == "paper" else 10
        grid = Grid.of(preset, mechanism=mechanism, epsilons=epsilons, seeds=seeds)
        grid = (
            replace(grid, algorithms=(*grid.algorithms, "BonusPO")) if preset == "quick" else grid
        )
        for family in grid.families:
            listed.append((f"{preset}, {grid.mechanism}, {family}", "grid", shape, (grid, family)))
    listed += [(f"recipe {name}", "recipe", (1201, 10, 3), name) for name in recipes()]
    listed += [(name, "plans", (1501, 8, 3), name) for name in STACKS]
    return listed


def recipes() -> dict[str, Any]:
    path = Path(__file__).parents[2] / "bench" / "defaults.py"
    found = importlib.util.spec_from_file_location("bench_defaults", path)
    module = importlib.util.module_from_spec(found)
    sys.modules["bench_defaults"] = module
    found.loader.exec_module(module)
    return module.RECIPES


def _plans(**parts: Any) -> Callable[[Any], list[dc.Plan]]:
    def made(features: Any) -> list[dc.Plan]:
        given = {"n_actions": 3, "features": features, **parts}
        return [dc.Plan(budget=budget_of(each), **given) for each in LEVELS]

    return made


def _mixed(features: Any) -> list[dc.Plan]:
    """Some policies leave a parameter to the default and some name it; classes differ too."""
    policies = [ReplayBonusPO(), ReplayBonusPO(learning_rate=0.2), ReplayBonusPO(bonus=0.1)]
    policies += [dc.SquareCB(scale=16.0, exponent=0.5), dc.VanillaPO(scale=8.0)]
    given = {"n_actions": 3, "features": features}
    return [
        dc.Plan(budget=budget_of(each), policy=policy, **given)
        for policy in policies
        for each in LEVELS
    ]


def _one(features: Any) -> list[dc.Plan]:
    return [dc.Plan(n_actions=3, features=features, budget=budget_of(2.0))]


def _catalogue(features: Any) -> list[dc.Plan]:
    items = {f"item {k}": row for k, row in enumerate(np.eye(3, 2) - 0.3)}
    joint = dc.Joint(features, dc.UnitBall(2))
    catalogue = dc.Catalogue(dc.UnitBall(2), items)
    return [dc.Plan(actions=catalogue, features=joint, budget=budget_of(e)) for e in LEVELS]


STACKS: dict[str, Callable[[Any], list[dc.Plan]]] = {
    "default plan at five levels": _plans(),
    "one plan": _one,
    "mixed policies": _mixed,
    "half-life": _plans(half_life=3),
    "control share": _plans(control=dc.Control(0.2)),
    "logistic oracle": _plans(oracle=dc.Logistic(ridge=1e-3)),
    "ridge oracle, confidence widths": _plans(oracle=dc.Ridge(ridge=0.1), policy=dc.LinUCB()),
    "part-wise": _plans(),
    "people who come back": _plans(unit="user", batches_per_user=2),
    "catalogue": _catalogue,
}


def play(job: Job, machine: Machine) -> tuple[Any, list[Any]]:
    """Final losses (runs, seeds), and the algorithm and level of each run."""
    name, kind, (rows, columns, actions), given = job
    contexts, labels = made_set(rows, columns, actions)
    if kind == "grid":
        grid, family = given
        for kind in grid.own:  # this process may have been started without them
            register(kind)
        keys = [key[:2] for key, _ in grid.plans(family, actions, columns)]
        parts = ((tuple(range(len(keys))), tuple(range(grid.seeds))),)
        made = Dataset(name, contexts, labels, actions)
        done = compute(Task(name, name, family, grid, parts, rows, machine, made))
        if done.error is not None:
            raise RuntimeError(f"{name}: {done.error}")
        return done.losses[0][..., -1].astype(np.float64), keys
    features = dc.UnitBall(columns)
    if kind == "recipe":
        recipe = recipes()[given]
        plans = [recipe.plan(actions, features=features, budget=budget_of(e)) for e in LEVELS]
        constants = sys.modules["bench_defaults"].constants_set(recipe.constants)
    else:
        plans = STACKS[given](features)
        constants = one_thread(machine.device)
        if given == "part-wise":
            machine = replace(machine, memory=2**21)
    mapped, users = features.map(contexts), None
    if plans[0].catalogue is not None:
        mapped, labels = played_offers(plans[0], mapped, None, labels, None)
    if plans[0].participation is not None:
        users = [f"person {row % (rows // 3)}" for row in range(rows)]
    with constants, one_thread(machine.device):
        losses = run(plans, mapped, labels, range(10), machine, users=users)[..., -1]
    return losses, [(type(plan.policy).__name__, plan.budget.epsilon) for plan in plans]


def reference(job: Job) -> tuple[Any, list[Any]]:
    return play(job, DOUBLE)


def compared(job: Job, ours: Any, theirs: Any, keys: Sequence[Any]) -> Iterator[Case]:
    """Means of an algorithm at a level, and runs one by one."""
    groups = defaultdict(list)
    for place, key in enumerate(keys):
        groups[key].append(place)
    means = [abs((ours - theirs)[places].mean()) for places in groups.values()]
    yield f"{job[0]}: means", float(max(means)), LOSS
    yield f"{job[0]}: {ours.size} runs", float(abs(ours - theirs).mean()), RUNS


def table(title: str, cases: Iterator[Case], worst: list[Case]) -> None:
    start, rows = time.perf_counter(), []
    for name, found, bound in cases:
        rows.append((name, found, bound))
        if not found <= bound:  # also where it is not a number
            worst.append((name, found, bound))
            print(f"EXCESS {name}: {found:.2e} > {bound:.0e}", flush=True)
    seconds = time.perf_counter() - start
    print(f"\n## {title}: {len(rows)} cases in {seconds:.1f} s\n")
    print("| case | largest difference | bound |\n|---|---|---|")
    for name, found, bound in rows:
        print(f"| {name} | {found:.1e} | {bound:.0e} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", action="store_true", help="leave the families of plans out")
    options = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("error: torch finds no CUDA device. Run this on a machine with a GPU.")
        return 2
    start = time.perf_counter()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, NumPy {np.__version__}")
    excess: list[Case] = []
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, cores() - 2), mp_context=fresh) as pool:
        listed = [] if options.kernels else jobs()
        references = [pool.submit(reference, job) for job in listed]
        for cases in KERNELS:
            table(cases.__name__.replace("_cases", " kernel"), cases(), excess)

        def families() -> Iterator[Case]:
            for job, awaited in zip(listed, references, strict=True):
                ours, keys = play(job, GPU)
                yield from compared(job, ours, awaited.result()[0], keys)

        if listed:
            table("families of plans", families(), excess)
    verdict = f"{len(excess)} cases exceed their bounds" if excess else "All cases are in bounds"
    print(f"\n{verdict}; {time.perf_counter() - start:.0f} s.")
    return 1 if excess else 0


if __name__ == "__main__":
    sys.exit(main())
