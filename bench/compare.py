"""Two commits side by side: every benchmark that prints a rate, in turns, with intervals.

    python bench/compare.py BASE [--only decide serve] [--rounds 9] [--data FOLDER]

BASE is a commit; the other side is this checkout as it is. The scripts are those of this checkout
on both sides, so that only the package differs, and the two take turns, so that a slow moment of
the machine affects both. A script prints one JSON object last (``--json``); keys that end in "/s"
are rates. A ratio above 1 means that this checkout is faster. The intervals hold together with
95 %, so one that excludes 1 is no chance; the exit status is 1 if a rate fell.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

HERE = Path(__file__).resolve().parent
BENCHMARKS: dict[str, list[str]] = {
    "decide": ["--rows", "2048"],
    "schema": ["--rows", "1024", "--frame", "20000"],
    "evaluate": ["--rates"],
    "bonus": ["--quick"],
    "serve": ["--seconds", "8"],
    "campaign": ["--sets", "phoneme", "fried", "--every", "7", "--seeds", "2"],
}
"""Scripts and how they are called here: short, since rounds say more than length."""
NEED_DATA = {"campaign"}
SLIP = 1.05
"""What must be seen: intervals wider than this need more rounds."""


class Ratio(NamedTuple):
    """How much faster this checkout is, and where that lies with the stated certainty."""

    middle: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        if self.high < 1.0:
            return "slower"
        if self.low > 1.0:
            return "faster"
        wide = self.high > self.middle * SLIP
        return "unclear: more rounds" if wide else "the same"


def ratio_of(pairs: list[tuple[float, float]], error: float = 0.05) -> Ratio:
    """Student's interval for the mean of log(new/base) over pairs (base, new) of one round."""
    logs = np.log([new / base for base, new in pairs])
    middle, count = float(logs.mean()), len(logs)
    if count < 2:
        return Ratio(math.exp(middle), 0.0, math.inf)
    reach = stats.t.ppf(1.0 - error / 2.0, count - 1) * logs.std(ddof=1) / math.sqrt(count)
    return Ratio(*(math.exp(middle + each) for each in (0.0, -reach, reach)))


def compared(pairs: Mapping[str, list[tuple[float, float]]]) -> dict[str, Ratio]:
    """A ratio for each rate; the allowed error is shared out among them."""
    return {name: ratio_of(each, 0.05 / len(pairs)) for name, each in pairs.items()}


def rates(script: Path, words: list[str], source: Path) -> dict[str, float]:
    """The rates that a script prints with the package of one checkout."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, str(script), *words, "--json"]
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
    if made.returncode:
        raise SystemExit(f"{script.name} failed with {source}:\n{made.stderr[-2000:]}")
    printed = json.loads(made.stdout.splitlines()[-1])
    return {name: value for name, value in printed.items() if name.endswith("/s")}


def in_turns(
    script: Path, words: list[str], base: Path, new: Path, rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Pairs of rates (base, new), one per round; who begins changes with every round."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        sides = [base, new] if number % 2 == 0 else [new, base]
        told = {side: rates(script, words, side) for side in sides}
        for name in told[base].keys() & told[new].keys():
            pairs.setdefault(f"{script.stem}: {name}", []).append(
                (told[base][name], told[new][name])
            )
    return dict(sorted(pairs.items()))


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """The files of a commit, in a folder that is removed afterwards."""
    git = ["git", "-C", str(HERE)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "base"
        subprocess.run([*git, "worktree", "add", "-q", "--detach", place, commit], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", place], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, help="some of the benchmarks")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--data", help="a folder of .npz files (X, y), for the campaign")
    arguments = parser.parse_args()
    needless = set() if arguments.data else NEED_DATA
    names = arguments.only or [name for name in BENCHMARKS if name not in needless]
    pairs: dict[str, list[tuple[float, float]]] = {}
    with worktree(arguments.base) as base:
        for name in names:
            data = ["--data", str(Path(arguments.data or ".").resolve())] * (name in NEED_DATA)
            sides = base / "src", HERE.parent / "src"
            script, words = HERE / f"{name}.py", BENCHMARKS[name] + data
            pairs |= in_turns(script, words, *sides, arguments.rounds)
            print(f"{name}: {arguments.rounds} rounds done", file=sys.stderr, flush=True)
    found = compared(pairs)
    for name, (middle, low, high) in found.items():
        before, verdict = np.median([base for base, _ in pairs[name]]), found[name].verdict
        print(f"{name:40} {before:14,.0f}  × {middle:.3f}  [{low:.3f}, {high:.3f}]  {verdict}")
    raise SystemExit(any(each.verdict == "slower" for each in found.values()))


if __name__ == "__main__":
    main()
