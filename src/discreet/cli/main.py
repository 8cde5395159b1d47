"""Entry point of the command line: parse, call, print. Each command has one file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence

from discreet.cli.command_line import Parser, as_json, commands_of, printed_advice
from discreet.errors import DiscreetError
from discreet.validate import one_of

DESCRIPTION = """\
Private contextual bandits: people's data go in, and only what is provably private comes out.

Start with   discreet demo
Then plan    discreet plan --data fried --epsilon 1
and run      discreet run --data fried --policy SquareCB --epsilon 1
"""
COMMANDS = commands_of("")
"""All commands, in the order of the help."""


def build_parser() -> tuple[Parser, Mapping[str, Parser]]:
    """Return the parser and those of the commands; nothing heavy is imported here."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser("discreet", description=DESCRIPTION, formatter_class=raw)
    parser.add_argument("--version", action="store_true", help="the same as: discreet version")
    return parser, parser.add_commands("", title="commands", dest="command", metavar="COMMAND")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all is well, 2 for an error in one line, 130 after Ctrl-C."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without ε shows "?", and goes on
            stream.reconfigure(errors="replace")
    try:
        return _answer(argv)
    except DiscreetError as error:
        message = str(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe: write nothing more, also not while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        message = f"{error.strerror}: {error.filename}. Check the path and the disk."
    if "--json" in argv:
        print(json.dumps({"error": message}))
    else:
        print(f"error: {message}", file=sys.stderr)
    return 2


def _answer(argv: list[str]) -> int:
    parser = build_parser()[0]
    if argv and not argv[0].startswith("-"):
        one_of("command", argv[0], COMMANDS)
    args = parser.parse_args(["version"] if argv == ["--version"] else argv)
    if args.command is None:
        parser.print_help()
        return 0
    for name in getattr(args, "imports", None) or ():  # before a document is read
        from discreet.plan.registry import import_module

        import_module(name)
    with printed_advice(quiet=getattr(args, "quiet", True)):  # other commands give no advice
        answer = args.call(args)
    if args.json:
        print(as_json(answer.document))
    else:
        print(answer.text)
    sys.stdout.flush()
    return int(answer.code)


if __name__ == "__main__":
    raise SystemExit(main())
