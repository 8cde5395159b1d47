"""Who plays the tasks: this process, processes of this machine, or a Dask cluster.

All three are executors of futures, and one loop serves them. Tasks are handed out a few at a
time, so that only their data are in memory; outcomes come back in the order in which they end.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from discreet.campaign.results_folder import GO_ON
from discreet.campaign.tasks import Outcome, Task, compute, reason
from discreet.errors import InvalidInput
from discreet.validate import installed

DIED = "WorkerDied: the process that played it was killed, perhaps for lack of memory."
PATIENCE = 20.0
"""Seconds that a scheduler may take to answer, or to find a worker."""


class Here(Executor):
    """This process computes; the caller handles an interruption."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass(frozen=True)
class Workers:
    """``executor()`` returns a working executor, ``slots()`` how many tasks it should hold.

    ``sharing`` tasks share the memory of one machine.
    """

    executor: Callable[[], Executor]
    slots: Callable[[], int]
    sharing: int


@contextmanager
def workers(jobs: int, scheduler: str | None = None) -> Iterator[Workers]:
    """Workers for the time of a campaign; on leaving, what still runs is given up."""
    if scheduler is not None:
        with _cluster(scheduler) as cluster:
            yield cluster
    elif jobs == 1:
        here = Here()
        yield Workers(lambda: here, lambda: 1, 1)
    else:
        with _processes(jobs) as processes:
            yield processes


@contextmanager
def _processes(jobs: int) -> Iterator[Workers]:
    """Processes that joblib keeps; a broken pool is replaced."""
    from joblib.externals.loky import get_reusable_executor

    def executor() -> Any:
        return get_reusable_executor(max_workers=jobs, initializer=_ignore_interrupts)

    try:
        yield Workers(executor, lambda: jobs + 1, jobs)
    finally:
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

    client, reason = None, ""
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = type(error).__name__
    if client is None:
        # What is left of it must go now: Dask ends it under a lock, and waits for itself if that
        # happens while another client begins.
        gc.collect()
        raise InvalidInput(
            f"scheduler must be the address of a running Dask scheduler; got {address!r}, which "
            f"does not answer ({reason}). Start dask scheduler, or leave it out."
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
            yield Workers(lambda: executor, slots, threads)
        finally:
            executor.shutdown(wait=False)


def outcomes(tasks: Iterator[Task | Outcome], crew: Workers) -> Iterator[Outcome]:
    """Play all tasks. A worker that dies takes down one task at most, never the campaign.

    What comes as an outcome, because its data could not be read, is passed on.
    """
    waiting: dict[Future[Any], Task | Outcome] = {}
    while True:
        room = crew.slots() - len(waiting)
        for task in islice(tasks, max(0, room)):
            waiting[_submit(crew, task)] = task
        if not waiting:
            return
        ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
        suspects = []
        for future in ended:
            task = waiting.pop(future)
            outcome = _outcome(future, task)
            if outcome is None:
                suspects.append(task)
            else:
                yield outcome
        if suspects:  # a broken pool fails all that it had in hand: find out whose fault it was
            ended, _ = wait(waiting)
            finished = {future: _outcome(future, waiting[future]) for future in ended}
            suspects += [waiting[future] for future, made in finished.items() if made is None]
            waiting.clear()
            yield from (made for made in finished.values() if made is not None)
            for task in suspects:
                alone = _outcome(_submit(crew, task), task)
                yield alone or Outcome(task.name, error=DIED)


def _submit(crew: Workers, task: Task | Outcome) -> Future[Any]:
    ended: Future[Any] = Future()
    try:
        if isinstance(task, Task):
            return crew.executor().submit(compute, task)
        ended.set_result(task)
    except BrokenExecutor as error:  # it broke just now
        ended.set_exception(error)
    return ended


def _outcome(future: Future[Any], task: Task | Outcome) -> Outcome | None:
    """None where the process pool broke, which says nothing about this task."""
    try:
        outcome: Outcome = future.result()
        return outcome
    except BrokenExecutor:
        return None
    except CancelledError:
        raise InvalidInput(
            f"scheduler must stay until the end; it went away. Start it again. {GO_ON}"
        ) from None
    except Exception as error:
        # Dask names the worker that was killed by its address, which must not be published.
        died = type(error).__name__ == "KilledWorker"
        return Outcome(task.name, error=DIED if died else reason(error))


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; the campaign itself decides what to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
