"""The folder of a campaign: files that are complete or absent, checksums, one writer."""

import errno
import os

import numpy as np
import pytest

import discreet as dc
from campaigns import contents, grid, play, table
from discreet.lab.campaign.grid import keys
from discreet.lab.campaign.result_files import (
    NOTHING,
    SCHEMA,
    Folder,
    from_bytes,
    missing,
    read,
    tabulate,
    to_bytes,
)
from discreet.lab.campaign.tasks import Task
from wording import refused

pa = pytest.importorskip("pyarrow")
FAMILY = "Ridge.predictions"
CURVES = np.random.default_rng(0).random((3, 2, 5)).astype(np.float32)


def rows(indices=(0, 2, 3), seeds=(1, 0)):
    task = Task("a task", "a set", FAMILY, grid(), ((tuple(indices), tuple(seeds)),), 31)
    return tabulate(task, [CURVES[: len(indices), : len(seeds)]])


@pytest.fixture
def played(tmp_path):
    play(tmp_path / "out")
    return tmp_path / "out"


# --- tables ------------------------------------------------------------------------------------


def test_a_row_per_run():
    made = from_bytes(to_bytes([rows()])).cast(SCHEMA).to_pylist()
    named = keys(grid(), FAMILY)
    assert len(made) == 6
    for row in made:
        key = (row["algorithm"], row["epsilon"], row["delta"], row["settings"])
        i, j = (0, 2, 3).index(named.index(key)), (1, 0).index(row["seed"])
        assert row["curve"] == CURVES[i, j].tolist()
        assert row["loss"] == row["curve"][-1]
        constant = (row["dataset"], row["oracle"], row["mechanism"], row["rounds"])
        assert constant == ("a set", "Ridge", "paper", 31)


def test_a_file_does_not_tell_how_it_came_about():
    at_once = to_bytes([rows()])
    parts = [rows().slice(start, 1) for start in (4, 0, 5, 2, 1, 3)]
    assert to_bytes(parts) == at_once
    assert to_bytes([from_bytes(at_once).slice(0, 3), from_bytes(at_once).slice(3)]) == at_once


def test_missing_runs_are_grouped_by_their_seeds():
    assert len(keys(grid(), FAMILY)) == 6
    assert missing(None, grid(), FAMILY) == ((tuple(range(6)), (0, 1)),)
    content = to_bytes([rows(), rows(indices=(1,), seeds=(1,))])
    assert missing(content, grid(), FAMILY) == (((1,), (0,)), ((4, 5), (0, 1)))


def test_reading_a_campaign(played):
    everything = read(played)
    assert everything.num_rows == sum(len(keys(grid(), family)) * 2 for family in grid().families)
    assert everything.column_names == SCHEMA.names
    few = read(played, columns=["algorithm", "loss"])
    assert few.column_names == ["algorithm", "loss"]
    assert few.num_rows == everything.num_rows
    assert pa.types.is_dictionary(few.schema.field("algorithm").type)
    dictionaries = [chunk.dictionary for chunk in few.column("algorithm").chunks]
    assert all(each.equals(dictionaries[0]) for each in dictionaries)


def test_a_folder_without_a_campaign(tmp_path):
    with refused(dc.InvalidInput, "manifest.json"):
        read(tmp_path)
    Folder(tmp_path).write_manifest({"format": "discreet-campaign/2"})
    with refused(dc.InvalidInput, "discreet-campaign/2", "choose another folder"):
        read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with refused(dc.InvalidInput, "None"):
        read(tmp_path)


# --- files -------------------------------------------------------------------------------------


def test_unreadable_sidecars_and_killed_writes_count_for_nothing(played):
    folder, leftover = Folder(played), played / "runs" / ".x.parquet.abc"
    name = folder.tasks()[0]
    for text in ("", "[]", '{"sha256": 1}', '"x"'):
        (played / "runs" / f"{name}.json").write_text(text)
        assert folder.sidecar(name) == NOTHING
        assert folder.content(name) is None
    leftover.write_bytes(b"half")
    assert leftover.name not in folder.tasks()
    assert play(played).tasks == 1
    assert not leftover.exists()


class FullDisk:
    """So many files can still be written; then there is no room."""

    def __init__(self, after):
        self.left = after
        self.fsync = os.fsync

    def __call__(self, handle):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.fsync(handle)


def test_a_full_disk_leaves_no_half_file(tmp_path, monkeypatch):
    out = tmp_path / "out"
    disk = FullDisk(after=1 + 2 * 2 + 1)  # manifest, results and sidecar; then the manifest again
    monkeypatch.setattr("discreet.releases.canonical.os.fsync", disk)
    with refused(dc.InvalidInput, "disk must have room", "Run the same command again"):
        play(out)
    monkeypatch.undo()
    files = sorted(path.suffix for path in (out / "runs").iterdir())
    assert files == [".json", ".json", ".parquet", ".parquet"]
    stored = contents(out)
    assert play(out).tasks == 2
    assert stored.items() <= contents(out).items()


# --- one writer --------------------------------------------------------------------------------


def test_a_second_campaign_is_refused(played):
    with Folder(played).locked():
        assert Folder(played).busy()
        with refused(dc.InvalidInput, "another campaign"):
            play(played, grid=grid(seeds=3))
    assert not Folder(played).busy()
    assert play(played, grid=grid(seeds=3)).runs_done > 0
    assert len(table(played)) == read(played).num_rows


def test_a_folder_must_be_ours(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with refused(dc.InvalidInput, "other files"):
        play(tmp_path)
    with refused(dc.InvalidInput, "is a file"):
        play(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
