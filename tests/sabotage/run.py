"""Applies every fault to a copy of the source, one at a time, and sees who notices.

    PYTHONPATH=tests python -m sabotage.run [--page FILE] [words of a name ...]

First all named checks run on the source as it is: if one fails there, noticing means nothing. They
also leave bytecode, which the copies share. A fault is caught when the first of its tests fails.
Exit code 1 if a fault is missed, does not apply any more, or the checks fail without one.
"""

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from sabotage.faults import FAULTS, Edit, Fault

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
CLIENTS = "clients"
"""Faults of the JavaScript clients are put into a copy of this folder, beside the copy of src/."""
AT_ONCE = 2
TOO_LONG = 1800
"""Seconds after which a check is ended; what does not come back has not noticed."""
AUDIT = "from discreet.cli.main import main; raise SystemExit(main())"
_UNFIT = re.compile(
    r"NameError: .*|TypeError: \S+\(\) (?:got an unexpected|missing \d+ required|takes \d+).*"
)
"""What a patch says that no longer fits the source around it: whoever notices that notices no
fault."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) tests/(\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Seen:
    """What one kind of check said: the names of those that failed, and whether they ran at all."""

    failed: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class Row:
    """One fault, and who noticed."""

    fault: Fault
    tests: Seen
    audit: Seen
    seconds: float

    @property
    def missed(self) -> bool:
        unseen = not self.tests.failed or (self.fault.audit and not self.audit.failed)
        return bool(unseen or self.tests.trouble or self.audit.trouble)


def patched(text: str, edit: Edit) -> str:
    """The text of a file with the edit; its old part must occur exactly once in the place."""
    start, end = 0, len(text)
    if not is_file(edit.place):
        [(start, end)] = [each for name, each in spans(text) if name == local(edit.place)]
    found = text.count(edit.old, start, end)
    if found != 1:
        raise LookupError(f"{edit.place}: {edit.old!r} must occur once; it occurs {found} times")
    return text[:start] + text[start:end].replace(edit.old, edit.new) + text[end:]


def apply(fault: Fault, source: Path) -> None:
    """Write the fault into a copy of src/."""
    for edit in fault.edits:
        path = file_of(edit, source)
        path.write_text(patched(path.read_text(), edit))
        for stale in path.parent.glob(f"__pycache__/{path.stem}.*"):
            stale.unlink()  # it might be of the same second and size


def is_file(place: str) -> bool:
    return place.endswith((".py", ".js", ".mjs"))


def local(place: str) -> str:
    """The name of a definition inside of its module."""
    return place.rpartition(":")[2]


def file_of(edit: Edit, source: Path) -> Path:
    """The file of a copy of src/ that an edit changes; exactly one has the place."""
    if edit.place.startswith(f"{CLIENTS}/"):
        return source.parent / edit.place
    if is_file(edit.place):
        found = list(SOURCE.rglob(Path(edit.place).name))
    else:
        module = edit.place.rpartition(":")[0]
        found = [path for path in files_with(local(edit.place)) if module in ("", path.stem)]
    if len(found) != 1:
        raise LookupError(f"{edit.place} must be in one file; it is in {len(found)} files")
    return source / found[0].relative_to(SOURCE)


def files_with(name: str) -> list[Path]:
    """The files that define a qualified name."""
    plain = re.compile(rf"\b(?:def|class) {name.rpartition('.')[2]}\b")
    return [
        path
        for path, text in texts().items()
        if plain.search(text) and any(each == name for each, _ in spans(text))
    ]


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def spans(text: str) -> list[tuple[str, tuple[int, int]]]:
    """Qualified names of all definitions, with where their code begins and ends."""
    lines = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    found = []

    def walk(node: ast.AST, before: str) -> None:
        for each in ast.iter_child_nodes(node):
            name = before
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{before}{each.name}"
                first = min([each.lineno, *(one.lineno for one in each.decorator_list)])
                found.append((name, (lines[first - 1], lines[each.end_lineno or first])))
                name += "."
            walk(each, name)

    walk(ast.parse(text), "")
    return found


def run(source: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(source),
        "DISCREET_TESTS_CLIENTS": str(source.parent / CLIENTS),
        "PYTHONDONTWRITEBYTECODE": "",
        **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    }
    environment.pop("DISCREET_TESTS_WHEEL", None)
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TOO_LONG,
        check=False,
    )


def ask_tests(source: Path, selections: Iterable[str], how: Iterable[str] = ("-x",)) -> Seen:
    chosen = [f"tests/{each}" for each in selections]
    options = ["-q", "-rfE", "-m", "not long", "-p", "no:cacheprovider", "-p", "no:doctest"]
    try:
        done = run(source, ["-m", "pytest", *options, *how, *chosen])
    except subprocess.TimeoutExpired:
        return Seen(trouble="the tests did not end")
    if done.returncode not in (0, 1):  # neither passed nor failed: nothing was collected, …
        return Seen(trouble=f"pytest ended with {done.returncode}: {done.stdout[-300:]}")
    return noticed(_FAILED.findall(done.stdout), done.stdout)


def ask_audit(source: Path, *asked: tuple[str, str] | None, jobs: int = 1) -> Seen:
    """A quick audit of some (mechanism, part): all of these mechanisms, all of these parts."""
    named = list(filter(None, asked))
    if not named:
        return Seen()
    mechanisms, parts = (dict.fromkeys(each) for each in zip(*named, strict=True))
    words = [part.replace(" ", "-") for part in parts]  # as the command spells them
    chosen = ["--mechanism", *mechanisms, "--part", *words]
    command = ["-c", AUDIT, "audit", "--quick", "--json", "--jobs", str(jobs), *chosen]
    try:
        done = run(source, command)
    except subprocess.TimeoutExpired:
        return Seen(trouble="the audit did not end")
    if done.returncode not in (0, 1) or not done.stdout:
        return Seen(trouble=f"discreet audit ended with {done.returncode}: {done.stderr[-300:]}")
    findings = json.loads(done.stdout)["findings"]
    failed = [each for each in findings if each["verdict"] == "FAILS"]
    said = "\n".join(each["said"] for each in failed)
    return noticed([each["question"] for each in failed], said)


def noticed(failed: Iterable[str], said: str) -> Seen:
    """Those who failed, unless what they said is that the patch cannot run."""
    unfit = _UNFIT.search(said)
    return Seen(tuple(dict.fromkeys(failed)), f"the patch cannot run: {unfit[0]}" if unfit else "")


def tried(fault: Fault) -> Row:
    """One fault in a folder of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        half_written = shutil.ignore_patterns("*.pyc.*")  # bytecode that somebody makes just now
        shutil.copytree(SOURCE, source, ignore=half_written)
        left = shutil.ignore_patterns("node_modules")
        shutil.copytree(ROOT / CLIENTS, source.parent / CLIENTS, ignore=left)
        try:
            apply(fault, source)
        except LookupError as error:
            return Row(fault, Seen(trouble=str(error)), Seen(), 0.0)
        tests, audit = ask_tests(source, fault.tests), ask_audit(source, fault.audit)
    return Row(fault, tests, audit, time.monotonic() - began)


