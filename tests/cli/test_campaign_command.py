"""``discreet campaign``: from flags or a file, with progress, stopped and resumed."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from campaigns import contents, expected_runs, grid, play
from discreet.cli.main import main
from discreet.lab.campaign.result_files import status
from discreet.lab.campaign.run_campaign import Progress
from discreet.simulate import engine
from lab.report.folders import run, write_rows
from program import PROGRAM

SMALL = [
    *("--preset", "quick", "--data", "fried:200", "--algorithms", "SquareCB", "LinUCB"),
    *("--epsilon", "inf", "1", "--ridges", "0.1", "--seeds", "2"),
]
HERE = ["--device", "numpy", "--jobs", "1"]
COMMAND = ["campaign"]
pytestmark = pytest.mark.usefixtures("here")


# --- run ---------------------------------------------------------------------------------------


def test_flags_are_the_campaign_with_a_line_for_every_task(call, tmp_path):
    code, out, err = call("run", *SMALL, *HERE, "--out", "flags")
    assert code == 0, err
    assert f"{expected_runs(grid())} runs in" in out
    assert "discreet campaign report flags" in out
    lines = err.splitlines()
    assert len(lines) == 4
    for number, line in enumerate(lines, start=1):
        assert line.startswith(f"{number} of 4 tasks, ")
        assert "rounds/s" in line
        assert "fried:200 " in line
    assert " left" in lines[0]
    play(tmp_path / "here")
    assert contents(tmp_path / "flags") == contents(tmp_path / "here")
    code, out, err = call("run", *SMALL, *HERE, "--out", "flags")
    assert (code, err) == (0, "")
    assert "no run was missing" in out


TOML = """
preset = "quick"
data = ["sets/small.csv", "fried:200"]
out = "results"
algorithms = ["SquareCB", "LinUCB"]
epsilon = [inf, 1]
ridges = 0.1
seeds = 1
device = "numpy"
jobs = 1
"""


@pytest.fixture
def file(tmp_path):
    """A campaign file in another folder, with a data set next to it."""
    place = tmp_path / "place"
    (place / "sets").mkdir(parents=True)
    lines = ["x,label", *(f"{i % 7},{'ab'[i % 2]}" for i in range(40))]
    (place / "sets" / "small.csv").write_text("\n".join(lines))
    (place / "campaign.toml").write_text(TOML)
    return place / "campaign.toml"


def test_a_file_is_the_campaign_and_flags_override_it(call, file, tmp_path):
    assert call("run", file)[0] == 0
    found = status(file.parent / "results")
    assert found["grid"] == grid(seeds=1).to_document()
    assert set(found["datasets"]) == {"small", "fried:200"}
    assert call("run", file, "--data", "linear:50", "--out", "other", "--seeds", "2")[0] == 0
    found = status(tmp_path / "other")
    assert found["grid"] == grid().to_document()
    assert list(found["datasets"]) == ["linear:50"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (TOML + "sedes = 3\n", "Did you mean 'seeds'?"),
        (TOML.replace("[inf, 1]", '["many"]'), "epsilon must be above 0"),
        (TOML.replace('"results"', "3"), "out must be text"),
        (TOML.replace('out = "results"', ""), "out must be given"),
    ],
)
def test_a_file_that_cannot_be_used(text, word, refuses, file):
    file.write_text(text)
    refuses("run", file, words=word)
    assert not (file.parent / "results").exists()


def test_missing_libraries_are_named(refuses, monkeypatch):
    there = dict.fromkeys(("joblib", "sklearn", "matplotlib", "jinja2"), "a spec")
    monkeypatch.setattr("discreet.validate.find_spec", there.get)
    words = "pyarrow must be installed", "discreet[campaign]"
    refuses("run", *SMALL, "--out", "out", words=words)


def test_a_failure_ends_with_1_and_its_reason(call, document, monkeypatch):
    play_runs = engine.run

    def odd(plans, *arguments, **rest):
        if plans[0].policy.uses_radii:
            raise ValueError("nothing works")
        return play_runs(plans, *arguments, **rest)

    monkeypatch.setattr(engine, "run", odd)
    code, out, err = call("run", *SMALL, *HERE, "--out", "out")
    assert code == 1
    assert "failed: fried:200 Ridge.radii: ValueError: nothing works" in out
    assert "Run the same command again" in out
    assert "4 of 4 tasks" in err
    answer = document("run", *SMALL, *HERE, "--out", "out", code=1)
    assert answer["failed"]["fried:200 Ridge.radii"] == "ValueError: nothing works"
    assert "fried:200 Ridge.radii: ValueError: nothing works" in call("status", "out")[1]


ENDLESS = """
import signal, time
from discreet.lab.campaign import tasks, workers

