"""A private log that stays in Parquet files: the releases of one process, and nothing of a row."""

import logging
import os
import pickle
import signal
import threading
import types
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import discreet as dc
from discreet.batches import log_import
from discreet.batches.log_import import LogColumns, sums_of_part
from discreet.data import parquet_log
from discreet.data.parquet_log import ParquetLog
from seeded_sources import SOURCES
from small_plans import small_plan
from wording import refused

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS, GROUP, FILES = 3_000, 250, 4
RNG = np.random.default_rng(1)
COLUMNS = {
    "age": RNG.uniform(18, 90, ROWS),
    "device": RNG.choice(["phone", "desk"], ROWS),
    "shown": RNG.choice(["none", "mail", "call"], ROWS),
    "won": RNG.random(ROWS) * 50.0,
    "unused": np.full(ROWS, "Anna"),
}
SCHEMA = dc.Schema([dc.Number("age", 0, 100), dc.Category("device", ["phone", "desk"])])
NAMED = {"actions": ["none", "mail", "call"], "features": SCHEMA, "outcome": dc.Reward(0, 50)}
PLAN = dc.Plan(**NAMED, budget=dc.Budget(2.0, 1e-5), imported=ROWS)
ROLES = {"actions": "shown", "reward": "won"}


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "log", COLUMNS)


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch):
    """Several row groups per task, and several chunks per row group."""
    monkeypatch.setattr(parquet_log, "TASK", 2 * GROUP)
    monkeypatch.setattr(parquet_log, "CHUNK", 100)


def written(folder, columns):
    folder.mkdir()
    ends = [0, 100, 1_700, 1_700, len(columns["won"])]  # unequal files, one of them empty
    for number in range(FILES):
        part = {name: each[ends[number] : ends[number + 1]] for name, each in columns.items()}
        file = folder / f"part-{number}.parquet"
        parquet.write_table(pyarrow.table(part), file, row_group_size=GROUP)
    (folder / "_temporary.parquet").write_text("of the program that writes the folder")
    return folder


def imported(log, executor=None, plan=PLAN):
    with SOURCES.begun("a log"):  # the same noise every time
        learner = dc.Learner(plan)
        learner.import_log(log, **ROLES, executor=executor)
    return learner


def documents(learner):
    return [item.digest for item in learner.released.items]


@pytest.mark.parametrize(("start", "stop"), [(0, ROWS), (0, 1), (99, 101), (251, 1_999), (7, 7)])
def test_parts_hold_every_row_once_in_order(folder, start, stop):
    parts = ParquetLog.of(folder).parts(start, stop)
    tables = [table for part in parts for table in part.tables(["age"])]
    read = [value for table in tables for value in table["age"].to_pylist()]
    assert read == COLUMNS["age"][start:stop].tolist()
    assert [part.rows for part in parts if part.rows == 0] == []
    assert max((len(table) for table in tables), default=0) <= 100
    inner = [part for part in parts[1:-1] if part.skip or part.rows < 2 * GROUP]
    assert all(part.start + part.rows == part.expected for part in inner)  # ends of files


def test_a_file_is_a_log_and_what_is_none_is_refused(folder, tmp_path):
    assert ParquetLog.of(folder / "part-1.parquet").rows == 1_600
    assert ParquetLog.of(f"file://{folder}").rows == ROWS
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "absent", folder / "_temporary.parquet"):
        with refused(dc.InvalidInput, str(path)):
            ParquetLog.of(path)
    parquet.write_table(pyarrow.table({"age": ["old"]}), folder / "part-9.parquet")
    with refused(dc.InvalidInput, "part-9.parquet", "same columns"):
        ParquetLog.of(folder)


def test_a_file_that_changes_meanwhile_is_refused(folder):
    log = ParquetLog.of(folder)
    file = folder / "part-1.parquet"
    parquet.write_table(parquet.read_table(file).slice(1), file, row_group_size=GROUP)
    with refused(dc.InvalidInput, "part-1.parquet", "stay as it was"):
        imported(log)


