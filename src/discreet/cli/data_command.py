"""``discreet data list|show|fetch``: list labelled data sets, describe one, fetch some."""

from __future__ import annotations

import sys

import numpy as np

from discreet.cli import command_line as cli
from discreet.data.files import SUFFIXES
from discreet.data.lookup import all_sets, fetch_sets, known_facts, load, resolve, set_facts
from discreet.data.openml import cache_folder
from discreet.types import JsonObject

COLUMNS = ("rows", "features", "classes")


@cli.command("data list", cli.flag("sources SOURCE", "folder or collection", nargs="*"))
def list_(args: cli.Args) -> cli.Answer:
    """List all data sets without a path, or those of the sources."""
    if args.sources:
        return _answer([known_facts(handle) for handle in resolve(args.sources)])
    document = all_sets()
    generated, collections = document["generated"], document["collections"]
    width = max(map(len, (*generated, *collections)))
    lines = [
        "generated, with 20,000 rows, or NAME:ROWS for another number",
        *(f"  {name.ljust(width)}  {about}" for name, about in generated.items()),
        "bundled with scikit-learn",
        f"  {', '.join(document['bundled'])}",
        "collections",
        *(
            f"  {name.ljust(width)}  {each['sets']} sets of OpenML, {each['cached']} fetched"
            for name, each in collections.items()
        ),
        f"fetched from OpenML (openml:NUMBER), in {document['cache']}",
        f"  {', '.join(document['cached']) or 'none yet'}",
        "your own",
        f"  a {SUFFIXES} file; a folder of them; DIR:NAME, one set of a folder; DIR:paper",
    ]
    return cli.Answer(document, lines)


@cli.command(
    "data show", cli.flag("name NAME", "fried, digits, openml:901, a file, DIR:NAME"), cli.TARGET
)
def show(args: cli.Args) -> cli.Answer:
    """Show size, classes, simple losses and digest of one data set."""
    data = load(args.name, target=args.target)
    counts = np.bincount(data.labels, minlength=data.n_actions)
    names = data.classes or tuple(map(str, range(data.n_actions)))
    classes: list[JsonObject] = [
        {"label": label, "name": name, "rows": int(count)}
        for label, (name, count) in enumerate(zip(names, counts, strict=True))
    ]
    source = data.source
    document = {
        **set_facts(data),
        "class_rows": classes,
        "columns": source and list(source.titles),
        "target": source and source.target,
        "header": source and source.header,
        "constant_loss": data.best_fixed,
        "best_loss": data.best_loss,
    }
    lines = [
        f"{data.name}: {data.rows:,} rows, {data.dimension} features, {data.n_actions} classes"
    ]
    if source is not None:
        if not source.header:
            lines.append(
                "the file has no header: its first line is a record, and its columns have numbers"
            )
        count = len(source.titles) + 1
        lines.append(f"the class is {source.target!r}, one of the {count} columns of the file")
    rows = [[str(each["label"]), each["name"], each["rows"]] for each in classes]
    lines += ["", *cli.table(["label", "class", "rows"], rows), ""]
    lines.append(f"the most frequent class has loss {data.best_fixed:.4f}")
    if data.best_loss is not None:
        lines.append(f"the best rule has loss {data.best_loss:.4f}")
    return cli.Answer(document, [*lines, f"digest {data.digest}"])


@cli.command("data fetch", cli.flag("names NAME", "openml:901, or paper for all", nargs="+"))
def fetch(args: cli.Args) -> cli.Answer:
    """Read every set once, so that those of OpenML are cached."""
    sets = []
    for each in fetch_sets(resolve(args.names)):
        sets.append(each)
        if not args.json:
            print(f"{each['name']}: {'failed' if each['error'] else 'ready'}", file=sys.stderr)
    return _answer(sets, cache=str(cache_folder()))


def _answer(sets: list[JsonObject], **more: str) -> cli.Answer:
    """Return a table of sets, and the errors of those that cannot be read."""
    failed = [each for each in sets if each.get("error")]
    rows = [
        [each["name"], *map(each.get, COLUMNS)] for each in sets if not (each.get("error") and more)
    ]
    lines = [*cli.table(["set", *COLUMNS], rows), ""] if rows else []
    lines += [f"{each['name']}: {each['error']}" for each in failed]
    if more:
        ready = len(sets) - len(failed)
        lines.append(f"{ready} of {len(sets)} sets are ready; the cache is {more['cache']}")
    else:
        lines.append(f"{len(sets)} set{'s' * (len(sets) != 1)}")
    return cli.Answer({**more, "sets": sets, "failed": len(failed)}, lines, int(bool(failed)))
