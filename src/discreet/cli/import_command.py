"""``discreet import``: a log of earlier decisions, as private batches or as a public prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli import command_line as cli
from discreet.data.parquet_log import ParquetLog
from discreet.errors import InvalidInput
from discreet.learner import Learner
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.simulate.experiment import PlanLog, read_log
from discreet.text import guarantee_text, read_toml
from discreet.validate import installed, whole

if TYPE_CHECKING:
    from discreet.service.settings import Settings

FIXED = ["data", "target", "schema", "rows", "policy", "oracle", "set", "epsilon", "delta", "seeds"]
"""Flags that would change the plan of a service, or have no meaning for it."""
STILL_THERE = "The log itself is still in {}, without protection: delete it, or restrict access."


@cli.command(
    "import",
    *cli.EXPERIMENT_FLAGS,
    cli.flag("--log FILE", "log with one row per decision", required=True),
    cli.flag("--action COLUMN", "column of actions (default: action)", "action"),
    cli.flag(
        "--loss COLUMN", "column of losses (default: loss, or cost in a log of Vowpal Wabbit)"
    ),
    cli.flag("--reward COLUMN", "column of rewards, if the plan declares rewards"),
    cli.flag("--ignore COLUMN", "column that is no feature", str, action="append", default=[]),
    cli.flag("--public", "make a prior without noise; the log must be public"),
    cli.flag("--weight W", "weight of a row of the prior, at most 1 (default: 1)", float),
    cli.flag("--out NAME", "prefix of the output files"),
    cli.flag("--jobs N", "processes that sum up Parquet files (default: 1)", int),
    cli.flag("--scheduler ADDRESS", "Dask cluster that sums them up: tcp://…"),
)
def import_(args: cli.Args) -> cli.Answer:
    """Import a log; all inputs are checked before anything is written."""
    if args.weight is not None and not args.public:
        raise InvalidInput(
            "weight must come with --public; got it alone. Private rows count as all others do: "
            "leave --weight out."
        )
    settings = _service(args)
    stored = settings is not None and not args.public
    if stored != (args.out is None):
        raise InvalidInput(
            f"out must be {'left out: the rows go into a database' if stored else 'a name'}; got "
            f"{'one' if stored else 'none'}. {'Leave --out out.' if stored else 'Add --out NAME.'}"
        )
    user, args.user = args.user, None  # a column of the log, not of data
    if settings is None and user is not None:
        args.set = ["unit=user", *(args.set or ())]
    plan = cli.experiment_from(args).plan if settings is None else settings.plan
    if args.jobs is not None or args.scheduler or "://" in args.log or Path(args.log).is_dir():
        return _from_files(args, plan, private_state=settings is None and not args.public)
    named = {name: getattr(args, name) for name in ("action", "loss", "reward", "ignore")}
    log = read_log(plan, args.log, **named, user=user)
    if args.public:
        return _prior(args, log)
    if settings is not None:
        return _into_service(args, settings, log)
    return _into_state(args, log.learner)


def _service(args: cli.Args) -> Settings | None:
    """Return the settings of a service, if the file has a table for its plan."""
    if not args.file or not isinstance(read_toml(args.file, "experiment").get("plan"), dict):
        return None
    for name in FIXED:
        if getattr(args, name) is not None:
            raise InvalidInput(
                f"--{name} must be left out with the file of a service; got it. The plan of a "
                "service never changes: what the file says counts."
            )
    settings = cli.service_settings(args.file)
    if settings.unit == "user" and args.user is None and not args.public:
        raise InvalidInput(
            "user must name the column of ids where the unit is 'user'; got none. "
            "Add --user COLUMN."
        )
    return settings


def _into_service(args: cli.Args, settings: Settings, log: PlanLog) -> cli.Answer:
    from discreet.service.runtime.bulk import import_log
    from discreet.service.storage.database import storage_errors
    from discreet.service.storage.locations import open_database

    with storage_errors(open_database(settings)):
        batches = import_log(settings, log.rows())
    count = len(log.actions)
    lines = [
        f"{count:,} rows in {batches} sealed batches of {settings.experiment!r}",
        f"next: discreet serve --config {args.file}, which releases them and destroys their keys",
        STILL_THERE.format(args.log),
    ]
    return cli.Answer({"rows": count, "batches": batches}, lines)


def _prior(args: cli.Args, log: PlanLog) -> cli.Answer:
    weight = 1.0 if args.weight is None else args.weight
    prior = log.prior(weight)
    replace(log.plan, prior=prior)  # fails now, if at all
    path = f"{args.out}.prior.json"
    cli.write(path, cli.as_json(to_config(prior)) + "\n")
    use = f"wrote {path}: public, without noise. In an experiment file: prior = {path!r}"
    document = {"records": prior.records, "weight": weight, "files": [path]}
    return cli.Answer(document, [prior.text, use])


def _into_state(args: cli.Args, import_log: Callable[[], Learner]) -> cli.Answer:
    files = [f"{args.out}.state", f"{args.out}.released.json"]
    for path in files:
        if Path(path).exists():
            raise InvalidInput(
                f"out must be a new name; {path} exists. Two imports of one log would publish it "
                "with two draws of noise: continue with the first, or move it away."
            )
    learner = import_log()
    plan, spent = learner.plan, learner.ledger.spent()
    learner.released.save(files[1])
    learner.save(files[0])
    cost = guarantee_text(spent.epsilon, spent.delta)
    lines = [
        f"{plan.imported:,} rows in {plan.schedule.imported_batches} batches: {cost} for one "
        f"{plan.unit}; the rows are not kept.",
        f"wrote {files[0]} (private: Learner.load continues from it) and {files[1]} (public)",
        STILL_THERE.format(args.log),
    ]
    facts = {"rows": plan.imported, "epsilon": spent.epsilon, "delta": spent.delta, "files": files}
    return cli.Answer(facts, lines)


def _from_files(args: cli.Args, plan: Plan, *, private_state: bool) -> cli.Answer:
    """Import a log that stays in its Parquet files."""
    from discreet.lab.campaign.workers import workers

    if not private_state:
        raise InvalidInput(
            "log must be one file for a service or a public prior; got a folder, an address, "
            "--jobs or --scheduler. Import it with --out, and make the releases a prior: "
            "prior_from_released."
        )
    jobs = 1 if args.jobs is None else whole("jobs", args.jobs, 1)
    if jobs > 1:
        installed("campaign", "for --jobs", "joblib")
    log = ParquetLog.of(args.log, args.ignore)
    plan = plan if plan.imported is not None else replace(plan, imported=log.rows)
    loss, reward = args.loss, args.reward
    if loss is None and reward is None:
        loss, reward = ("loss", None) if plan.outcome.word == "loss" else (None, "reward")

    def import_log() -> Learner:
        made = Learner(plan)
        with workers(jobs, args.scheduler) as crew:
            made.import_log(log, args.action, loss, reward=reward, executor=crew)
        return made

    return _into_state(args, import_log)