CHANGES = {
    "defaults": {},
    "control": {"control": dc.Control(share=0.2)},
    "ridge": {"oracle": dc.Ridge(), "policy": dc.SquareCB()},
    "longest": {"missing_loss": 1.0, "longest_batch": 700},
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_every_plan_of_sums_has_the_documents_of_arrays(folder, changed):
    plan = replace(PLAN, **changed)
    with SOURCES.begun("a log"):
        learner = dc.Learner(plan)
        learner.import_log(pyarrow.table(COLUMNS).drop_columns("unused"), **ROLES)
    from_files = imported(folder, None, plan)
    assert documents(from_files) == documents(learner)
    assert from_files.ledger.to_json() == learner.ledger.to_json()
    assert str(from_files.status()) == str(learner.status())
    for each in (learner, from_files):
        with refused(dc.InvalidInput, "imported once"):
            each.import_log(folder, **ROLES)


def test_without_a_schema_all_other_columns_are_numbers(tmp_path):
    numbers = {"x": COLUMNS["age"] / 100, "shown": RNG.integers(3, size=ROWS)}
    folder = written(tmp_path / "log", numbers | {"won": COLUMNS["won"] / 50})
    plan = small_plan(n_actions=3, features=dc.UnitBall(1), imported=ROWS)
    learners = dc.Learner(plan), dc.Learner(plan)
    tables = folder, pyarrow.table(numbers | {"won": COLUMNS["won"] / 50})
    for learner, table in zip(learners, tables, strict=True):
        with SOURCES.begun("a log"):
            learner.import_log(table, actions="shown", losses="won")
    assert documents(learners[0]) == documents(learners[1])


def test_processes_give_the_documents_of_one(folder):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert documents(imported(folder, pool)) == documents(imported(folder))


def test_a_cluster_that_loses_a_worker_gives_the_documents_of_one_process(folder):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        executor = Killing(client.get_executor(), cluster, after=4)
        assert documents(imported(folder, executor)) == documents(imported(folder))
        assert executor.killed.is_set()


class Killing:
    """An executor that loses a worker once some parts have ended, while others are under way."""

    def __init__(self, inner, cluster, after):
        self._inner, self._left, self.killed = inner, after, threading.Event()
        self._pid = next(iter(cluster.workers.values())).pid

    def submit(self, *call):
        job = self._inner.submit(*call)
        job.add_done_callback(self._ended)
        return job

    def _ended(self, _):
        self._left -= 1
        if self._left == 0:
            os.kill(self._pid, signal.SIGKILL)
            self.killed.set()


class Answering:
    """An executor of this thread that answers for a part as ``change`` says."""

    def __init__(self, change):
        self._change, self._first = change, None

    def submit(self, call, part):
        self._first, job = self._first or part, Future()
        job.set_result(self._change(call, part, self._first))
        return job


def test_rows_that_are_counted_twice_or_not_at_all_release_nothing(folder):
    learner = dc.Learner(PLAN)
    for instead in (lambda call, _, first: call(first), lambda call, part, _: (0, call(part)[1])):
        with refused(dc.PrivateData, "each once"):
            learner.import_log(folder, **ROLES, executor=Answering(instead))
    assert (learner.released.items, learner.ledger.entries) == ((), ())
    learner.import_log(folder, **ROLES)  # as if nothing had been


def test_an_executor_without_workers_releases_nothing(folder):
    learner, stopped = dc.Learner(PLAN), Future()
    stopped.set_exception(RuntimeError("tcp://10.0.0.5"))
    lost = types.SimpleNamespace(submit=lambda *_: stopped)
    with refused(dc.InvalidInput, "RuntimeError", "Nothing was released") as caught:
        learner.import_log(folder, **ROLES, executor=lost)
    assert "10.0.0.5" not in str(caught.value)
    assert learner.released.items == ()


@pytest.mark.parametrize(
    ("changed", "roles", "word"),
    [
        ({"unit": "user"}, ROLES, "user"),
        ({"oracle": dc.Logistic(), "policy": dc.SquareCB()}, ROLES, "oracle"),
        ({}, {"actions": "showed", "reward": "won"}, "showed"),
        ({}, {"actions": "shown", "losses": "won"}, "reward"),
        ({}, {"actions": "shown", "reward": COLUMNS["won"]}, "names of columns"),
        ({"features": dc.Schema([dc.Number("height", 0, 3)])}, ROLES, "height"),
        ({"imported": 2_999}, ROLES, "2,999 rows"),
    ],
    ids=["user", "oracle", "absent", "loss", "array", "feature", "count"],
)
def test_what_does_not_fit_is_refused_before_a_row_is_read(
    folder, changed, roles, word, monkeypatch
):
    learner = dc.Learner(replace(PLAN, **changed))
    monkeypatch.setattr(log_import, "sums_of_part", None)
    with refused(dc.InvalidInput, word):
        learner.import_log(folder, **roles)
    assert learner.released.items == ()


def test_seeded_noise_is_for_arrays(folder):
    with refused(dc.InvalidInput, "SeededNoise"):
        dc.Learner(PLAN, noise=dc.SeededNoise(0)).import_log(folder, **ROLES)


SECRET = "Zebedee"


@pytest.mark.parametrize(
    ("column", "value"), [("device", SECRET), ("age", 977_315.5), ("shown", SECRET), ("won", 71.25)]
)
def test_a_wrong_row_is_named_by_its_place_and_releases_nothing(tmp_path, column, value):
    columns = {name: each.astype(object) for name, each in COLUMNS.items()}
    columns[column][1_834] = value  # of the third file: its row 134
    made = {name: np.asarray(each.tolist()) for name, each in columns.items()}
    folder, learner = written(tmp_path / "log", made), dc.Learner(PLAN)
    with refused(dc.InvalidInput, "part-3.parquet", "from its row 100", "row 34") as caught:
        learner.import_log(folder, **ROLES)
    assert str(value) not in str(caught.value)
    assert (learner.released.items, learner.ledger.entries) == ((), ())


def test_a_cluster_tells_nothing_of_rows(folder, monkeypatch, caplog, capfd):
    """Whatever a worker meets, its results, errors and logs have no value of a row."""
    distributed = pytest.importorskip("distributed")

    def quoting(_plan, rows, *_):
        if len(rows):
            raise ValueError(f"cannot convert {rows['device'][0]} of {rows['age'][0]}")

    monkeypatch.setattr(log_import, "logged_rows", quoting)  # threads share it
    caplog.set_level(logging.DEBUG)
    age = str(COLUMNS["age"][0])
    with (
        distributed.LocalCluster(processes=False, n_workers=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(dc.InvalidInput, match="ValueError") as caught,
    ):
        imported(folder, client.get_executor())
    printed = capfd.readouterr()
    for text in (str(caught.value), caplog.text, printed.out, printed.err):
        assert age[:8] not in text


def test_only_public_facts_go_to_a_worker_and_only_integers_come_back(folder):
    log = ParquetLog.of(folder)
    columns = LogColumns.of(PLAN, log, "shown", None, "won")
    sent = pickle.dumps((columns, log.parts(0, ROWS)))
    assert all(str(each).encode() not in sent for each in COLUMNS["age"][:5])
    assert columns.names == ("age", "device", "shown", "won")
    rows, sums = sums_of_part(columns, lambda batch: (batch.observed.sum(0),), log.parts(0, 700)[1])
    assert rows == 500
    assert [each.dtype.kind for each in sums] == ["i"]
    assert sum(sums[0]) == 500
