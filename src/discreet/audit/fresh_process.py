"""Questions that are asked in a process of their own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a new process: a copy of this one where the system can fork."""
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_send, args=(sender, function, arguments))
    worker.start()
    sender.close()
    found = receiver.recv()
    worker.join()
    return found


def _send(sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    sender.send(function(*arguments))
    sender.close()
