"""Workers that play tasks: this process, processes of this machine, or a Dask cluster.

All three return futures, and one loop serves them. A few tasks are submitted at a time, so that
only their data are in memory; outcomes come back in the order in which they end.

Threads of a pool take the locks of futures and of the pool itself. Ctrl-C must not interrupt this
thread while it holds one of them: the pool could never be ended. So futures report their end to a
queue, which the loop waits for without a lock, and ``_uninterrupted`` guards what takes one.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from typing import Any

from discreet.errors import InvalidInput
from discreet.lab.campaign.tasks import Task, TaskOutcome, compute, reason
from discreet.validate import installed

DIED = "WorkerDied: the process that played it was killed, perhaps for lack of memory."
Job = Future[Any]
"""The result of a call that a worker may still compute."""
PATIENCE = 20.0
"""Seconds that a scheduler may take to answer, or to find a worker."""
MASKED = hasattr(signal, "pthread_sigmask")
"""True if threads can block signals; Windows cannot."""


@dataclass(frozen=True)
class Workers:
    """``submit(call, *arguments)`` returns a future, ``slots()`` how many tasks to hold at once.

    ``sharing`` tasks share the memory of one machine.
    """

    submit: Callable[..., Job]
    slots: Callable[[], int]
    sharing: int


@contextmanager
def workers(jobs: int, scheduler: str | None = None) -> Iterator[Workers]:
    """Yield workers for the time of a campaign; running tasks are cancelled at the end."""
    if scheduler is not None:
        with _cluster(scheduler) as cluster:
            yield cluster
    elif jobs == 1:
        yield Workers(computed_here, lambda: 1, 1)
    else:
        with _processes(jobs) as processes:
            yield processes


def computed_here(call: Callable[..., object], /, *arguments: object) -> Job:
    """Compute in this thread, which Ctrl-C interrupts; no other thread has the future."""
    future: Job = Future()
    future.set_result(call(*arguments))
    return future


def _submitting(executor: Callable[[], Any]) -> Callable[..., Job]:
    """Return a function that submits calls to an executor, which Ctrl-C does not interrupt."""

    def submit(call: Callable[..., object], /, *arguments: object) -> Job:
        with _uninterrupted():
            job: Job = executor().submit(call, *arguments)
        return job

    return submit


@contextmanager
def _processes(jobs: int) -> Iterator[Workers]:
    """Processes that joblib keeps; a broken pool is replaced."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    if MASKED:  # trackers unblock Ctrl-C when they start; workers must start while it is blocked
        resource_tracker.ensure_running()
        loky_tracker.ensure_running()

    def executor() -> Any:
        return get_reusable_executor(max_workers=jobs, initializer=_ignore_interrupts)

    try:
        yield Workers(_submitting(executor), lambda: jobs + 1, jobs)
    finally:
        with _uninterrupted():
            # A pool that is ended while it hands out a task trips over it, in a thread of its own
            # that is no longer needed.
            hook, threading.excepthook = threading.excepthook, lambda _: None
            executor().shutdown(wait=True, kill_workers=True)
            threading.excepthook = hook


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    """Dask's scheduler gives the task of a worker that died to another one."""
    installed("dask", "for --scheduler", "distributed")
    from distributed import Client

    client, why = None, ""
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        why = type(error).__name__
    if client is None:
        # What is left of it must go now: Dask ends it under a lock, and waits for itself if that
        # happens while another client begins.
        gc.collect()
        raise InvalidInput(
            f"scheduler must be the address of a running Dask scheduler; got {address!r}, which "
            f"does not answer ({why}). Start dask scheduler, or leave it out."
        )
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InvalidInput(
                f"scheduler must have workers; {address} has none. Start dask worker {address}."
            ) from None
        threads = max(client.nthreads().values(), default=1)
        executor = client.get_executor(pure=False)

        def slots() -> int:  # workers come and go
            return 2 * max(1, sum(map(int, client.nthreads().values())))

        try:
            yield Workers(_submitting(lambda: executor), slots, threads)
        finally:
            executor.shutdown(wait=False)


def answer(crew: Workers, call: Callable[..., Any], *arguments: object) -> Any:
    """Return what ``call(*arguments)`` returns on one of the workers."""
    ended: SimpleQueue[Job] = SimpleQueue()
    _report(crew.submit(call, *arguments), ended)
    return _result(ended.get())


def outcomes(tasks: Iterator[Task], crew: Workers) -> Iterator[TaskOutcome]:
    """Play all tasks. A worker that dies takes down one task at most, never the campaign."""
    waiting: dict[Job, Task] = {}
    ended: SimpleQueue[Job] = SimpleQueue()
    while True:
        room = crew.slots() - len(waiting)
        for task in islice(tasks, max(0, room)):
            waiting[_submit(crew, task, ended)] = task
        if not waiting:
            return
        made, task = _next(waiting, ended)
        if made is not None:
            yield made
            continue
        suspects = [task]  # a broken pool fails all of its tasks: find out which one broke it
        while waiting:
            made, task = _next(waiting, ended)
            if made is not None:
                yield made
            else:
                suspects.append(task)
        for task in suspects:
            alone, _ = _next({_submit(crew, task, ended): task}, ended)
            yield alone or TaskOutcome(task.name, error=DIED)


def _submit(crew: Workers, task: Task, ended: SimpleQueue[Job]) -> Job:
    """Hand out a task; its future appears in ``ended`` when it ends."""
    future: Job = Future()
    try:
        future = crew.submit(compute, task)
    except BrokenExecutor as error:  # it broke just now
        future.set_exception(error)
    _report(future, ended)
    return future


def _report(future: Job, ended: SimpleQueue[Job]) -> None:
    with _uninterrupted():
        future.add_done_callback(ended.put)


def _next(waiting: dict[Job, Task], ended: SimpleQueue[Job]) -> tuple[TaskOutcome | None, Task]:
    """Return the outcome of the task that ends next, which is no longer waiting.

    None where the process pool broke, which says nothing about this task.
    """
    future = ended.get()
    task = waiting.pop(future)
    try:
        outcome: TaskOutcome = _result(future)
        return outcome, task
    except BrokenExecutor:
        return None, task
    except CancelledError:
        raise InvalidInput(
            "scheduler must stay until the end; it went away. Start it again. "
            "Run the same command again to go on."
        ) from None
    except Exception as error:
        # Dask names the worker that was killed by its address, which must not be published.
        died = type(error).__name__ == "KilledWorker"
        return TaskOutcome(task.name, error=DIED if died else reason(error)), task


def _result(future: Job) -> Any:
    """Return the result of a future that has ended."""
    with _uninterrupted():
        return future.result()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C until the end of the block, then deliver it to the previous handler.

    Processes that are started in the block never see it: they inherit the mask of this thread.
    In other threads than the main one Python delivers no signal, and there is nothing to do.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if MASKED else set()
        try:
            yield
        finally:
            if MASKED:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        signal.signal(signal.SIGINT, before)
        if received:
            signal.raise_signal(signal.SIGINT)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; the campaign itself decides what to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
