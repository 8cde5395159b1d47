"""Flags that several commands share."""

from __future__ import annotations

import argparse

from discreet.cli.command_line import table
from discreet.errors import InvalidInput
from discreet.plan.registry import ORACLES, POLICIES
from discreet.privacy.budget import USUAL
from discreet.simulate.experiment import DEFAULT, Experiment, assign, experiment_of, read_experiment
from discreet.simulate.plan_forecast import ExpectedRewards
from discreet.text import about, epsilon_text
from discreet.types import JsonObject

EXPERIMENT = """\
An experiment is a TOML file, or flags, or a file that flags correct. The policy is AdaptivePO
and the oracle PooledRidge by default: they need no tuning. --set changes any parameter of the
policy, the oracle and the plan: scale=16, ridge=0.001, mechanism=paper, first_batch=64.
Supervised is --policy Greedy --set feedback=full --set losses=one_label.
"""


def experiment_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that ``discreet run``, ``plan`` and ``import`` share."""
    flag = parser.add_argument
    flag(
        "file",
        nargs="?",
        metavar="experiment.toml",
        help="keys of a plan, and data, rows, seeds; or the file of a service",
    )
    flag("--data", metavar="NAME|FILE", help="fried, linear, logistic, digits, …, .npz or .csv")
    target_flag(parser)
    user_flag(parser)
    schema_flag(parser)
    flag("--rows", type=int, metavar="N", help="size of a generated set")
    flag("--policy", metavar="NAME", help=", ".join(POLICIES))
    flag("--oracle", metavar="NAME", help=", ".join(ORACLES))
    flag(
        "--set", action="append", metavar="KEY=VALUE", help="value of a parameter; may be repeated"
    )
    flag(
        "--epsilon", type=float, metavar="E", help="privacy level ε; inf for no noise (default: 1)"
    )
    flag(
        "--delta",
        type=float,
        metavar="D",
        help="privacy parameter δ; 0 for pure mechanisms (default: 1e-5)",
    )
    flag("--seeds", type=int, metavar="N", help="number of runs, with seeds 0 … N−1 (default: 5)")
    quiet_flag(parser)
    import_flag(parser)
    parser.set_defaults(horizon=None, actions=None, dimension=None)


def target_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the class column of a file."""
    words = "column of the class in a file, by name or by number from 1 (default: the last)"
    parser.add_argument("--target", metavar="COLUMN", help=words)


def schema_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the schema of a file."""
    words = "schema of the columns of a file (default: numbers, unscaled)"
    parser.add_argument("--schema", metavar="FILE.toml", help=words)


def group_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the column by which losses are broken down."""
    words = "public column of a file: also report the loss of each of its groups"
    parser.add_argument("--group", metavar="COLUMN", help=words)


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
    apply_flags(document, args)
    return experiment_of(document, needs_data=needs_data)


def apply_flags(document: JsonObject, args: argparse.Namespace) -> None:
    """Change a document by flags, which take precedence."""
    for name in ("data", "target", "user", "schema", "rows", "seeds", "horizon"):
        if getattr(args, name) is not None:
            document[name] = getattr(args, name)
    if args.actions is not None:  # a count or names, instead of those in the file
        for name in ("n_actions", "actions"):
            document.pop(name, None)
        document["n_actions" if isinstance(args.actions, int) else "actions"] = args.actions
    if args.dimension is not None:
        document["features"] = {"kind": "UnitBall", "dimension": args.dimension}
    for part in DEFAULT:
        if getattr(args, part) is not None:
            document[part] = {"kind": getattr(args, part)}
    if args.epsilon is not None or args.delta is not None:
        known = document.get("budget")
        budget = {"delta": 1e-5, **(known if isinstance(known, dict) else {})}
        given = {"epsilon": args.epsilon, "delta": args.delta}
        document["budget"] = budget | {
            key: value for key, value in given.items() if value is not None
        }
    for assignment in args.set or ():
        assign(document, assignment)


def user_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the column of user ids."""
    words = "column of user ids in a file; ε then protects all records of one user"
    parser.add_argument("--user", metavar="COLUMN", help=words)


def often_flags(parser: argparse.ArgumentParser) -> None:
    """Add flags for the number of contributions of a user, where no plan has them."""
    flag = parser.add_argument
    batches = f"with --user: number of batches in which one user counts (default: {USUAL.batches})"
    flag("--batches-per-user", type=int, metavar="M", help=batches)
    records = f"with --user: records of one user in each batch (default: {USUAL.records})"
    flag("--records-per-batch", type=int, metavar="K", help=records)


def quiet_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--quiet``, for commands that give advice."""
    words = "print no warnings about the data or the plan"
    parser.add_argument("--quiet", action="store_true", help=words)


def import_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--import``, for commands that may use registered policies and oracles."""
    parser.add_argument(
        "--import",
        action="append",
        dest="imports",
        metavar="MODULE",
        help="module that registers policies or oracles, imported first; may be repeated",
    )


def import_modules(args: argparse.Namespace) -> None:
    """Import the modules of ``--import``, before a document is read."""
    for name in getattr(args, "imports", None) or ():
        from discreet.plan.registry import import_module

        import_module(name)


def reward_flags(parser: argparse.ArgumentParser) -> None:
    """Add flags for the mean reward, its spread, its range, and the difference to detect."""
    flag = parser.add_argument
    mean = "expected mean reward: also report how many decisions detect a difference"
    flag("--reward-mean", type=float, metavar="M", help=mean)
    spread = "standard deviation of a reward between decisions (default: that of clicks)"
    flag("--reward-spread", type=float, metavar="S", help=spread)
    ends = "declared range of rewards (default: that of the experiment file, or 0 1)"
    flag("--reward-range", type=float, nargs=2, metavar=("LOW", "HIGH"), help=ends)
    difference = "difference between two actions (default: a tenth of the mean)"
    flag("--difference", type=float, metavar="D", help=difference)


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
            *("–" if size[name] is None else about(size[name]) for name in ("means", "personal")),
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
