"""Exact BonusPO (Algorithm 3) on fried, 40,768 rounds: the rate, and agreement with the text.

    python bench/bonus.py [--device numpy|cpu|cuda] [--runs 1] [--quick] [--json]

Runs are spread over ten seeds and a grid of parameters, from much exploration to little. On CUDA
the first call builds the kernel and is not timed. The peer is a literal Algorithm 3 on
the same rows, with every step and every action.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

import discreet as dc
from discreet.arrays.backend import to_numpy
from discreet.data import load
from discreet.lab.campaign.presets import DOUBLING
from discreet.policies.bonus_po import average_of_updates
from discreet.simulate.engine import Machine, run

SEEDS = 10


def plans(count: int) -> list[dc.Plan]:
    """``count`` settings on a grid of bonus and rate scales."""
    side = int(np.ceil(np.sqrt(count)))
    bonuses, rates = np.geomspace(1.0, 0.01, side), np.geomspace(1.0, 20.0, side)
    grid = itertools.islice(itertools.product(bonuses, rates), count)
    return [
        dc.Plan(
            n_actions=2,
            features=dc.UnitBall(10),
            policy=dc.BonusPO(bonus_scale=float(bonus), rate_scale=float(rate)),
            oracle=dc.Ridge(ridge=0.01),
            budget=dc.Budget.none(),
            **DOUBLING,
        )
        for bonus, rate in grid
    ]


def literal(gaps: Any, reach: float, rate: float, length: int) -> Any:
    """Algorithm 3, step by step."""
    logits, mass = np.zeros_like(gaps), np.zeros_like(gaps)
    for _ in range(length):
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        bonus = np.minimum(reach / (1.0 + mass), 1.0)
        mass += weights / weights.sum(axis=-1, keepdims=True)
        logits -= rate * np.maximum(gaps - bonus, 0.0)
    return mass / length


def disagreement(machine: Machine, length: int, rows: int) -> tuple[float, float]:
    """Largest difference to the literal algorithm, and how many times faster it was."""
    rng = np.random.default_rng(0)
    largest, ours, theirs = 0.0, 0.0, 0.0
    for actions, scale in ((2, 0.05), (2, 1.0), (5, 0.2), (10, 0.02)):
        losses = rng.random((rows, actions))
        gaps = losses - losses.min(axis=-1, keepdims=True)
        reach = 2.0 * scale * length / np.sqrt(actions * length / 2)
        rate = float(np.sqrt(2 * np.log(actions) / length))
        on_device = machine.array(gaps)
        average_of_updates(on_device, reach, rate, length)
        start = time.perf_counter()
        fast = to_numpy(average_of_updates(on_device, reach, rate, length))
        ours += time.perf_counter() - start
        start = time.perf_counter()
        slow = literal(gaps, reach, rate, length)
        theirs += time.perf_counter() - start
        largest = max(largest, float(abs(fast - slow).max()))
    return largest, theirs / ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="numpy", choices=("numpy", "cpu", "cuda"))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few rounds, as a quick check")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
    data = load("fried:2048" if arguments.quick else "fried:40768")
    gib = 48 if arguments.device == "cuda" else 2
    machine = Machine(arguments.device, "float64", gib * 2**30)
    seeds = list(range(min(SEEDS, arguments.runs)))
    chosen = plans(-(-arguments.runs // len(seeds)))
    features = dc.UnitBall(10).map(data.contexts)
    if arguments.device == "cuda":
        run(chosen[:1], features[:64], data.labels[:64], seeds[:1], machine)
    start = time.perf_counter()
    losses = run(chosen, features, data.labels, seeds, machine)[..., -1]
    seconds = time.perf_counter() - start
    runs = losses.size
    lengths = replace(chosen[0], horizon=data.rows).schedule
    steps = sum(
        length * lengths.nominal(number)
        for number, length in enumerate(lengths.lengths(), start=1)
        if number > 1
    )
    largest, ratio = disagreement(machine, 1024 if arguments.quick else 16384, 256)
    measured = {
        "runs": runs,
        "rounds per run": data.rows,
        "seconds": seconds,
        "runs/s": runs / seconds,
        "literal steps/s": runs * steps / seconds,
        "least loss": float(losses.mean(axis=1).min()),
        "largest disagreement": largest,
        "ratio to the literal algorithm": ratio,
    }
    for name, value in measured.items():
        print(f"{name:32} {value:>16.6g}")
    if arguments.json:
        print(json.dumps(measured))
    if largest > 1e-10:
        raise SystemExit("disagreement must be at most 1e-10")


if __name__ == "__main__":
    main()
