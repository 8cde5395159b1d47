"""Who plays the tasks: the same files from one process, from two, and from a Dask cluster."""

import gc
import os
import signal
from concurrent.futures import Future

import pytest

import discreet as dc
from campaigns import SET, TASKS, contents, grid, play, small
from discreet.campaign import run_campaign as campaigns
from discreet.campaign.tasks import Outcome, Task
from discreet.campaign.workers import DIED, Here, Workers, outcomes, workers
from discreet.data import load
from discreet.simulate.engine import Machine
from wording import refused


def task(name, contexts=None):
    data = load("fried", rows=40)
    return Task(
        name=name,
        family="Ridge.predictions",
        grid=grid(),
        parts=(((0, 1), (0,)),),
        machine=Machine("numpy", "float32"),
        n_actions=2,
        contexts=data.contexts if contexts is None else contexts,
        labels=data.labels,
    )


class Deadly:
    """Whoever unpickles it ends at once, as a process that the system kills."""

    def __reduce__(self):
        return os._exit, (9,)


def test_two_jobs_write_the_files_of_one(tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        assert play(tmp_path / name, data=[SET, "linear:100"], jobs=jobs).failed == {}
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert len(contents(tmp_path / "one")) == 2 * TASKS


@pytest.mark.torch
def test_two_jobs_of_torch_write_the_files_of_one(tmp_path):
    pytest.importorskip("torch")
    for name, jobs in (("one", 1), ("two", 2)):
        assert play(tmp_path / name, device="cpu", jobs=jobs).failed == {}
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_worker_that_dies_takes_one_task_with_it():
    tasks = [task("a"), task("b"), task("deadly", Deadly()), task("c"), task("d")]
    with workers(2) as crew:
        made = {outcome.name: outcome.error for outcome in outcomes(iter(tasks), crew)}
    assert made == {"a": None, "b": None, "deadly": DIED, "c": None, "d": None}


def test_tasks_are_handed_out_a_few_at_a_time():
    made = []

    def endless():
        while True:
            made.append(task(str(len(made))))
            yield made[-1]

    here = Here()
    played = outcomes(endless(), Workers(lambda: here, lambda: 3, 1))
    for count in range(7):
        assert next(played).error is None
        assert len(made) <= count + 3


def test_what_could_not_be_read_is_passed_on():
    unread = [Outcome(str(i), error="ValueError: no") for i in range(3)]
    with workers(1) as crew:
        assert sorted(each.name for each in outcomes(iter(unread), crew)) == ["0", "1", "2"]
        mixed = iter([*unread, task("a")])
        assert len(list(outcomes(mixed, crew))) == 4


class Cancelled(Here):
    def submit(self, *_, **__):
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


class Unpicklable(Here):
    def submit(self, *_, **__):
        future = Future()
        future.set_exception(TypeError("cannot send it"))
        return future


def test_a_scheduler_that_leaves_ends_the_campaign():
    crew = Workers(Cancelled, lambda: 1, 1)
    with refused(dc.InvalidInput, "scheduler must stay"):
        list(outcomes(iter([task("a")]), crew))


def test_a_task_that_cannot_be_sent_is_a_failure():
    crew = Workers(Unpicklable, lambda: 1, 1)
    assert [each.error for each in outcomes(iter([task("a")]), crew)] == [
        "TypeError: cannot send it"
    ]


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("discreet.campaign.workers.PATIENCE", 0.2)
    gc.disable()
    try:
        for address in ("tcp://127.0.0.1:9", "nonsense"):
            with refused(dc.InvalidInput, address):
                play(tmp_path / "out", scheduler=address)
        # A client that was never closed may end at any moment, and Dask may then wait for itself.
        assert not [each for each in gc.get_objects() if type(each) is distributed.Client]
    finally:
        gc.enable()


def test_a_cluster_loses_a_worker_and_the_campaign_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    data = [SET, "linear:3000", "logistic:3000", "twonorm:2000"]
    killed = []
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]

        def kill(progress):
            if progress.tasks_done == 6 and not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        campaign = small(tmp_path / "cluster", data, scheduler=cluster.scheduler_address)
        progress = campaigns.run(campaign, kill)
    assert killed
    assert (progress.failed, progress.tasks_done) == ({}, len(data) * TASKS)
    play(tmp_path / "here", data)
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")
