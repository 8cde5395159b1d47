"""Advice of the library on the error stream of a command, each once."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.advice import Advice


def quiet_flag(parser: argparse.ArgumentParser) -> None:
    """For commands that give advice."""
    words = "no warnings about the data or the plan"
    parser.add_argument("--quiet", action="store_true", help=words)


@contextmanager
def spoken_advice(quiet: bool) -> Iterator[None]:
    """Print advice as ``warning: …`` instead of Python's lines with file and source, or not."""
    said: set[str] = set()
    with warnings.catch_warnings():
        otherwise = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if not issubclass(category, Advice):
                otherwise(message, category, *place, **more)
            elif str(message) not in said:
                said.add(str(message))
                print(f"warning: {message}", file=sys.stderr)

        warnings.showwarning = show
        warnings.simplefilter("ignore" if quiet else "always", Advice)
        yield
