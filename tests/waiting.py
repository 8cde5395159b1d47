"""Waits for events: how long a machine takes for them decides nothing."""

import time

PATIENCE = 120.0
"""Seconds after which an event that must happen did not: far above what is ever needed."""


def until(found, why="what was awaited did not happen", *, patience=PATIENCE):
    """The first true answer of ``found``, which is asked at least once."""
    end = time.monotonic() + patience
    while not (answer := found()):
        assert time.monotonic() < end, why
        time.sleep(0.02)  # often enough, and those who are asked have time to work
    return answer
