"""The flags of ``audit`` and ``ledger``; ``command`` is the function that adds one."""

from __future__ import annotations

from typing import Any

AUDIT = """\
Every mechanism is asked what is claimed, what is exactly true, and what an attacker can measure:
sensitivities and likelihood ratios by computation, the noise that is really added, attacks on
worst pairs of batches, and whole runs of a learner. One verdict a question; exit code 1 if any
claim fails. docs/audit.md tells how to read it.

examples:
  discreet audit --quick
  discreet audit --full --html audit.html
  discreet audit --mechanism ridge-structured --epsilon 1 4
  discreet audit --part noise
"""
LEDGER = """\
A ledger is recomputed from its events by code of its own, through dp_accounting, and compared with
what the ledger says and with its budget. FILE is a saved learner, a file of releases, a file with
one signed document a line, or the JSON of a ledger; URL is a service's /v1/ledger. A service that
asks for a key finds it in the environment variable DISCREET_API_KEY. Nothing is claimed or changed.

examples:
  discreet ledger verify released.json
  discreet ledger verify documents.jsonl
  discreet ledger verify https://bandit.example.org/v1/ledger
"""


def audit_commands(command: Any, commands: Any) -> None:
    """``audit`` and ``ledger verify``."""
    audit = command(
        commands, "audit", "audit.audit", "attack every mechanism that ships and judge it", AUDIT
    )
    effort = audit.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="ε = 2, under two minutes (default)")
    effort.add_argument("--full", action="store_true", help="ε = 1, 2, 4, 8; half an hour at most")
    audit.add_argument(
        "--mechanism", nargs="+", metavar="NAME", help="ridge-structured, logistic-gamma, finite, …"
    )
    audit.add_argument(
        "--part", nargs="+", metavar="NAME", help="exact, noise, black-box, transcript"
    )
    audit.add_argument("--epsilon", nargs="+", type=float, metavar="E", help="other values of ε")
    audit.add_argument("--html", metavar="FILE", help="also write a page")
    audit.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="processes (default: cores)"
    )

    ledger = command(commands, "ledger", "", "check what a run or a service has spent")
    kinds = ledger.add_subparsers(dest="kind", metavar="verify", required=True)
    verify = command(kinds, "verify", "ledger.verify", "recompute ε and δ independently", LEDGER)
    verify.add_argument("source", metavar="FILE|URL", help="a file, or the address of a service")
