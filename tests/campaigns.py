"""A small campaign that ends in a second, and readers of its folder."""

import hashlib
import math
from dataclasses import replace

import pytest

for library in ("pyarrow", "joblib", "threadpoolctl"):
    pytest.importorskip(library)  # of the extra "campaign"; without it these tests have no subject

from discreet.data import load  # noqa: E402
from discreet.lab.campaign import run_campaign as campaigns  # noqa: E402
from discreet.lab.campaign.grid import Grid, keys  # noqa: E402
from discreet.lab.campaign.result_files import read  # noqa: E402
from discreet.lab.campaign.tasks import Task  # noqa: E402
from discreet.simulate.engine import Machine  # noqa: E402

SET = "fried:200"
SMALL = {"algorithms": ["SquareCB", "LinUCB"], "epsilons": (math.inf, 1.0), "ridges": (0.1,)}
TASKS = 4
"""Ridge and Logistic, predictions and radii."""


def grid(**changed):
    return Grid.of("quick", **{**SMALL, "seeds": 2, **changed})


def small(out, data=(SET,), **changed):
    """A campaign in this process, on NumPy by default."""
    own = {"grid": grid(), "device": "numpy", "jobs": 1}
    return campaigns.Campaign(data=list(data), out=out, **{**own, **changed})


def play(out, data=(SET,), **changed):
    return campaigns.run(small(out, data, **changed))


def task(name="a task", parts=(((0, 1), (0, 1)),), rows=60, machine=None, **data):
    """A task on fried, on NumPy by default; ``data`` are other parts of the set."""
    found = replace(load("fried", rows=rows), **data)
    machine = machine or Machine("numpy", "float64")
    return Task(name, "fried", "Ridge.predictions", grid(), parts, rows, machine, found)


def expected_runs(grid):
    """Number of runs of a data set."""
    return sum(len(keys(grid, family)) for family in grid.families) * grid.seeds


def contents(out):
    """The checksum of every result file."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((out / "runs").glob("*.parquet"))
    }


def table(out):
    """Every run as a dictionary, by the columns that name it."""
    rows = read(out).to_pylist()
    named = ("dataset", "algorithm", "oracle", "epsilon", "settings", "seed")
    found = {tuple(row[name] for name in named): row for row in rows}
    assert len(found) == len(rows), "a run came twice"
    return found
