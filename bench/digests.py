"""Compare the seeded results and documents of this checkout with those of a commit.

    python bench/digests.py REF [--only learners campaign] [--keep FOLDER]

Each side runs the same plans, learners, evaluations, commands, a small campaign and an audit in a
process of its own, with its own package and with seeds in place of system entropy. Only the public
interface (``import discreet``, ``discreet.data`` and the command line) is called, so both sides may
arrange their modules as they like. Results are reduced to SHA-256 digests: releases, ledgers, saved
plans and result files byte by byte; the JSON of commands by keys, numbers and single words, since
sentences may be reworded. The exit status is 1 if a digest differs; ``--keep`` writes the compared
texts of both sides for ``diff -r``.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from compare import worktree

HERE = Path(__file__).resolve()
TIMES = {"seconds", "command", "device", "version", "code_version"}
"""Keys whose values differ between two runs of the same code."""


def seed_entropy() -> None:
    """Replace system entropy, and OpenDP's samplers, by one seeded stream."""
    from opendp import measurements

    make = np.random.default_rng
    stream = make(2026)

    def gaussian(*_: Any, scale: float, **__: Any) -> Callable[[Any], list[int]]:
        return lambda values: [
            int(value) + round(scale * stream.standard_normal()) for value in values
        ]

    def noisy_max(*_: Any, scale: float, negate: bool = False, **__: Any) -> Any:
        sign = -1.0 if negate else 1.0
        return lambda scores: int(
            np.argmax(sign * np.asarray(scores, float) + scale * stream.gumbel(size=len(scores)))
        )

    os.urandom = secrets.token_bytes = lambda count=32: stream.bytes(count)
    np.random.default_rng = lambda seed=None: make(stream.integers(2**63) if seed is None else seed)
    measurements.make_gaussian, measurements.make_noisy_max = gaussian, noisy_max
    random.seed(0)


