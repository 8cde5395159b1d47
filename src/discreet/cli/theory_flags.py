"""The flags of ``theory``; ``command`` is the function that adds one."""

from __future__ import annotations

import argparse
from typing import Any

SCALING = """\
Regret against T (2^8 … 2^17), A (2 … 32), |F| (2 … 4096) and ε (0.1 … 10), one axis at a time: five
algorithms, with the rates of their theorems and with practical ones. Minutes on two cores.

example:
  discreet theory scaling --out scaling
"""


def theory_commands(command: Any, commands: Any) -> None:
    """``theory bounds|scaling``."""
    theory = command(commands, "theory", "", "the paper's bounds, and experiments beside them")
    kinds = theory.add_subparsers(dest="kind", metavar="bounds|scaling", required=True)
    example = "example:\n  discreet theory bounds --T 100000 --A 10 --F 1000 --epsilon 1"
    bounds = command(kinds, "bounds", "theory.bounds", "every bound and rate in numbers", example)
    bounds.add_argument("--T", type=int, required=True, metavar="T", help="rounds")
    bounds.add_argument("--A", type=int, required=True, metavar="A", help="actions")
    bounds.add_argument("--F", type=int, required=True, metavar="F", help="functions in the class")
    bounds.add_argument("--epsilon", type=float, default=1.0, metavar="E", help="default: 1")
    bounds.add_argument(
        "--delta", type=float, default=0.05, metavar="D", help="chance to fail (default: 0.05)"
    )
    scaling = command(kinds, "scaling", "theory.scaling", "how regret grows, measured", SCALING)
    scaling.add_argument("--out", required=True, metavar="DIR", help="where to write")
    scaling.add_argument("--seeds", type=int, default=30, metavar="N", help="default: 30")
    scaling.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
