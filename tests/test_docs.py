"""README and docs are run: their Python, their commands, their links, the citation."""

import doctest
import importlib
import io
import json
import os
import re
import subprocess
import sys
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

import discreet
from discreet import registry
from discreet.cli.main import main
from discreet.errors import DiscreetError
from program import PROGRAM

ROOT = Path(__file__).parents[1]
SECONDS = 300
"""A loaded machine is slow, and slow is not wrong."""
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def named(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    """Code blocks of a Markdown file, in order."""
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def having(*languages):
    return [page for page in PAGES if blocks(page, *languages)]


def run(command, folder):
    """What a command prints; it must succeed.

    It runs in this process, which has imported the libraries: other tests start programs. Only
    workers that are told of a page's own code need a fresh process.
    """
    words = command.split()
    assert words[0] == "discreet"
    if {"--import", "--jobs"} <= set(words):
        return in_fresh_process(words[1:], folder)
    said, complained = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        nothing_registered(folder),
        redirect_stdout(said),
        redirect_stderr(complained),
    ):
        try:
            code = main(words[1:])
        except SystemExit as end:  # --help
            code = end.code
    assert code == 0, complained.getvalue()
    return said.getvalue()


@contextmanager
def nothing_registered(folder):
    """What the page has registered here is not known to a command, which must import it."""
    with (
        patch.object(registry.POLICIES, "own", {}),
        patch.object(registry.ORACLES, "own", {}),
        patch.object(sys, "path", sys.path.copy()),
    ):
        yield
    for module in folder.glob("*.py"):
        sys.modules.pop(module.stem, None)


def in_fresh_process(words, folder):
    done = subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Commands would start a process for each core; the other cores are at other tests."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


def run_python(text, namespace, name):
    """Run a block; one with prompts is compared with what it prints."""
    if ">>>" not in text:
        exec(compile(text, name, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    test.globs = namespace
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said = []
    runner.run(test, out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("page", having("python", "sh", "toml"), ids=named)
def test_blocks_run_in_order(page, tmp_path, monkeypatch):
    """Python shares one namespace; shell lines that begin with discreet run; TOML is a file.

    So is Python that begins with "# name.py". No block gives cause for advice.
    """
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for number, (language, text) in enumerate(BLOCK.findall(page.read_text()), start=1):
        if language == "python":
            warnings.simplefilter("error", discreet.Advice)
            module = re.match(r"# (\S+\.py)\n", text)
            if module:
                (tmp_path / module[1]).write_text(text)
            run_python(text, namespace, f"{named(page)}, block {number}")
        elif language == "toml":
            first = re.match(r"# (\S+\.toml)\n", text)
            assert first, "a TOML block begins with '# name.toml'"
            (tmp_path / first[1]).write_text(text)
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith("discreet "):
                    run(line.split("  #")[0], tmp_path)


@pytest.mark.parametrize("page", having("console"), ids=named)
def test_shown_output_is_real(page, tmp_path):
    for text in blocks(page, "console"):
        for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            assert run(command, tmp_path).strip() == shown.strip(), f"run again: {command}"


def anchors(page):
    """The anchors of a page's headings, as a forge makes them."""
    prose = BLOCK.sub("", page.read_text())
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{named(page)} links to {link}"
        assert target.is_relative_to(ROOT), f"{named(page)} links outside: {link}"
        if anchor:
            assert anchor in anchors(target), f"{named(page)} links to {link}"


def test_the_checks_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\n1 / 0\n```\n\n# A title, or two\n")
    with pytest.raises(ZeroDivisionError):
        exec(blocks(page, "python")[0])
    assert anchors(page) == {"a-title-or-two"}
    with pytest.raises(AssertionError):
        run("discreet plan --no-such-flag", tmp_path)


def citation():
    """Top-level keys of CITATION.cff: a subset of YAML that needs no library."""
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    pairs = [line.partition(":") for line in lines if re.match(r"[a-z-]+:", line)]
    return {key: value.strip().strip('"') for key, _, value in pairs}


def test_the_citation_is_complete_and_current():
    read = citation()
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(read)
    assert read["version"] == discreet.__version__
    assert read["license"] == "MIT"
    text = (ROOT / "CITATION.cff").read_text()
    assert "\t" not in text
    for line in text.splitlines():
        assert re.match(r"^( {2})*(- )?([a-z-]+:|\S)", line), line
    assert "Vanilla Policy Optimization Is Both Optimal and Differentially Private" in text


def test_the_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[?{re.escape(discreet.__version__)}\b", text, re.MULTILINE)


def taught():
    """The modules below discreet that documents and examples import."""
    texts = [text for page in PAGES for text in blocks(page, "python")]
    texts += [path.read_text() for path in (ROOT / "examples").rglob("*.py")]
    return set(re.findall(r"(?:from|import) discreet\.(\w+)", "\n".join(texts))) - {"errors"}


def test_what_documents_teach_is_public():
    page = (ROOT / "docs" / "stability.md").read_text()
    library = page[page.index("## The library") : page.index("## Releases")]
    public = set(re.findall(r"`discreet\.([a-z]\w*)`", library))
    assert taught() <= public
    for name in public:
        importlib.import_module(f"discreet.{name}")


def test_results_stay_small():
    """Figures, small tables and commands; pages and tables with a row per run are made again."""
    sizes = [
        path.stat().st_size for path in (ROOT / "docs" / "results").rglob("*") if path.is_file()
    ]
    assert 0 < sum(sizes) <= 3_000_000


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_newcomers_meet_the_default_plan(page):
    """The first plan of a page names neither policy nor oracle, nor any other setting."""
    first = re.search(r"dc\.Plan\((.*?)\)\n", (ROOT / page).read_text(), re.DOTALL)[1]
    assert re.findall(r"\b(?<!\.)(\w+)=", re.sub(r"dc\.\w+\(.*?\)", "", first)) == [
        "n_actions",
        "features",
        "budget",
    ]


def test_the_first_screen_of_the_readme():
    """One sentence, for whom, install, eight lines with their result, what is not covered."""
    screen = (ROOT / "README.md").read_text().partition("\n## ")[0]
    assert len(screen.splitlines()) <= 40
    (program,) = re.findall(r"```python\n(.*?)```", screen, re.DOTALL)
    assert len(re.findall(r"^(>>>|\.\.\.) ", program, re.MULTILINE)) == 8
    assert len(re.findall(r"^[^>.\n]", program, re.MULTILINE)) == 1
    order = [
        screen.index(part)
        for part in ("**For**", "**Not for**", "pip install", ">>>", "**Not covered:**")
    ]
    assert order == sorted(order)


def test_the_quick_start_takes_group_privacy_from_the_library():
    """An event built by hand on the page forgot the sampler's distance."""
    text = "".join(blocks(ROOT / "docs" / "quickstart.md", "python"))
    assert "epsilon_together" in text
    assert not re.search(r"privacy\.events|Gaussian\(", text)


def test_the_worked_example_of_the_release_format_verifies():
    page = ROOT / "docs" / "release-format.md"
    documents = [json.loads(text) for text in blocks(page, "json")]
    whole = [each for each in documents if each.get("format") == "discreet-released/1"]
    assert whole
    for document in whole:
        assert discreet.Released.from_document(document).items
        document["releases"][0]["release"]["records"] += 1
        with pytest.raises(DiscreetError):
            discreet.Released.from_document(document)