def compute(task):
    while task.name.startswith("fried"):
        time.sleep(3600)
    return tasks.compute(task)

workers.compute = compute
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_what_is_done(jobs, tmp_path):
    """The smaller set, which comes last, never ends: the signal always finds work under way."""
    data = [*SMALL[:2], "--data", "twonorm:200", "fried:100", "--seeds", "2"]
    command = [*PROGRAM[:-1], ENDLESS + PROGRAM[-1], "campaign", "run", *data]
    started = subprocess.Popen(
        [*command, "--device", "numpy", "--jobs", jobs, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUTF8": "1"},
        start_new_session=True,
    )
    assert started.stderr.readline().startswith(b"1 of 14 tasks")
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to every process
    out, err = started.communicate()
    assert started.returncode == 130
    assert b"Traceback" not in err
    assert out.startswith(b"stopped: ")
    assert out.count(b"\n") == 1
    assert b"Run the same command again to go on." in out
    assert len(contents(tmp_path / "out")) >= 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_terminal_shows_one_line_and_none_with_json(flags, tmp_path, monkeypatch):
    """A campaign of four tasks that ends after two."""

    def halfway(_, show):
        found = Progress(tasks=4, rounds=4_000_000)
        show(found)
        show(replace(found, tasks_done=2, rounds_done=2_000_000, seconds=1.0, latest="a b"))

    monkeypatch.setattr("discreet.lab.campaign.run_campaign.run", halfway)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    words = ["campaign", "run", "--data", "fried:100", "--preset", "quick", *flags]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    if flags:
        assert screen.getvalue() == ""
        return
    _, before, first, second, last = screen.getvalue().replace("\n", "\r\n").split("\r")
    assert before.startswith("reading data …")
    assert first.startswith("[                    ] 0 of 4 tasks")
    assert second.startswith("[##########          ] 2 of 4 tasks, 2.0 million rounds/s, 1 s left")
    assert last == "\n"


# --- status, report, compare -------------------------------------------------------------------


def test_status(call, refuses, document, tmp_path):
    play(tmp_path / "out")
    answer = document("status", "out")
    assert answer["runs"] == answer["expected"] == expected_runs(grid())
    assert answer["running"] is False
    assert answer["datasets"]["fried:200"]["failed"] == {}
    assert call("status", "out")[1].split()[-1] == "complete"
    victim = next((tmp_path / "out" / "runs").glob("*.parquet"))
    victim.write_bytes(b"")
    assert call("status", "out")[1].split()[-1] == "damaged"
    victim.unlink()
    assert call("status", "out")[1].split()[-1] == "incomplete"
    refuses("status", "nowhere", words="manifest.json")


def test_report_writes_where_it_says(call, document, tmp_path):
    pytest.importorskip("matplotlib")
    play(tmp_path / "out", grid=grid(epsilons=(float("inf"), 8.0, 1.0)))
    code, out, err = call("report", "out")
    assert code == 0, err
    assert out.rstrip().endswith(os.path.join("out", "report", "index.html"))
    assert (tmp_path / "out" / "report" / "best.csv").stat().st_size > 0
    assert document("report", "out", "--out", "elsewhere", "--select", "split")["runs"] > 0
    assert (tmp_path / "elsewhere" / "index.html").exists()
    assert call("run", *SMALL, *HERE, "--out", "out")[0] == 0  # a report may lie in the folder


def test_compare_prints_cells_on_request(call, document, refuses, tmp_path):
    rows = [
        run("openml:901", algorithm, 1.0, 0, loss)
        for algorithm, loss in (("ReplayBonusPO", 0.2), ("SquareCB", 0.3))
    ]
    write_rows(tmp_path / "out", rows)
    assert "cells" not in document("compare", "out")
    (cell, _) = document("compare", "out", "--cells")["cells"]
    assert (cell["row_algorithm"], cell["ours"]) == ("ReplayBonusPO", 100.0)
    line = call("compare", "out", "--cells")[1].splitlines()[-2]
    figures = f"100.0 {cell['published']:.1f} {cell['difference']:+.1f}"
    assert line.split() == ["1", "ReplayBonusPO", "SquareCB", "1", *figures.split()]
    write_rows(tmp_path / "other", [{**row, "dataset": "mine"} for row in rows])
    refuses("compare", "other", words="share data sets and an ε with the paper")
