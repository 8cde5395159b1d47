"""Commands as data, the flags that they share, their parser, and their output."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.data.files import is_file_name
from discreet.errors import InvalidInput
from discreet.plan.registry import ORACLES, POLICIES
from discreet.privacy.budget import USUAL
from discreet.simulate.experiment import DEFAULT, Experiment, assign, experiment_of, read_experiment
from discreet.simulate.plan_forecast import ExpectedRewards
from discreet.text import Advice, about, epsilon_text, read_toml
from discreet.types import JsonMapping, JsonObject
from discreet.validate import installed, nearest, writable

if TYPE_CHECKING:
    from discreet.service.settings import Settings


@dataclass(frozen=True)
class Answer:
    """Result of a command: ``--json`` prints ``document``, otherwise ``lines`` are printed."""

    document: JsonMapping
    lines: str | Sequence[str]
    code: int = 0

    @property
    def text(self) -> str:
        """The lines as one text."""
        return self.lines if isinstance(self.lines, str) else "\n".join(self.lines)


HELP = read_toml(Path(__file__).with_name("help.toml"), "help")
"""Summary and text of each command."""
Flag = tuple[str, dict[str, Any]]


def flag(name: str, help: str, kind: Any = str, **options: Any) -> Flag:
    """Return a flag as data: ``--rate R`` has a value, ``--quick`` none, ``file FILE`` no name.

    ``kind`` is the type of the value, or its default.
    """
    name, _, metavar = name.partition(" ")
    if not metavar:
        return name, {"help": help, "action": "store_true"}
    known = {"type": kind} if isinstance(kind, type) else {"type": type(kind), "default": kind}
    return name, {"help": help, "metavar": metavar, **known, **options}


Args = argparse.Namespace
Call = Callable[[Args], Answer]
COMMANDS: dict[str, tuple[Call, Sequence[Flag]]] = {}
"""Functions and flags of the commands whose files are imported, by name."""


def command(name: str, *flags: Flag) -> Callable[[Call], Call]:
    """Register a function and its flags as a command."""

    def registered(call: Call) -> Call:
        COMMANDS[name] = call, flags
        return call

    return registered


FILES = {"members": "keys", "restore": "backup", "export": "backup", "simulate-traffic": "traffic"}
"""Files of commands that are not called like them."""
EXTRAS = dict.fromkeys(
    ("serve", "experiment", "keys", "backup"),
    ("serve", "argon2", "jinja2", "msgspec", "prometheus_client", "starlette", "uvicorn"),
) | {
    "campaign": ("campaign", "pyarrow", "joblib", "sklearn", "matplotlib", "jinja2"),
    **dict.fromkeys(("demo", "report", "label"), ("campaign", "matplotlib", "jinja2")),
}
"""Extra and libraries that a file of commands imports."""


class Parser(argparse.ArgumentParser):
    """Parser of a command; its file is imported when the command is used or explained.

    Errors are ``InvalidInput``, so that ``--json`` covers them too.
    """

    pending = ""
    """Name of a command whose flags are not added yet."""

    def _complete(self) -> None:
        name, self.pending = self.pending, ""
        if not name:
            return
        first = name.split()[0]
        file = FILES.get(first, first)
        if file in EXTRAS:
            extra, *libraries = EXTRAS[file]
            installed(extra, f"for discreet {first}", *libraries)
        import_module(f"discreet.cli.{file}_command")
        call, flags = COMMANDS[name]
        self.set_defaults(call=call)
        for each, options in flags:
            self.add_argument(each, **options)

    def format_help(self) -> str:
        self._complete()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        message = message if message.endswith("?") else f"{message}."
        raise InvalidInput(
            f"arguments must be those of {self.prog}; {message} See {self.prog} --help."
        )

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Refuse an unknown flag, with the nearest flag of the same command."""
        self._complete()
        found, unknown = super().parse_known_args(*args, **options)
        if unknown:
            near = nearest(unknown[0], self._option_string_actions)
            hint = f". {near}" if near.startswith("Did") else ""
            self.error(f"got {unknown[0]!r}{hint}")
        return found, unknown

    def add_commands(self, group: str, **options: Any) -> Mapping[str, Parser]:
        """Add the commands of a group, each with ``--json``; return their parsers by name."""
        parsers = self.add_subparsers(**options)
        for name in commands_of(group):
            path = f"{group} {name}".strip()
            summary = HELP[path]["summary"]
            added: Parser = parsers.add_parser(
                name,
                help=summary,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                description=f"{summary[0].upper()}{summary[1:]}.",
                epilog=HELP[path].get("text", ""),
            )
            words = "print one JSON object and nothing else"
            added.add_argument("--json", action="store_true", help=words)
            if kinds := commands_of(path):
                names = "|".join(kinds)
                added.add_commands(path, dest="kind", metavar=names, required=True)
            else:
                added.pending = path
        return parsers.choices