def clean(faults: list[Fault]) -> list[str]:
    """What the named checks find in the source as it is: nothing, or the table means nothing."""
    tests = dict.fromkeys(each for fault in faults for each in fault.tests)
    audits = dict.fromkeys(fault.audit for fault in faults)
    together = ("-n", str(AT_ONCE))
    seen = ask_tests(SOURCE, tests, together), ask_audit(SOURCE, *audits, jobs=AT_ONCE)
    return [said for each in seen for said in (*each.failed, each.trouble) if said]


def table(rows: list[Row]) -> list[str]:
    """Markdown."""
    lines = ["| fault | what it makes false | tests | audit | s |", "|---|---|---|---|---:|"]
    for row in rows:
        audit = _who(row.audit, str) if row.fault.audit else "–"
        cells = row.fault.name, row.fault.claim, _who(row.tests, _test_name), audit
        lines.append(f"| {' | '.join(cells)} | {row.seconds:.0f} |")
    return lines


def _who(seen: Seen, name: Callable[[str], str]) -> str:
    if seen.trouble:
        return f"**TROUBLE** {' '.join(seen.trouble.split())}".replace("|", "/")
    names = list(dict.fromkeys(map(name, seen.failed))) or ["**MISSED**"]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _test_name(node: str) -> str:
    return f"`{node.rpartition('::')[2]}`"


PAGE = """# Sabotage

For contributors and reviewers: do the tests catch what they should?

{rows} faults, each a small patch of the source \
([tests/sabotage/faults.py](../../../tests/sabotage/faults.py)), applied one at a time to a copy. \
Tests must fail, and so must a quick audit; a dash stands where no release shows the fault. The \
first test that fails is named: others may follow. All of these checks pass on the source as it is.

**{caught} caught, {missed} missed**, in {minutes:.0f} minutes, {at_once} at a time. \
`make sabotage` makes this page again. [What an audit asks](../../audit.md).

{table}
"""


def page(rows: list[Row], seconds: float) -> str:
    missed = sum(row.missed for row in rows)
    counts = {"rows": len(rows), "caught": len(rows) - missed, "missed": missed}
    shown = {"minutes": seconds / 60, "at_once": AT_ONCE, "table": "\n".join(table(rows))}
    return PAGE.format(**counts, **shown)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("words", nargs="*", help="only faults whose names hold one of these")
    parser.add_argument("--page", type=Path, help="write the table there")
    given = parser.parse_args(arguments)
    words = given.words
    chosen = [each for each in FAULTS if not words or any(word in each.name for word in words)]
    began = time.monotonic()
    print(f"the checks of {len(chosen)} faults, without a fault", flush=True)
    if broken := clean(chosen):
        print("they fail: " + "; ".join(broken), file=sys.stderr)
        return 1
    rows = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for row in pool.map(tried, chosen):
            rows.append(row)
            print(f"{'MISSED' if row.missed else 'caught'}  {row.fault.name}", flush=True)
    print("\n".join(table(rows)))
    if given.page:
        given.page.write_text(page(rows, time.monotonic() - began), encoding="utf-8")
    missed = [row.fault.name for row in rows if row.missed]
    print(f"{len(rows) - len(missed)} of {len(rows)} caught")
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
