"""Entry point of the command line: parse, call, print. Each command has one file.

All files are imported to build the parser, so commands import heavy libraries when called.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence

import discreet
from discreet.cli import (
    audit_command,
    backup_command,
    campaign_command,
    curve_command,
    data_command,
    demo_command,
    experiment_command,
    export_command,
    import_command,
    keys_command,
    label_command,
    ledger_command,
    lift_command,
    members_command,
    observe_command,
    plan_command,
    release_command,
    report_command,
    restore_command,
    run_command,
    schema_command,
    serve_command,
    theory_command,
    traffic_command,
)
from discreet.cli.command_line import (
    RAW,
    Answer,
    Commands,
    Parser,
    as_json,
    command,
    printed_advice,
)
from discreet.cli.flags import import_modules
from discreet.errors import DiscreetError
from discreet.validate import one_of

DESCRIPTION = """\
Private contextual bandits: people's data go in, and only what is provably private comes out.

Start with   discreet demo
Then plan    discreet plan --data fried --epsilon 1
and run      discreet run --data fried --policy SquareCB --epsilon 1
"""
LIBRARIES = ("numpy", "scipy", "opendp", "dp-accounting", "scikit-learn", "matplotlib", "torch")


def version(args: argparse.Namespace) -> Answer:  # noqa: ARG001
    """Report versions of discreet, Python and the libraries, without importing them."""
    libraries = {name: _version_of(name) for name in LIBRARIES}
    python = platform.python_version()
    document = {"discreet": discreet.__version__, "python": python, "libraries": libraries}
    found = ", ".join(f"{name} {number}" for name, number in libraries.items() if number)
    return Answer(document, f"discreet {discreet.__version__} (Python {python}, {found})")


def _version_of(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(name)
    except PackageNotFoundError:
        return None


def _add_version(commands: Commands) -> None:
    command(commands, "version", "print the versions of discreet and its libraries", version)


COMMANDS = (
    demo_command.add,
    run_command.add,
    plan_command.add,
    curve_command.add,
    data_command.add,
    schema_command.add,
    import_command.add,
    campaign_command.add,
    serve_command.add,
    experiment_command.add,
    keys_command.add,
    members_command.add,
    backup_command.add,
    restore_command.add,
    observe_command.add,
    export_command.add,
    traffic_command.add,
    theory_command.add,
    audit_command.add,
    ledger_command.add,
    label_command.add,
    lift_command.add,
    report_command.add,
    release_command.add,
    _add_version,
)
"""Functions that add a command, in the order of the help."""


def build_parser() -> tuple[Parser, Commands]:
    """Return the parser with every command and its flags; nothing heavy is imported here."""
    parser = Parser("discreet", description=DESCRIPTION, formatter_class=RAW)
    parser.add_argument("--version", action="store_true", help="the same as: discreet version")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser, commands


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
        # The reader closed the pipe: write nothing more, also not while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _complain(
            f"{error.strerror}: {error.filename}. Check the path and the disk.",
            "--json" in argv,
        )


def _answer(argv: list[str]) -> int:
    parser, commands = build_parser()
    if argv and not argv[0].startswith("-"):
        one_of("command", argv[0], commands.choices)
    args = parser.parse_args(["version"] if argv == ["--version"] else argv)
    if args.command is None:
        parser.print_help()
        return 0
    import_modules(args)
    with printed_advice(quiet=getattr(args, "quiet", True)):  # other commands give no advice
        answer = args.call(args)
    if args.json:
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