def commands_of(group: str) -> list[str]:
    """Return the names of the commands in a group; those of "" are all commands."""
    paths = [path.split() for path in HELP]
    return [path[-1] for path in paths if path[:-1] == group.split()]


def as_json(document: JsonMapping) -> str:
    """Return one JSON object in ASCII; ε = ∞ is the word "inf", since JSON has no infinity."""
    return json.dumps(_plain(document), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def write(path: str | Path, content: str | bytes, *, keep: bool = False) -> None:
    """Write a file, or raise an error that names it; with ``keep`` never over another file."""
    data = content.encode() if isinstance(content, str) else content
    with writable(path), Path(path).open("xb" if keep else "wb") as file:
        file.write(data)


def folder(path: str) -> Path:
    """Make a folder for output, or raise an error that names it."""
    with writable(path):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a text table, the first column left-aligned, the others right-aligned."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return "  ".join(padded).rstrip()

    return [line(header), "  ".join("─" * width for width in widths), *map(line, cells)]


def _cell(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def progress(line: str, *, last: bool = False) -> None:
    """Show a line on a terminal, in place of the one before."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        shown = line[:width].ljust(width)
        print(f"\r{shown}", end="\n" * last, file=sys.stderr, flush=True)


@contextmanager
def printed_advice(quiet: bool) -> Iterator[None]:
    """Print each advice once as ``warning: …``, without file and source; none if ``quiet``."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if not issubclass(category, Advice):
                usual(message, category, *place, **more)
            elif str(message) not in printed:
                printed.add(str(message))
                print(f"warning: {message}", file=sys.stderr)

        warnings.showwarning = show
        warnings.simplefilter("ignore" if quiet else "always", Advice)
        yield


TARGET = flag("--target COLUMN", "class column of a file, by name or number from 1 (default: last)")
USER = flag("--user COLUMN", "column of user ids in a file; ε then protects all records of a user")
SCHEMA = flag("--schema FILE.toml", "schema of the columns of a file (default: numbers, unscaled)")
GROUP = flag("--group COLUMN", "public column of a file: also report the loss of each group")
QUIET = flag("--quiet", "print no warnings about the data or the plan")
IMPORT = flag(
    "--import MODULE", "module that registers policies or oracles", action="append", dest="imports"
)
OFTEN_FLAGS = (
    flag("--batches-per-user M", f"batches in which a user counts (default: {USUAL.batches})", int),
    flag("--records-per-batch K", f"records of a user in a batch (default: {USUAL.records})", int),
)
"""The number of contributions of a user, where no plan has it."""
EXPERIMENT_FLAGS = (
    flag("file experiment.toml", "keys of a plan, and data, rows, seeds", nargs="?"),
    flag("--data NAME|FILE", "fried, linear, logistic, digits, …, .npz or .csv"),
    *(TARGET, USER, SCHEMA),
    flag("--rows N", "size of a generated set", int),
    flag("--policy NAME", ", ".join(POLICIES)),
    flag("--oracle NAME", ", ".join(ORACLES)),
    flag("--set KEY=VALUE", "value of a parameter; may be repeated", action="append"),
    flag("--epsilon E", "privacy level ε; inf for no noise (default: 1)", float),
    flag("--delta D", "privacy parameter δ; 0 for pure mechanisms (default: 1e-5)", float),
    flag("--seeds N", "number of runs, with seeds 0 … N−1 (default: 5)", int),
    *(QUIET, IMPORT),
)
REWARD_FLAGS = (
    flag("--reward-mean M", "mean reward: report how many decisions show a difference", float),
    flag("--reward-spread S", "standard deviation of a reward (default: that of clicks)", float),
    flag(
        "--reward-range R",
        "range of rewards (default: 0 1)",
        float,
        nargs=2,
        metavar=("LOW", "HIGH"),
    ),
    flag("--difference D", "difference between two actions (default: a tenth of the mean)", float),
)
CONFIG = flag("--config FILE", "settings of the service (default: %(default)s)", "experiment.toml")
SERVICE_FOLDER = flag("--folder DIR", "folder of a server: its keys, members or experiments")


def service_settings(path: str) -> Settings:
    """Return the settings in the file of a service."""
    extra, *libraries = EXTRAS["serve"]
    installed(extra, "to serve", *libraries)
    from discreet.service.settings import Settings

    return Settings.read(path)


def experiment_from(args: Args, *, needs_data: bool = False) -> Experiment:
    """Return the experiment of ``discreet run``, which needs data, or of ``discreet plan``."""
    if args.file and is_file_name(args.file):
        raise InvalidInput(
            f"experiment file must be TOML; got {args.file!r}. For data write --data {args.file}."
        )
    usual: JsonObject = {"budget": {"epsilon": 1.0, "delta": 1e-5}}
    document = read_experiment(args.file) if args.file else usual
    given = {name: value for name, value in vars(args).items() if value is not None}
    for name in ("data", "target", "user", "schema", "rows", "seeds", "horizon"):
        if name in given:
            document[name] = given[name]
    if "actions" in given:  # a count or names, instead of those in the file
        for name in ("n_actions", "actions"):
            document.pop(name, None)
        document["n_actions" if isinstance(args.actions, int) else "actions"] = args.actions
    if "dimension" in given:
        document["features"] = {"kind": "UnitBall", "dimension": args.dimension}
    for part in DEFAULT:
        if part in given:
            document[part] = {"kind": given[part]}
    if budget := {name: given[name] for name in ("epsilon", "delta") if name in given}:
        known = document.get("budget")
        document["budget"] = {"delta": 1e-5, **(known if isinstance(known, dict) else {}), **budget}
    for assignment in args.set or ():
        assign(document, assignment)
    return experiment_of(document, needs_data=needs_data)


def expected_rewards(args: Args) -> ExpectedRewards | None:
    """Return the rewards that the flags describe; None without a mean."""
    others = ("reward_spread", "reward_range", "difference")
    given = [name for name in others if getattr(args, name) is not None]
    if args.reward_mean is None and given:
        raise InvalidInput(
            f"reward_mean must be given where {given[0]} is; got none. Add --reward-mean M."
        )
    if args.reward_mean is None:
        return None
    return ExpectedRewards(args.reward_mean, *(getattr(args, name) for name in others))


def reward_lines(rewards: JsonObject | None) -> list[str]:
    """Return a table with a line per ε, and the numbers that it follows from."""
    if rewards is None:
        return []
    rows = [
        [
            epsilon_text(size["epsilon"]),
            *(n if n is None else about(n) for n in (size["means"], size["personal"])),
        ]
        for size in rewards["sample_sizes"]
    ]
    low, high = rewards["range"]
    return [
        f"Decisions until a difference of {rewards['difference']:.4g} between two actions can be "
        "detected",
        f"(rewards in [{low:g}, {high:g}] with mean {rewards['mean']:.4g} and spread "
        f"{rewards['spread']:.4g}; level 5 %, power 80 %):",
        "",
        *table(["ε", "means of actions", "personal predictions"], rows),
        "",
    ]
