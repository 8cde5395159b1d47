"""``discreet data list|show|fetch``: list labelled data sets, describe one, fetch some."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np

from discreet.cli.command_line import Answer, Commands, command, table
from discreet.cli.flags import target_flag
from discreet.types import JsonObject

if TYPE_CHECKING:
    from discreet.data import Dataset

COLUMNS = ("rows", "features", "classes")


def add(commands: Commands) -> None:
    """Add ``list``, ``show`` and ``fetch``."""
    data = command(commands, "data", "list, show or fetch labelled data sets")
    kinds = data.add_subparsers(dest="kind", metavar="list|show|fetch", required=True)
    examples = "examples:\n  discreet data list\n  discreet data list FOLDER"
    listed = command(kinds, "list", "list the available sets", list_, examples)
    listed.add_argument("sources", nargs="*", metavar="SOURCE", help="folder or collection")
    example = "example:\n  discreet data show fried"
    shown = command(kinds, "show", "show size, classes and digest of one set", show, example)
    shown.add_argument("name", metavar="NAME", help="fried, digits, openml:901, a file, DIR:NAME")
    target_flag(shown)
    examples = "examples:\n  discreet data fetch openml:901\n  discreet data fetch paper"
    fetched = command(kinds, "fetch", "download sets from OpenML into the cache", fetch, examples)
    fetched.add_argument("names", nargs="+", metavar="NAME", help="openml:901, or paper for all")


def list_(args: argparse.Namespace) -> Answer:
    """List all data sets without a path, or those of the sources."""
    return _sources(args.sources) if args.sources else _everything()


def show(args: argparse.Namespace) -> Answer:
    """Show size, classes, simple losses and digest of one data set."""
    from discreet.data import load
    from discreet.data.lookup import set_facts

    data = load(args.name, target=args.target)
    counts = np.bincount(data.labels, minlength=data.n_actions)
    names = data.classes or tuple(map(str, range(data.n_actions)))
    classes: list[JsonObject] = [
        {"label": label, "name": name, "rows": int(count)}
        for label, (name, count) in enumerate(zip(names, counts, strict=True))
    ]
    document = {
        **set_facts(data),
        "class_rows": classes,
        "columns": None if data.source is None else list(data.source.titles),
        "target": None if data.source is None else data.source.target,
        "header": None if data.source is None else data.source.header,
        "constant_loss": data.best_fixed,
        "best_loss": data.best_loss,
    }
    rows = [[str(each["label"]), each["name"], f"{each['rows']:,}"] for each in classes]
    best = [] if data.best_loss is None else [f"the best rule has loss {data.best_loss:.4f}"]
    lines = [
        f"{data.name}: {data.rows:,} rows, {data.dimension} features, {data.n_actions} classes",
        *_columns(data),
        "",
        *table(["label", "class", "rows"], rows),
        "",
        f"the most frequent class has loss {document['constant_loss']:.4f}",
        *best,
        f"digest {data.digest}",
    ]
    return Answer(document, "\n".join(lines))


def _columns(data: Dataset) -> list[str]:
    """Return lines about the class column and the header of a file."""
    if data.source is None:
        return []
    source = data.source
    unnamed = "the file has no header: its first line is a record, and its columns have numbers"
    return [
        *([] if source.header else [unnamed]),
        f"the class is {source.target!r}, one of the {len(source.titles) + 1} columns of the file",
    ]


def fetch(args: argparse.Namespace) -> Answer:
    """Read every set once, so that those of OpenML are cached."""
    from discreet.data import resolve
    from discreet.data.lookup import fetch_sets
    from discreet.data.openml import cache_folder

    sets = []
    for each in fetch_sets(resolve(args.names)):
        sets.append(each)
        if not args.json:
            print(f"{each['name']}: {'failed' if each['error'] else 'ready'}", file=sys.stderr)
    failed = [each for each in sets if each["error"]]
    document = {"cache": str(cache_folder()), "sets": sets, "failed": len(failed)}
    lines = [
        *_table([each for each in sets if not each["error"]]),
        *(f"{each['name']}: {each['error']}" for each in failed),
        f"{len(sets) - len(failed)} of {len(sets)} sets are ready; the cache is {cache_folder()}",
    ]
    return Answer(document, "\n".join(lines), code=1 if failed else 0)


def _everything() -> Answer:
    from discreet.data.files import SUFFIXES
    from discreet.data.lookup import all_sets

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
    return Answer(document, "\n".join(lines))


def _sources(sources: list[str]) -> Answer:
    from discreet.data import resolve
    from discreet.data.lookup import known_facts

    sets = [known_facts(handle) for handle in resolve(sources)]
    failed = [each for each in sets if each.get("error")]
    lines = [
        *_table(sets),
        *(f"{each['name']}: {each['error']}" for each in failed),
        f"{len(sets)} set{'s' * (len(sets) != 1)}",
    ]
    return Answer({"sets": sets, "failed": len(failed)}, "\n".join(lines), 1 if failed else 0)


def _table(sets: list[JsonObject]) -> list[str]:
    if not sets:
        return []
    rows = [
        [each["name"], *("–" if each[key] is None else f"{each[key]:,}" for key in COLUMNS)]
        for each in sets
    ]
    return [*table(["set", *COLUMNS], rows), ""]
