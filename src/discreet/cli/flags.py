"""Flags that several commands share, and what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from discreet.cli.command_line import flag, table
from discreet.errors import InvalidInput
from discreet.plan.registry import ORACLES, POLICIES
from discreet.privacy.budget import USUAL
from discreet.simulate.experiment import DEFAULT, Experiment, assign, experiment_of, read_experiment
from discreet.simulate.plan_forecast import ExpectedRewards
from discreet.text import about, epsilon_text
from discreet.types import JsonObject
from discreet.validate import installed

if TYPE_CHECKING:
    from discreet.service.settings import Settings

EXPERIMENT = """\
An experiment is a TOML file, or flags, or a file that flags correct. The policy is AdaptivePO
and the oracle PooledRidge by default: they need no tuning. --set changes any parameter of the
policy, the oracle and the plan: scale=16, ridge=0.001, mechanism=paper, first_batch=64.
Supervised is --policy Greedy --set feedback=full --set losses=one_label.
"""
TARGET = flag(
    "--target COLUMN", "column of the class in a file, by name or by number from 1 (default: last)"
)
USER = flag("--user COLUMN", "column of user ids in a file; ε then protects all records of a user")
SCHEMA = flag("--schema FILE.toml", "schema of the columns of a file (default: numbers, unscaled)")
GROUP = flag("--group COLUMN", "public column of a file: also report the loss of each group")
QUIET = flag("--quiet", "print no warnings about the data or the plan")
IMPORT = flag(
    "--import MODULE",
    "module that registers policies or oracles, imported first; may be repeated",
    action="append",
    dest="imports",
)
OFTEN_FLAGS = (
    flag(
        "--batches-per-user M",
        f"with --user: number of batches in which one user counts (default: {USUAL.batches})",
        int,
    ),
    flag(
        "--records-per-batch K",
        f"with --user: records of one user in each batch (default: {USUAL.records})",
        int,
    ),
)
"""The number of contributions of a user, where no plan has it."""
EXPERIMENT_FLAGS = (
    flag(
        "file experiment.toml",
        "keys of a plan, and data, rows, seeds; or the file of a service",
        nargs="?",
    ),
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
    flag(
        "--reward-mean M",
        "expected mean reward: also report how many decisions detect a difference",
        float,
    ),
    flag("--reward-spread S", "standard deviation of a reward (default: that of clicks)", float),
    flag(
        "--reward-range R",
        "declared range of rewards (default: that of the experiment file, or 0 1)",
        float,
        nargs=2,
        metavar=("LOW", "HIGH"),
    ),
    flag("--difference D", "difference between two actions (default: a tenth of the mean)", float),
)
CONFIG = flag("--config FILE", "settings of the service (default: %(default)s)", "experiment.toml")
SERVICE_FOLDER = flag("--folder DIR", "folder of a server: its keys, members or experiments")


def need_extra() -> None:
    """Refuse a command on a service where its libraries are missing."""
    libraries = ("argon2", "jinja2", "msgspec", "prometheus_client", "starlette", "uvicorn")
    installed("serve", "to serve", *libraries)


def service_settings(args: argparse.Namespace) -> Settings:
    """Return the settings in the file of ``--config``."""
    need_extra()
    from discreet.service.settings import Settings

    return Settings.read(args.config)


def experiment_from(args: argparse.Namespace, *, needs_data: bool = False) -> Experiment:
    """Return the experiment of ``discreet run``, which needs data, or of ``discreet plan``."""
    from discreet.data.files import is_file_name

    document: JsonObject = {"budget": {"epsilon": 1.0, "delta": 1e-5}}
    if args.file and is_file_name(args.file):
        raise InvalidInput(
            f"experiment file must be TOML; got {args.file!r}. For data write --data {args.file}."
        )
    if args.file:
        document = read_experiment(args.file)
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


def import_modules(args: argparse.Namespace) -> None:
    """Import the modules of ``--import``, before a document is read."""
    for name in getattr(args, "imports", None) or ():
        from discreet.plan.registry import import_module

        import_module(name)


def expected_rewards(args: argparse.Namespace) -> ExpectedRewards | None:
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
