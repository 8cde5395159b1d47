"""A campaign computes missing runs once, and stored results survive every failure."""

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from campaigns import SET, TASKS, contents, expected_runs, grid, play, small, table
from discreet.data import load
from discreet.lab.campaign import run_campaign as campaigns
from discreet.lab.campaign.result_files import Folder, file_name, status
from discreet.simulate import engine
from wording import refused


@pytest.fixture
def played(monkeypatch):
    """Calls of the engine: (plans, seeds)."""
    calls, run = [], engine.run

    def counted(plans, features, labels, seeds, **rest):
        calls.append((len(plans), tuple(seeds)))
        return run(plans, features, labels, seeds, **rest)

    monkeypatch.setattr(engine, "run", counted)
    return calls


def runs(calls):
    return sum(plans * len(seeds) for plans, seeds in calls)


# --- what it computes --------------------------------------------------------------------------


def test_every_run_is_there(tmp_path):
    progress = play(tmp_path / "out")
    assert (progress.tasks_done, progress.runs_done) == (TASKS, expected_runs(grid()))
    found = table(tmp_path / "out")
    assert len(found) == expected_runs(grid())
    assert {name for name, *_ in found} == {SET}
    assert {(row["rounds"], len(row["curve"])) for row in found.values()} == {(200, 8)}


def test_the_manifest_says_what_was_done(tmp_path):
    progress = play(tmp_path / "out", data=[SET, "linear:100"], max_columns=9)
    assert progress.too_wide == [SET]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(manifest) == {
        *("format", "grid", "grid_digest", "code_version", "device", "datasets")
    }
    assert manifest["format"] == "discreet-campaign/1"
    assert manifest["grid"] == grid().to_document()
    assert manifest["grid_digest"] == grid().digest
    assert manifest["code_version"] == dc.__version__
    assert manifest["device"].split()[-1] in ("core", "cores")
    data = load("linear", rows=100)
    facts = {"digest": data.digest, "rows": 100, "features": 3, "actions": 3}
    facts["best_fixed"] = 1 - max(np.bincount(data.labels)) / 100
    assert manifest["datasets"] == {"linear:100": facts}
    written = [path.read_text() for path in (tmp_path / "out").rglob("*.json")]
    assert not any(str(tmp_path) in text for text in written)


def test_columns_scaled_by_their_ranges_are_played_and_marked(tmp_path):
    scaled = grid(algorithms=["Default"], epsilons=(math.inf,), seeds=1, features="ranges")
    play(tmp_path / "out", data=["linear:60"], grid=scaled)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["event"]["kind"] == "NonPrivate"
    assert "own ranges" in manifest["event"]["reason"]
    with refused(dc.InvalidInput, "features must be 'ranges'", "--out"):
        play(tmp_path / "out", data=["linear:60"], grid=replace(scaled, features="raw"))


LARGER = {
    "ridge": ({"grid": grid(ridges=(0.1, 1.0))}, {(0, 1)}),
    "algorithm": ({"grid": grid(algorithms=["SquareCB", "LinUCB", "VanillaPO"])}, {(0, 1)}),
    "data": ({"data": ["linear:100"]}, {(0, 1)}),
    "level and seed": ({"grid": grid(epsilons=(4.0, 1.0), seeds=3)}, {(2,), (0, 1, 2)}),
}


@pytest.mark.parametrize(("more", "seeds"), LARGER.values(), ids=LARGER)
def test_more_computes_only_what_is_missing(more, seeds, tmp_path, played):
    out = tmp_path / "out"
    play(out)
    before, had = table(out), runs(played)
    played.clear()
    extended = {"data": [SET], "grid": grid(), **more}
    progress = play(out, **extended)
    after = table(out)
    assert {tuple(each) for _, each in played} == seeds
    assert len(after) == had + runs(played) == had + progress.runs_done
    assert before.items() <= after.items()  # untouched, bit for bit
    wanted = campaigns.Grid.of("quick").union(extended["grid"])
    assert {row["seed"] for row in after.values()} <= set(range(wanted.seeds))
    # Plans that lack the same seeds are played together: never more calls than that.
    assert len(played) <= TASKS * len(seeds)
    played.clear()
    play(out, **extended)
    assert played == []


# --- what it survives --------------------------------------------------------------------------

KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from campaigns import play
from discreet.simulate import engine
calls, run = [], engine.run
def slow(*arguments, **rest):
    calls.append(1)
    if len(calls) == 3:
        print("third", flush=True)
        time.sleep(600)
    return run(*arguments, **rest)