def figures(value: Any) -> Any:
    """Keys, numbers and single words of a JSON value; sentences and times are left out."""
    if isinstance(value, dict):
        return {key: figures(each) for key, each in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [figures(each) for each in value]
    return None if isinstance(value, str) and " " in value.strip() else value


def plain(value: Any) -> Any:
    """A result as JSON values; floats are written exactly."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, value.tolist()]
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "to_json"):
        return value.to_json()
    if hasattr(value, "items"):  # releases
        return [each.to_json() for each in (*value.items, *value.changes)]
    raise TypeError(f"no canonical text for {type(value).__name__}")


def text(value: Any) -> str:
    """The canonical text of a result."""
    return json.dumps(value, indent=1, sort_keys=True, default=plain)


def command(*words: str) -> Any:
    """The figures of one command with ``--json``, and its exit status."""
    from discreet.cli.main import main

    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        status = main([*words, "--json"])
    try:
        return status, figures(json.loads(printed.getvalue()))
    except json.JSONDecodeError:
        raise SystemExit(f"{words} printed no JSON object:\n{printed.getvalue()[-2000:]}") from None


def plans() -> Iterator[tuple[str, Any]]:
    """Plans of every policy and oracle, and of everything that a plan may declare."""
    import discreet as dc

    ball, budget = dc.UnitBall(3), dc.Budget(2.0, 1e-5)
    schema = dc.Schema([
        dc.Number("age", 0, 120, clip=True, indicator=True),
        dc.Category("device", ["phone", "desk"], other=True),
        dc.Flag("member", stand_in=False),
        dc.Hashed("town", 8),
        dc.Date("at", parts=["weekday", "hour"]),
    ])  # fmt: skip
    films = dc.Catalogue(dc.UnitBall(2), {"a": [0.1, 0.2], "b": [0.3, -0.4], "c": [0.0, 0.9]})
    grid = {
        "VanillaPO": dc.VanillaPO(scale=8.0),
        "VanillaPO previous": dc.VanillaPO(scale=8.0, rollout="previous"),
        "BonusPO": dc.BonusPO(error_bound=9.0, rate_scale=4.0),
        "ReplayBonusPO": dc.ReplayBonusPO(learning_rate=0.1, bonus=0.01),
        "AdaptivePO": dc.AdaptivePO(bonus=0.1, scale=0.2),
        "SquareCB": dc.SquareCB(scale=16.0, exponent=0.5),
        "FastCB": dc.FastCB(scale=10.0, exponent=0.5),
        "RegCB": dc.RegCB(width=0.1),
        "AdaCB": dc.AdaCB(scale=10.0, exponent=0.5, width=0.1),
        "LinUCB": dc.LinUCB(width=0.25),
        "Uniform": dc.Uniform(),
        "Greedy": dc.Greedy(),
    }
    for name, policy in grid.items():
        oracle = dc.Logistic(0.1) if name == "FastCB" else dc.Ridge(0.1)
        own = {"policy": policy, "oracle": oracle}
        yield name, dc.Plan(n_actions=3, features=ball, budget=budget, **own)
    weights = np.random.default_rng(7).normal(size=(6, 3, 4)) / 4
    oracles = {
        "default": None,
        "Logistic": dc.Logistic(0.1),
        "Ridge structured": dc.Ridge(0.1, mechanism="structured"),
        "FiniteClass": dc.FiniteClass(weights),
    }
    for name, oracle in oracles.items():
        own = {} if oracle is None else {"oracle": oracle, "policy": dc.SquareCB(scale=4.0)}
        yield name, dc.Plan(n_actions=3, features=ball, budget=budget, horizon=400, **own)
    more = {
        "no privacy": {"budget": dc.Budget.none()},
        "control": {"control": dc.Control(0.2), "actions": ["x", "y", "z"], "n_actions": None},
        "reward": {"outcome": dc.Reward(0, 50), "missing_loss": 1.0},
        "user": {"unit": "user", "batches_per_user": 3, "records_per_batch": 2},
        "full feedback": {"feedback": "full"},
        "schema": {"features": schema},
        "catalogue": {"actions": films, "n_actions": None},
    }
    for name, own in more.items():
        words = {"n_actions": 3, "features": ball, "budget": budget, "horizon": 300, **own}
        yield name, dc.Plan(**{key: value for key, value in words.items() if value is not None})


def people(plan: Any, count: int) -> Any:
    """Contexts that fit a plan, and the loss of every action."""
    import discreet as dc

    draws = np.random.default_rng(5)
    losses = draws.uniform(size=(count, 3))
    if not isinstance(plan.features, dc.Schema):
        contexts = draws.uniform(-0.5, 0.5, size=(count, 3))
        losses[:, 1] *= contexts[:, 0] > 0
        return contexts, losses
    rows = [
        {
            "age": int(draws.integers(100)),
            "device": "phone" if number % 3 else "watch",
            "member": bool(number % 2),
            "town": f"town {number % 7}",
            "at": f"2026-03-{1 + number % 28:02}T10:05:00",
        }
        for number in range(count)
    ]
    return rows, losses


def plan_digests() -> Iterator[tuple[str, Any]]:
    for name, plan in plans():
        yield name, [plan.digest, plan.to_config(), repr(plan.event), plan.schedule.lengths()[:20]]


def evaluations() -> Iterator[tuple[str, Any]]:
    import discreet as dc

    for name, plan in plans():
        if plan.unit == "user" or name == "catalogue":
            continue
        contexts, losses = people(plan, 300)
        own = {"rewards": 50 * losses} if name == "reward" else {"losses": losses}
        run = dc.evaluate(plan, contexts, seed=3, **own)
        played = getattr(run, "played", run.released)  # as older versions have it: not rounded
        yield name, [run.losses, run.actions, run.best_fixed, played, run.ledger]
    data = np.random.default_rng(1).uniform(-0.6, 0.6, size=(500, 2))
    labels = (data[:, 0] > 0).astype(int)
    curve = dc.privacy_curve(data, labels, epsilons=(1.0, 4.0, np.inf), seeds=3)
    yield "privacy_curve", figures(json.loads(text(curve.to_frame().to_dict(orient="list"))))


def learners() -> Iterator[tuple[str, Any]]:
    """Learners with seeded noise and with the exact samplers: releases, ledger and decisions."""
    import discreet as dc

    for name, plan in plans():
        for noise in (dc.SeededNoise(3), dc.SecureNoise()):
            window = 20 if plan.unit == "user" else 1_000
            draws = np.random.default_rng(1)
            learner = dc.Learner(plan, window=window, noise=noise, draws=draws)
            chosen = []
            contexts, losses = people(plan, 200)
            for start in range(0, 200, 25):
                some = slice(start, start + 25)
                users = [f"user {number % 40}" for number in range(start, start + 25)]
                own = {"user": users} if plan.unit == "user" else {}
                made = learner.decide(contexts[some], **own)
                chosen += [made.action, made.id, made.propensity, made.stored]
                index = np.asarray(made.action_index)
                value = losses[some] if plan.feedback == "full" else losses[some][range(25), index]
                if name == "reward":
                    learner.observe(made.id, reward=50 * value)
                else:
                    learner.observe(made.id, value)
            label = f"{name}, {type(noise).__name__}"
            yield label, [[np.asarray(each) for each in chosen], learner.released, learner.ledger]
            path = Path(f"{label}.json")
            learner.released.save(path)
            yield f"{label}, saved", path.read_text()
            if learner.released.items:
                shown = dc.explain_decision(learner, contexts[0])
                yield f"{label}, explained", [shown.predicted, shown.probabilities, shown.effects]


def documents() -> Iterator[tuple[str, Any]]:
    """Documents about what learners published: verification, labels, lift."""
    for path in sorted(Path().glob("*, SecureNoise.json")):
        yield f"release show {path}", command("release", "show", str(path))
        yield f"release verify {path}", command("release", "verify", str(path))
        yield f"ledger verify {path}", command("ledger", "verify", str(path))
        if path.name.startswith("control"):
            yield f"lift {path}", command("lift", str(path))
        yield f"label {path}", command("label", str(path), "--out", "label")
        if Path("label.json").exists():
            yield f"label {path}, file", figures(json.loads(Path("label.json").read_text()))
            Path("label.json").unlink()


def commands() -> Iterator[tuple[str, Any]]:
    for words in (
        "run --data fried --rows 300 --seeds 2",
        "run --data linear --rows 300 --seeds 2 --policy SquareCB --oracle Ridge --set scale=4",
        "plan --actions 3 --dimension 10 --horizon 500 --epsilon 1 --reward-mean 0.1",
        "curve --data fried --rows 400 --epsilon 1 inf --seeds 2",
        "theory bounds --T 100000 --A 10 --F 1000",
        "data show waveform",
    ):
        yield words, command(*words.split(), *["--quiet"] * (words[:3] in ("run", "cur")))


def campaign() -> Iterator[tuple[str, Any]]:
    common = ["--device", "numpy", "--jobs", "1", "--seeds", "2", "--epsilon", "inf", "2"]
    for preset, sets in ("quick", ["fried:200", "linear:150"]), ("rivals", ["fried:200"]):
        own = ["--ridges", "0.1"] if preset == "quick" else []
        words = ["run", "--preset", preset, "--data", *sets, "--out", preset, *common, *own]
        yield f"{preset} run", command("campaign", *words)
        yield f"{preset} status", command("campaign", "status", preset)
        yield f"{preset} manifest", figures(json.loads(Path(preset, "manifest.json").read_text()))
        for path in sorted(Path(preset, "runs").glob("*.parquet")):
            yield f"{preset} {path.name}", hashlib.sha256(path.read_bytes()).hexdigest()
        yield f"{preset} report", command("campaign", "report", preset)
        for path in sorted(Path(preset, "report").rglob("*.csv")):
            yield f"{preset} report {path.name}", path.read_text()


def audit() -> Iterator[tuple[str, Any]]:
    for words in ("--part exact", "--mechanism finite", "--mechanism ridge-structured"):
        status, found = command("audit", "--quick", "--jobs", "1", *words.split())
        yield f"audit {words}", [status, found]


PARTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "plans": plan_digests,
    "evaluations": evaluations,
    "learners": learners,
    "documents": documents,
    "commands": commands,
    "campaign": campaign,
    "audit": audit,
}


def one_side(parts: list[str], keep: Path) -> None:
    """Run all parts with the package on the path and write every text into a folder."""
    warnings.simplefilter("ignore")
    seed_entropy()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for part in parts:
            (keep / part).mkdir(parents=True)
            for label, value in PARTS[part]():
                name = label.replace("/", "_").replace(" ", "_")
                (keep / part / name).write_text(value if isinstance(value, str) else text(value))


def digests(source: Path, parts: list[str], keep: Path) -> dict[str, str]:
    """Digests by part and name, of the package in one folder of sources."""
    words = [sys.executable, str(HERE), "--side", str(keep), "--only", *parts]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment = {**os.environ, **threads, "PYTHONPATH": str(source)}
    made = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if made.returncode:
        raise SystemExit(f"the package in {source} failed:\n{made.stderr[-3000:]}")
    return {
        str(path.relative_to(keep)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(keep.rglob("*"))
        if path.is_file()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ref", nargs="?", help="the commit to compare with")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--keep", type=Path, help="a new folder for the compared texts")
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        one_side(arguments.only, arguments.side)
        return
    if not arguments.ref:
        parser.error("name the commit to compare with")
    with tempfile.TemporaryDirectory() as name, worktree(arguments.ref) as base:
        keep = (arguments.keep or Path(name)).resolve()
        before = digests(base / "src", arguments.only, keep / "before")
        after = digests(HERE.parent.parent / "src", arguments.only, keep / "after")
    differ = 0
    for label in sorted(before.keys() | after.keys()):
        old, new = before.get(label, "missing"), after.get(label, "missing")
        differ += old != new
        print(f"{label:70} {old[:16]:16} {'same' if old == new else 'DIFFERS ' + new[:16]}")
    print(f"{len(before)} digests, {differ} differ")
    raise SystemExit(differ > 0)


if __name__ == "__main__":
    main()
