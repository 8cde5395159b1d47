"""Workers: the same files from one process, from two, and from a Dask cluster."""

import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress

import pytest

import discreet as dc
from campaigns import SET, TASKS, contents, play, small, task
from discreet.lab.campaign import run_campaign as campaigns
from discreet.lab.campaign.tasks import TaskOutcome
from discreet.lab.campaign.workers import DIED, Workers, answer, computed_here, outcomes, workers
from wording import refused


class Deadly:
    """A process that unpickles it ends at once, like one that the system kills."""

    def __reduce__(self):
        return os._exit, (9,)


def test_two_jobs_write_the_files_of_one(tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        assert play(tmp_path / name, data=[SET, "linear:100"], jobs=jobs).failed == {}
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert len(contents(tmp_path / "one")) == 2 * TASKS


def test_a_worker_that_dies_takes_one_task_with_it():
    tasks = [task("a"), task("b"), task("deadly", contexts=Deadly()), task("c"), task("d")]
    with workers(2) as crew:
        made = {outcome.name: outcome.error for outcome in outcomes(iter(tasks), crew)}
    assert made == {"a": None, "b": None, "deadly": DIED, "c": None, "d": None}


def cancelled(*_):
    future = Future()
    future.cancel()
    future.set_running_or_notify_cancel()
    return future


def test_a_scheduler_that_leaves_ends_the_campaign():
    crew = Workers(cancelled, lambda: 1, 1)
    with refused(dc.InvalidInput, "scheduler must stay"):
        list(outcomes(iter([task("a")]), crew))


# --- Ctrl-C ------------------------------------------------------------------------------------


class Struck(threading.Condition):
    """The condition of a future, which delivers Ctrl-C just after somebody took its lock."""

    taken, at = 0, None

    def acquire(self, *arguments):
        got = super().acquire(*arguments)
        self.strike()
        return got

    def __enter__(self):
        super().__enter__()
        self.strike()

    def strike(self):
        place, Struck.taken = Struck.taken, Struck.taken + 1
        if place == Struck.at:
            signal.raise_signal(signal.SIGINT)

    def free(self):
        """Whether another thread gets the lock."""
        got = []
        asking = threading.Thread(target=lambda: got.append(self._lock.acquire(blocking=False)))
        asking.start()
        asking.join()
        return got[0]


@pytest.fixture
def interrupts(monkeypatch):
    """Python's handler of Ctrl-C; the previous one is restored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(Struck, "taken", 0)
    monkeypatch.setattr(Struck, "at", None)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def played_by_struck_futures():
    """Outcomes and conditions of five tasks, whose futures are struck at ``Struck.at``."""
    conditions, played = [], []

    def submit(_, task):
        future = computed_here(lambda: TaskOutcome(task.name))
        future._condition = Struck()
        conditions.append(future._condition)
        return future

    with suppress(KeyboardInterrupt):
        for outcome in outcomes(map(task, "abcde"), Workers(submit, lambda: 3, 1)):
            played.append(outcome.name)
    return played, conditions


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_leaves_no_lock_of_a_future_taken():
    played, _ = played_by_struck_futures()
    assert played == list("abcde")
    places = Struck.taken
    assert places >= 10  # of five futures each: when it is handed out, and when it has ended
    for place in range(places):
        Struck.taken, Struck.at = 0, place
        played, conditions = played_by_struck_futures()
        assert len(played) < 5  # it stopped
        assert Struck.taken == place + 1  # at once
        assert all(condition.free() for condition in conditions)


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_while_the_loop_waits_stops_it():
    """The queue is empty: nothing but the signal can end the wait."""

    class Interrupting(Future):
        def add_done_callback(self, _):
            # A signal to this thread, from a thread that first sees it wait or about to.
            main = threading.get_ident()
            threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        answer(Workers(lambda *_: Interrupting(), lambda: 1, 1), print)


STRUCK_POOL = """
import os, signal, sys, threading, time
from concurrent.futures import Future
from discreet.lab.campaign.workers import answer, outcomes, workers
signal.signal(signal.SIGINT, signal.default_int_handler)

class Struck(threading.Condition):
    armed = False

    def acquire(self, *arguments):
        got = super().acquire(*arguments)
        self.strike()
        return got

    def __enter__(self):
        super().__enter__()
        self.strike()

    def strike(self):
        if Struck.armed and threading.current_thread() is threading.main_thread():
            Struck.armed = False
            os.killpg(0, signal.SIGINT)  # as a terminal does: to every process

begin = Future.__init__

def with_struck_condition(self):
    begin(self)
    self._condition = Struck()

Future.__init__ = with_struck_condition
with workers(2) as crew:
    assert answer(crew, int, "7") == 7
    Struck.armed = True
    try:
        answer(crew, time.sleep, 3600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print("ended", flush=True)
"""


WORKER_START = """
import os, signal, sys
if "loky" in " ".join(sys.orig_argv[1:]) and "resource_tracker" not in " ".join(sys.orig_argv):
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with open(os.environ["STARTS"], "a") as file:
        file.write(f"{blocked} ")
"""


def test_a_pool_ends_after_ctrl_c_at_a_lock_of_a_future(tmp_path):
    """Its own thread needs that lock to end; workers that still start do not get the signal."""
    (tmp_path / "sitecustomize.py").write_text(WORKER_START)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    starts = tmp_path / "starts"
    done = subprocess.run(
        [sys.executable, "-c", STRUCK_POOL],
        capture_output=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "STARTS": str(starts)},
    )
    assert (done.returncode, done.stdout) == (0, b"interrupted\nended\n"), done.stderr
    assert b"Traceback" not in done.stderr
    assert set(starts.read_text().split()) == {"True"}


# --- a cluster ---------------------------------------------------------------------------------


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("discreet.lab.campaign.workers.PATIENCE", 0.2)
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