engine.run = slow
play(Path(sys.argv[1]))
"""


def test_a_killed_campaign_goes_on(tmp_path, played):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    tests = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", KILLED, str(killed), tests]
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert started.stdout.readline() == b"third\n"
    with refused(dc.InvalidInput, "another campaign"):
        play(killed)
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=60)
    assert started.returncode == -signal.SIGKILL
    finished = contents(killed)
    assert len(finished) == 2
    played.clear()
    assert play(killed).tasks == len(played) == TASKS - 2
    play(whole)
    assert contents(killed) == contents(whole)
    assert finished.items() <= contents(killed).items()


def test_a_damaged_file_is_computed_again(tmp_path, played):
    out = tmp_path / "out"
    play(out)
    before = contents(out)
    victim = out / "runs" / sorted(before)[1]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    assert status(out)["datasets"][SET]["damaged"] == [".".join(victim.stem.split(".")[-2:])]
    played.clear()
    assert (play(out).tasks, len(played)) == (1, 1)
    assert contents(out) == before


def test_a_failed_task_is_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    out, run = tmp_path / "out", engine.run

    def odd(plans, *arguments, **rest):
        if plans[0].policy.uses_radii:
            raise ValueError(f"nothing works in {tmp_path}/here.npz today")
        return run(plans, *arguments, **rest)

    monkeypatch.setattr(engine, "run", odd)
    progress = play(out)
    why = "ValueError: nothing works in here.npz today"
    failures = {f"{SET} {oracle}.radii": why for oracle in ("Ridge", "Logistic")}
    assert progress.failed == failures
    assert {row["algorithm"] for row in table(out).values()} == {"SquareCB"}
    task = f"{file_name(SET)}.Ridge.radii"
    assert json.loads((out / "runs" / f"{task}.json").read_text())["error"] == why
    assert set(status(out)["datasets"][SET]["failed"]) == {"Ridge.radii", "Logistic.radii"}
    monkeypatch.undo()
    progress = play(out)
    assert (progress.tasks, progress.failed) == (2, {})
    assert status(out)["datasets"][SET]["failed"] == {}


def test_a_set_that_cannot_be_read_is_recorded(tmp_path):
    sets, out = tmp_path / "sets", tmp_path / "out"
    sets.mkdir()
    x = np.random.default_rng(0).random((30, 2))
    np.savez(sets / "bad.npz", X=x, y=np.zeros(30))
    with pytest.raises(dc.InvalidInput, match="at least 2 classes"):  # then none is left
        play(out, data=[str(sets / "bad.npz")])
    with pytest.raises(dc.InvalidInput, match="Did you mean 'fried'"):
        play(out, data=["freid"])
    assert not out.exists()
    np.savez(sets / "good.npz", X=x, y=np.arange(30) % 2)
    assert "at least 2 classes" in play(out, data=[str(sets)]).failed["bad"]
    assert list(status(out)["datasets"]) == ["good"]
    assert "at least 2 classes" in status(out)["unreadable"]["bad"]
    np.savez(sets / "bad.npz", X=x, y=np.arange(30) % 2)
    assert play(out, data=[str(sets)]).failed == {}
    assert status(out)["unreadable"] == {}


# --- what it refuses ---------------------------------------------------------------------------


def altered(out, **changes):
    folder = Folder(out)
    folder.write_manifest({**folder.manifest(), **changes})


def test_a_folder_holds_results_of_one_version(tmp_path):
    play(tmp_path / "out")
    altered(tmp_path / "out", code_version="0.0.1")
    with refused(dc.InvalidInput, "0.0.1", "Choose another --out"):
        play(tmp_path / "out")
    with refused(dc.InvalidInput, "'paper'", "Choose another --out"):
        play(tmp_path / "out", grid=grid(mechanism="structured"))
    for wrong in ({"jobs": 0}, {"max_columns": 0}, {"memory": -1.0}):
        with refused(dc.InvalidInput, *wrong):
            small(tmp_path, **wrong)
    altered(tmp_path / "out", format="discreet-campaign/9")
    with refused(dc.InvalidInput, "discreet-campaign/9"):
        play(tmp_path / "out")


def test_a_name_stands_for_the_same_data(tmp_path):
    x = np.random.default_rng(0).random((30, 2))
    np.savez(tmp_path / "a.npz", X=x, y=np.arange(30) % 2)
    play(tmp_path / "out", data=[str(tmp_path / "a.npz")])
    np.savez(tmp_path / "a.npz", X=x, y=np.arange(30) % 3)
    with refused(dc.InvalidInput, "'a'", "digest"):
        play(tmp_path / "out", data=[str(tmp_path / "a.npz")])
