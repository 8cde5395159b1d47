"""The flags of ``data`` and ``campaign``; ``command`` is the function that adds one."""

from __future__ import annotations

import argparse
from typing import Any

from discreet.cli.own_code import import_flag

CAMPAIGN = """\
A campaign plays a grid of settings on many data sets and keeps every result in a folder. What is
there already is never computed again: run the same command to go on after a stop, or another one
with more seeds, levels, algorithms or data to add them. A TOML file has the same keys as the flags.

examples:
  discreet campaign run --preset quick --data fried digits --out results
  discreet campaign run --preset default --data fried digits --out results
  discreet campaign run --preset paper --data paper --out results --device cuda
  discreet campaign run campaign.toml --seeds 20
"""


def data_commands(command: Any, commands: Any) -> None:
    """``data list|show|fetch``."""
    data = command(commands, "data", "", "list, show or fetch labelled data sets")
    kinds = data.add_subparsers(dest="kind", metavar="list|show|fetch", required=True)
    examples = "examples:\n  discreet data list\n  discreet data list FOLDER"
    listed = command(kinds, "list", "data.list_", "which sets there are", examples)
    listed.add_argument("sources", nargs="*", metavar="SOURCE", help="a folder, a collection, …")
    example = "example:\n  discreet data show fried"
    shown = command(kinds, "show", "data.show", "size, classes and digest of one set", example)
    shown.add_argument("name", metavar="NAME", help="fried, digits, openml:901, a file, DIR:NAME")
    examples = "examples:\n  discreet data fetch openml:901\n  discreet data fetch paper"
    fetched = command(kinds, "fetch", "data.fetch", "get sets from OpenML and keep them", examples)
    fetched.add_argument("names", nargs="+", metavar="NAME", help="openml:901, or paper for all")


def campaign_commands(command: Any, commands: Any) -> None:
    """``campaign run|status|report|compare``."""
    campaign = command(commands, "campaign", "", "thousands of settings on many data sets")
    kinds = campaign.add_subparsers(dest="kind", metavar="run|status|report|compare", required=True)
    run = command(kinds, "run", "campaign.run", "play what is missing", CAMPAIGN)
    _campaign_flags(run)
    told = {
        "status": "what is there, what is missing, what failed",
        "report": "tables, figures and one page from the results",
        "compare": "our win rates beside the paper's",
    }
    for name, summary in told.items():
        example = f"example:\n  discreet campaign {name} results"
        kind = command(kinds, name, f"campaign.{name}", summary, example)
        kind.add_argument("folder", metavar="DIR", help="the --out of campaign run")
        import_flag(kind)
        if name == "report":
            kind.add_argument("--out", metavar="DIR", help="where to write (default: DIR/report)")
            kind.add_argument(
                "--select",
                default="seeds",
                metavar="seeds|split",
                help="choose settings on the seeds that are reported, as the paper does, "
                "or on half of them and report the other half",
            )
            kind.add_argument(
                "--curves",
                nargs="+",
                default=["paper"],
                metavar="NAME",
                help="sets whose curves are drawn: paper (its six), all, or names",
            )
        if name == "compare":
            kind.add_argument("--cells", action="store_true", help="cell by cell as well")


def _campaign_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", nargs="?", metavar="campaign.toml", help="the flags as keys of a file")
    import_flag(parser)
    add("--data", nargs="+", metavar="NAME", help="folders, files, openml:ID, paper, fried, …")
    add("--out", metavar="DIR", help="the folder of results; new, or one to go on with")
    presets = "800 settings a level, a few, or the untuned default plan (default: paper)"
    add("--preset", metavar="paper|quick|default", help=presets)
    add("--algorithms", nargs="+", metavar="NAME", help="default: the paper's eight; also Default")
    add("--epsilon", nargs="+", metavar="E", help="noise scales; inf for none")
    add("--ridges", nargs="+", metavar="R", help="regularisation, λ")
    add("--seeds", type=int, metavar="N", help="0 … N−1 (default: paper 10, quick 3)")
    add("--mechanism", metavar="paper|structured", help="kind of noise (default: paper)")
    add("--device", metavar="auto|numpy|cpu|cuda", help="cpu is torch without a GPU")
    add("--jobs", type=int, metavar="N", help="processes (default: one a core, at most 8 on a GPU)")
    add("--scheduler", metavar="ADDRESS", help="of a Dask cluster: tcp://…")
    add("--max-columns", type=int, metavar="P", help="leave out wider sets")
    add("--memory", type=float, metavar="GIB", help="for all jobs together; default: what is free")
