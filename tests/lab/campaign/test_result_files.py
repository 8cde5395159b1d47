"""The folder of a campaign: files that are whole or absent, checksums, one writer at a time."""

import errno
import json
import os

import numpy as np
import pytest

import discreet as dc
from campaigns import contents, grid, play, table
from discreet.lab.campaign import results_folder as folders
from discreet.lab.campaign.grid import keys
from discreet.lab.campaign.result_files import SCHEMA, from_bytes, present, read, tabulate, to_bytes
from discreet.lab.campaign.results_folder import NOTHING, Folder, Sidecar, file_name
from wording import refused

pa = pytest.importorskip("pyarrow")
FAMILY = "Ridge.predictions"
CURVES = np.random.default_rng(0).random((3, 2, 5)).astype(np.float32)


def rows(indices=(0, 2, 3), seeds=(1, 0)):
    part = (tuple(indices), tuple(seeds))
    losses = [CURVES[: len(indices), : len(seeds)]]
    return tabulate("a set", FAMILY, grid(), [part], losses, rounds=31)


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


def test_what_is_present():
    expected = np.zeros((len(keys(grid(), FAMILY)), 2), dtype=bool)
    assert (present(None, grid(), FAMILY) == expected).all()
    expected[[0, 2, 3]] = True
    for made in (rows(), from_bytes(to_bytes([rows()]))):
        assert (present(made, grid(), FAMILY) == expected).all()


def test_runs_outside_of_a_grid_are_not_counted():
    narrow = grid(epsilons=(1.0,), seeds=1)
    found = present(rows(indices=(0, 1, 3)), narrow, FAMILY)
    inside = [key in keys(narrow, FAMILY) for key in keys(grid(), FAMILY)]
    assert found.shape == (sum(inside), 1)
    assert found.sum() == sum(inside[i] for i in (0, 1, 3))


def test_reading_a_campaign(played):
    everything = read(played)
    assert everything.num_rows == sum(len(keys(grid(), family)) * 2 for family in grid().families)
    assert everything.column_names == SCHEMA.names
    assert everything.schema.field("curve").type == pa.list_(pa.float32())
    few = read(played, columns=["algorithm", "loss"])
    assert few.column_names == ["algorithm", "loss"]
    assert few.num_rows == everything.num_rows
    assert pa.types.is_dictionary(few.schema.field("algorithm").type)
    dictionaries = [chunk.dictionary for chunk in few.column("algorithm").chunks]
    assert all(each.equals(dictionaries[0]) for each in dictionaries)


def test_damaged_files_are_not_read(played):
    before = read(played).num_rows
    victim = next((played / "runs").glob("*Ridge.radii.parquet"))
    lost = from_bytes(victim.read_bytes()).num_rows
    content = bytearray(victim.read_bytes())
    content[100] ^= 1
    victim.write_bytes(content)
    assert read(played).num_rows == before - lost
    victim.unlink()
    assert read(played).num_rows == before - lost


def test_a_folder_without_a_campaign(tmp_path):
    with refused(dc.InvalidInput, "manifest.json"):
        read(tmp_path)
    Folder(tmp_path).write_manifest({"format": "discreet-campaign/2"})
    with refused(dc.InvalidInput, "discreet-campaign/2", "choose another folder"):
        read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with refused(dc.InvalidInput, "None"):
        read(tmp_path)


def test_nothing_yet(tmp_path):
    Folder(tmp_path).write_manifest({"format": folders.FORMAT})
    assert read(tmp_path).schema.equals(SCHEMA)
    assert read(tmp_path, columns=["loss"]).num_rows == 0


# --- files -------------------------------------------------------------------------------------


def test_a_sidecar_tells_of_its_task(played):
    folder = Folder(played)
    assert len(folder.tasks()) == 4
    for name in folder.tasks():
        about = json.loads((played / "runs" / f"{name}.json").read_text())
        assert set(about) == {"sha256", "seconds", "rows", "seeds", "device", "error"}
        assert about["sha256"] == contents(played)[f"{name}.parquet"]
        assert about["rows"] == from_bytes(folder.content(name)).num_rows
        assert (about["seeds"], about["error"]) == ([0, 1], None)
        assert about["seconds"] > 0


@pytest.mark.parametrize("text", ["", "[]", '{"sha256": 1}', '"x"'])
def test_an_unreadable_sidecar_says_nothing(text, played):
    folder = Folder(played)
    name = folder.tasks()[0]
    (played / "runs" / f"{name}.json").write_text(text)
    assert folder.sidecar(name) == NOTHING
    assert folder.content(name) is None


def test_names_of_files():
    assert file_name("fried") == "fried"
    odd = ["fried:200", "fried_200", "a/b", "../x", ".hidden", "ü", "a b", "a_b"]
    made = {file_name(name) for name in odd}
    assert len(made) == len(odd)
    for name in made:
        assert "/" not in name
        assert not name.startswith(".")
        assert name.isascii()


def test_leftovers_of_a_killed_write_are_removed(played):
    leftover = played / "runs" / ".x.parquet.abc"
    leftover.write_bytes(b"half")
    assert leftover.name not in Folder(played).tasks()
    play(played)
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
    kept = contents(out)
    assert play(out).tasks == 2
    assert kept.items() <= contents(out).items()


def test_other_errors_of_the_disk_are_told_as_they_are(tmp_path, monkeypatch):
    def broken(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("discreet.releases.canonical.os.fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        play(tmp_path / "out")


def test_results_come_before_their_checksum(tmp_path):
    """Killed in between, a file does not count and is computed again."""
    folder = Folder(tmp_path)
    folder.runs.mkdir()
    folder.write_results("a", b"old", NOTHING)
    assert folder.content("a") == b"old"
    (folder.runs / "a.parquet").write_bytes(b"new")
    assert folder.content("a") is None
    folder.write_sidecar("a", Sidecar(None, 1.0, 0, [], "", "ValueError: no"))
    assert folder.content("a") is None


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


def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / ".lock").touch()
    assert play(tmp_path).failed == {}
