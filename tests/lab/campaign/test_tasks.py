"""One task: its runs, its failures, less memory, the hardware."""

import numpy as np
import pytest

import discreet as dc
from campaigns import grid, task
from discreet.data import load
from discreet.lab.campaign import hardware
from discreet.lab.campaign.grid import keys
from discreet.lab.campaign.hardware import LEAST
from discreet.lab.campaign.presets import FEATURES
from discreet.lab.campaign.tasks import compute, reason, scaled
from discreet.simulate import engine
from discreet.simulate.engine import Machine
from wording import refused

FAMILY = "Ridge.predictions"


def test_a_task_is_the_runs_it_names():
    data = load("fried", rows=60)
    parts = (((0, 3), (0, 2)), ((1,), (1,)))
    outcome = compute(task(parts=parts))
    plans = grid().plans(FAMILY, 2, 10)
    assert [key for key, _ in plans] == list(keys(grid(), FAMILY))
    for (indices, seeds), losses in zip(parts, outcome.losses, strict=True):
        for i, index in enumerate(indices):
            for j, seed in enumerate(seeds):
                alone = dc.evaluate(plans[index][1], data.contexts, data.labels, seed=seed)
                assert losses[i, j, -1] == np.float32(alone.loss)
    assert outcome.error is None
    assert outcome.seconds > 0


def test_a_failure_is_a_reason(monkeypatch):
    def broken(*_, **_rest):
        raise ZeroDivisionError("the /home/someone/secret/data.npz file\nis odd")

    monkeypatch.setattr(engine, "run", broken)
    outcome = compute(task())
    assert outcome.error == "ZeroDivisionError: the data.npz file is odd"
    assert outcome.losses == ()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("file must be readable; /a/b/c.npz is not", "file must be readable; c.npz is not"),
        ("'/a/b c/d.csv' of C:\\Users\\me\\x.csv", "'d.csv' of x.csv"),
        ("2.5e6 rounds/s and a/b stay", "2.5e6 rounds/s and a/b stay"),
        ("", ""),
    ],
)
def test_a_reason_names_no_folder(message, shown):
    assert reason(ValueError(message)) == f"ValueError: {shown}".rstrip(": ")


class OutOfMemoryError(RuntimeError):
    """Named as torch names it."""


@pytest.mark.parametrize(
    "error",
    [MemoryError, OutOfMemoryError, lambda: RuntimeError("DefaultCPU: can't allocate memory")],
)
def test_out_of_memory_halves_the_budget_until_it_fits(error, monkeypatch):
    budgets, play = [], engine.run

    def hungry(plans, features, labels, seeds, *, machine, users):
        budgets.append(machine.memory)
        if machine.memory > LEAST * 2:
            raise error()
        return play(plans, features, labels, seeds, machine, users=users)

    monkeypatch.setattr(engine, "run", hungry)
    outcome = compute(
        task(parts=(((0,), (0,)), ((1,), (0,))), machine=Machine("numpy", "float64", LEAST * 8))
    )
    assert outcome.error is None
    # What sufficed once is where the next part begins.
    assert budgets == [LEAST * 8, LEAST * 4, LEAST * 2, LEAST * 2]


# --- the machine -------------------------------------------------------------------------------


def test_a_task_uses_one_thread(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    seen, play = [], engine.run

    def watched(*arguments, **rest):
        seen.extend(each["num_threads"] for each in threadpool_info())
        return play(*arguments, **rest)

    monkeypatch.setattr(engine, "run", watched)
    with threadpool_limits(2):
        before = {each["filepath"]: each["num_threads"] for each in threadpool_info()}
        assert compute(task()).error is None
        after = {each["filepath"]: each["num_threads"] for each in threadpool_info()}
    assert set(seen) == {1}
    assert set(before.values()) == {2}
    assert {path: after[path] for path in before} == before


def test_memory_is_shared_by_jobs(monkeypatch):
    free = 3 * 2**26
    monkeypatch.setattr(hardware, "free_memory", lambda _: free)
    assert hardware.machine("numpy", 1).memory == 2**26
    assert hardware.machine("numpy", 2).memory == 2**25
    assert hardware.machine("numpy", 4, memory=2.0).memory == 2**29
    free = 1
    assert hardware.machine("numpy", 1).memory == LEAST


class NoCuda:
    class cuda:  # noqa: N801
        @staticmethod
        def is_available():
            return False


def test_devices(monkeypatch):
    monkeypatch.setattr(hardware, "_torch", lambda: None)
    assert hardware.choose("auto") == hardware.choose("numpy") == "numpy"
    for device in ("cpu", "cuda"):
        with pytest.raises(dc.InvalidInput, match="torch must be installed"):
            hardware.choose(device)
    monkeypatch.setattr(hardware, "_torch", lambda: NoCuda)
    assert hardware.choose("auto") == hardware.choose("cpu") == "cpu"
    with pytest.raises(dc.InvalidInput, match="finds no CUDA device"):
        hardware.choose("cuda")
    monkeypatch.setattr(NoCuda.cuda, "is_available", lambda: True)
    assert hardware.choose("auto") == hardware.choose("cuda") == "cuda"
    with pytest.raises(dc.InvalidInput, match="Did you mean 'cuda'"):
        hardware.choose("cudda")


@pytest.mark.parametrize(
    ("cores", "machine", "name"),
    [(2, "x86_64", "two x86 cores"), (1, "arm64", "one ARM core"), (64, "arm64", "64 ARM cores")],
)
def test_hardware_is_named_as_a_class(monkeypatch, cores, machine, name):
    monkeypatch.setattr(hardware, "cores", lambda: cores)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert hardware.described("numpy") == hardware.described("cpu") == name


CONTEXTS = np.random.default_rng(3).normal(size=(40, 3)) * [1.0, 1e-6, 1e6] + [0.0, 5.0, -1e7]


@pytest.mark.parametrize(("features", "below", "above"), [("ranges", 0, 0), ("wide", 0.5, 1.5)])
def test_features_are_those_of_a_schema_that_declares_the_ranges(features, below, above):
    low, high = CONTEXTS.min(axis=0), CONTEXTS.max(axis=0)
    low, high = low - below * (high - low), high + above * (high - low)
    names = "abc"
    schema = dc.Schema([dc.Number(*field) for field in zip(names, low, high, strict=True)])
    rows = [dict(zip(names, row, strict=True)) for row in CONTEXTS]
    found = dc.UnitBall(6).map(scaled(CONTEXTS, features))
    assert found == pytest.approx(schema.map(rows), abs=1e-9)


@pytest.mark.parametrize("features", [*FEATURES[1:], "linear", "standard"])
def test_a_constant_column_becomes_zeros(features):
    contexts = np.column_stack([np.full(40, 0.1), CONTEXTS[:, 0]])
    found = scaled(contexts, features)
    assert (found[:, 0] == 0.0).all()
    assert np.isfinite(found).all()


def test_the_engine_refuses_plans_with_different_batches():
    """One result has one row of batch ends: plans with other batches would be read wrongly."""
    problem = {"n_actions": 2, "features": dc.UnitBall(1), "budget": dc.Budget.none()}
    plans = [dc.Plan(**problem), dc.Plan(**problem, growth=2.0)]
    with refused(dc.InvalidInput, "schedule", "some differ"):
        engine.run(plans, np.ones((4, 2)), np.array([0, 1, 0, 1]), [0])
