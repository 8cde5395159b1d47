"""``discreet schema``: a first schema from a public sample, with comments."""

from __future__ import annotations

from pathlib import Path

from discreet.adapters.personalizer import draft_experiment
from discreet.cli import command_line as cli
from discreet.data.files import sample_columns
from discreet.features.schema_file import HEAD, draft_text, schema_of, suggestions
from discreet.plan.config import to_config
from discreet.types import JsonMapping
from discreet.validate import one_of


@cli.command(
    "schema",
    cli.flag("sample SAMPLE", ".csv or .parquet, or requests in .jsonl"),
    cli.flag("--without COLUMN", "columns that are no part of the context", nargs="+", default=[]),
    cli.flag("--out FILE", "output file; an existing file is not overwritten"),
)
def schema(args: cli.Args) -> cli.Answer:
    """Suggest a field for every column."""
    if Path(args.sample).suffix == ".jsonl":
        return _experiment(args)
    columns = sample_columns(args.sample)
    for name in args.without:
        one_of("--without", name, columns)
    found = suggestions({name: columns[name] for name in columns if name not in args.without})
    made = schema_of(found)
    left_out = [each.name for each in found if each.field is None]
    document = {
        "format": "discreet-schema-sample/1",
        "schema": to_config(made),
        "features": made.p,
        "reasons": {each.name: each.reason for each in found},
        "left_out": left_out,
    }
    counts = f": {len(made.fields)} columns with {made.p} features; {len(left_out)} left out"
    text = draft_text(found, HEAD.format(sample=Path(args.sample).name))
    return _written(args, document, text, counts)


def _experiment(args: cli.Args) -> cli.Answer:
    draft = draft_experiment(args.sample)
    text = draft.experiment()
    parts = {"contexts": draft.contexts, "actions": draft.actions}
    document = {
        "format": "discreet-experiment-sample/1",
        "experiment": text,
        "reasons": {part: {each.name: each.reason for each in parts[part]} for part in parts},
    }
    return _written(args, document, text)


def _written(args: cli.Args, document: JsonMapping, text: str, counts: str = "") -> cli.Answer:
    if args.out is None:
        return cli.Answer(document, text.rstrip("\n"))
    cli.write(args.out, text, keep=True)
    return cli.Answer(
        document, f"written to {args.out}{counts}\nRead it and correct it before you use it."
    )
