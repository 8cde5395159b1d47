"""The command line: parse, call, print. Commands import what they need when they are called."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from discreet.cli.audit_flags import audit_commands
from discreet.cli.flags import campaign_commands, data_commands
from discreet.cli.own_code import import_flag, import_modules
from discreet.cli.service_flags import service_commands
from discreet.cli.theory_flags import theory_commands
from discreet.cli.traffic_flags import traffic_commands
from discreet.errors import DiscreetError, InvalidInput
from discreet.registry import ORACLES, POLICIES
from discreet.validate import one_of

DESCRIPTION = """\
Private contextual bandits: people's data go in, and only what is provably private comes out.

Start with   discreet demo
Then plan    discreet plan --data fried --epsilon 1
and run      discreet run --data fried --policy SquareCB --epsilon 1
"""
EXPERIMENT = """\
An experiment is a TOML file, or flags, or a file that flags correct. The policy is ReplayBonusPO
and the oracle PooledRidge unless said otherwise: they need no tuning. --set reaches every
parameter of policy, oracle and plan: scale=16, ridge=0.001, mechanism=paper, first_batch=64.
Supervised is --policy Greedy --set feedback=full --set losses=one_label.
"""
COMMANDS = (
    "demo",
    "run",
    "plan",
    "data",
    "campaign",
    "theory",
    "audit",
    "ledger",
    "serve",
    "keys",
    "restore",
    "simulate-traffic",
    "release",
    "version",
)


class Parser(argparse.ArgumentParser):
    """Complaints become errors of ours, so that ``--json`` covers them too."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message}. See {self.prog} --help.")


def build_parser() -> Parser:
    """Every command with its flags; nothing heavy is imported here."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser("discreet", description=DESCRIPTION, formatter_class=raw)
    parser.add_argument("--version", action="store_true", help="the same as: discreet version")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")

    def command(place: Any, name: str, call: str, summary: str, text: str = "") -> Any:
        added = place.add_parser(
            name,
            parents=[shared],
            help=summary,
            formatter_class=raw,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=text,
        )
        added.set_defaults(call=call)
        return added

    demo = command(
        commands,
        "demo",
        "demo.demo",
        "eight algorithms, three privacy levels: a table and a page",
        "example:\n  discreet demo --out demo",
    )
    demo.add_argument("--out", default="demo", metavar="DIR", help="where to write (default: demo)")
    demo.add_argument("--rows", type=int, default=20_000, help=argparse.SUPPRESS)
    demo.add_argument("--seeds", type=int, default=5, help=argparse.SUPPRESS)

    run = command(
        commands,
        "run",
        "run.run",
        "play labelled data as a bandit and print the mean loss",
        EXPERIMENT + "\nexamples:\n"
        "  discreet run --data fried --policy SquareCB --set scale=4 --epsilon 1 --seeds 10\n"
        "  discreet run experiment.toml --epsilon 4 --out result.json",
    )
    _experiment_flags(run)
    run.add_argument("--out", metavar="FILE", help="also write the JSON result here")

    plan = command(
        commands,
        "plan",
        "plan.plan",
        "what will happen, before any data: batches, noise, cost",
        EXPERIMENT + "\nexamples:\n"
        "  discreet plan --data digits --epsilon 4\n"
        "  discreet plan --actions 3 --dimension 10 --horizon 100000 --epsilon 1",
    )
    _experiment_flags(plan)
    plan.add_argument("--horizon", type=int, metavar="T", help="rounds, if known beforehand")
    plan.add_argument("--actions", type=int, dest="n_actions", metavar="A", help="without data")
    plan.add_argument("--dimension", type=int, metavar="D", help="numbers a context, without data")
    plan.add_argument(
        "--records-per-person", type=int, metavar="K", help="also: what K records of one mean"
    )

    data_commands(command, commands)
    campaign_commands(command, commands)
    service_commands(command, commands)
    traffic_commands(command, commands)
    theory_commands(command, commands)
    audit_commands(command, commands)

    release = command(commands, "release", "", "show or verify a file of releases")
    kinds = release.add_subparsers(dest="kind", metavar="show|verify", required=True)
    for name, summary in (
        ("show", "the plan, each release and what it cost"),
        ("verify", "check every digest and link; exit code 1 if one fails"),
    ):
        example = f"example:\n  discreet release {name} demo/released.json"
        kind = command(kinds, name, f"release.{name}", summary, example)
        kind.add_argument("file", metavar="FILE", help="a file that released.save() wrote")

    command(commands, "version", "version.version", "versions of discreet and of its libraries")
    return parser


def _experiment_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", nargs="?", metavar="experiment.toml", help="keys of a plan, and data, rows, seeds")
    add("--data", metavar="NAME|FILE", help="fried, linear, logistic, digits, …, .npz or .csv")
    add("--rows", type=int, metavar="N", help="size of a generated set")
    add("--policy", metavar="NAME", help=", ".join(POLICIES))
    add("--oracle", metavar="NAME", help=", ".join(ORACLES))
    add("--set", action="append", metavar="KEY=VALUE", help="a parameter; may be repeated")
    add("--epsilon", type=float, metavar="E", help="noise scale; inf for none (default: 1)")
    add("--delta", type=float, metavar="D", help="0 for pure mechanisms (default: 1e-5)")
    add("--seeds", type=int, metavar="N", help="runs, seeded 0 … N−1 (default: 5)")
    import_flag(parser)
    parser.set_defaults(horizon=None, n_actions=None, dimension=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all is well, 2 for an error in one line, 130 after Ctrl-C."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without ε shows "?", and goes on
            stream.reconfigure(errors="replace")
    try:
        return _answer(argv)
    except DiscreetError as error:
        return _complain(str(error), "--json" in argv)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has left: say nothing more, also not while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _complain(f"{error.strerror}: {error.filename}. Check it.", "--json" in argv)


def _answer(argv: list[str]) -> int:
    parser = build_parser()
    if argv and not argv[0].startswith("-"):
        one_of("command", argv[0], COMMANDS)
    args = parser.parse_args(["version"] if argv == ["--version"] else argv)
    if args.command is None:
        parser.print_help()
        return 0
    import_modules(args)
    module, _, function = args.call.partition(".")
    answer = getattr(importlib.import_module(f"discreet.cli.{module}_command"), function)(args)
    if args.json:
        from discreet.cli.answer import as_json

        print(as_json(answer.document))
    else:
        print(answer.text)
    sys.stdout.flush()
    return int(answer.code)


def _complain(message: str, as_json: bool) -> int:
    if as_json:
        import json

        print(json.dumps({"error": message}))
    else:
        print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
