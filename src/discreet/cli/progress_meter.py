"""How far a campaign is, on standard error: one line that changes, or one line per task."""

from __future__ import annotations

import shutil
import sys

from discreet.formatting import duration
from discreet.lab.campaign.run_campaign import Progress

BAR = 20


class Meter:
    """``show`` is called after every task; ``close`` leaves the cursor on a new line."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._in_place = sys.stderr.isatty()
        self.latest = Progress()

    def begin(self) -> None:
        """Before the first task is known; the next line replaces this one."""
        if self._in_place and not self._quiet:
            print("reading data …", end="", file=sys.stderr, flush=True)

    def show(self, progress: Progress) -> None:
        self.latest = progress
        if self._quiet or not progress.tasks:
            return
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1
            line = f"{bar(progress)} {words(progress)}"[:width].ljust(width)
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        elif progress.tasks_done:
            print(words(progress), file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._in_place and not self._quiet:
            print(file=sys.stderr)


def bar(progress: Progress) -> str:
    """[########            ], by rounds: tasks are of very different sizes."""
    full = BAR * progress.rounds_done // max(1, progress.rounds)
    return f"[{'#' * full}{' ' * (BAR - full)}]"


def words(progress: Progress) -> str:
    """Tasks done, rounds per second, time left, the latest task."""
    counted = f"{progress.tasks_done} of {progress.tasks} tasks"
    if not progress.tasks_done or not progress.seconds:
        return counted
    rate = progress.rounds_done / progress.seconds
    parts = [counted, f"{rounds(rate)}/s"]
    left = (progress.rounds - progress.rounds_done) / rate if rate else 0.0
    if left:
        parts.append(f"{duration(round(left))} left")
    return ", ".join([*parts, progress.latest])


def rounds(count: float) -> str:
    """``40,000 rounds`` or ``2.6 million rounds``."""
    return f"{count / 1e6:,.1f} million rounds" if count >= 1e6 else f"{count:,.0f} rounds"
