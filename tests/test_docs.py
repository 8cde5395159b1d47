"""README and docs are run: their Python, their commands, their links, the citation."""

import importlib
import json
import os
import re
from pathlib import Path

import pytest

import discreet
from discreet.errors import DiscreetError
from page_blocks import BLOCK, blocks, run, run_page
from tutorial_pictures import MOST_BYTES, PICTURES, drawn_picture, pictures

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def named(page):
    return str(page.relative_to(ROOT))


def having(*languages):
    return [page for page in PAGES if blocks(page, *languages)]


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Commands would start a process for each core; the other cores are at other tests."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


@pytest.mark.parametrize("page", having("python", "sh", "toml"), ids=named)
def test_blocks_run_in_order(page, tmp_path):
    """Also that pictures of a tutorial are those that its blocks draw."""
    run_page(page.read_text(), tmp_path, named(page))
    for picture in pictures(page):
        drawn_picture(picture, tmp_path)


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


TUTORIALS = [page for page in PAGES if page.parent.name == "tutorials" and page.stem != "README"]


@pytest.mark.parametrize("page", TUTORIALS, ids=named)
def test_a_tutorial_leads_by_the_hand(page):
    """For whom, with what at the end, how long; and where to go from there."""
    text = page.read_text()
    beginning = text.partition("```")[0]
    assert re.match(r"# .+\n\nFor ", beginning)
    assert re.search(r"\bend of this\s+page\b", beginning)
    assert int(re.search(r"takes\s+(\d+)\s+minutes", beginning)[1]) <= 15
    ending = text.rpartition("\n## ")[2]
    assert ending.startswith("What next\n")
    assert len(re.findall(r"^- ", ending, re.MULTILINE)) == 2
    assert f"({page.name})" in (page.parent / "README.md").read_text()


def test_pictures_of_tutorials_are_small_and_used():
    shown = [picture for page in TUTORIALS for picture in pictures(page)]
    assert sorted(shown) == sorted(PICTURES.rglob("*.*"))
    assert max(picture.stat().st_size for picture in shown) <= MOST_BYTES


def test_citation_and_changelog_know_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {discreet.__version__}\n" in citation.replace('"', "")
    assert "Vanilla Policy Optimization Is Both Optimal and Differentially Private" in citation
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


def test_the_readme_is_one_screen():
    """Three pictures, for whom, two commands, ten lines of Python, what is not covered."""
    screen = (ROOT / "README.md").read_text()
    assert len(screen.splitlines()) <= 70
    assert screen.count("<img ") == 3
    for picture in re.findall(r'<img src="([^"]+)"', screen):
        assert (ROOT / picture).is_file(), picture
    (commands,) = re.findall(r"```sh\n(.*?)```", screen, re.DOTALL)
    assert re.findall(r"^make (\w+)", commands, re.MULTILINE) == ["demo", "test"]
    (program,) = re.findall(r"```python\n(.*?)```", screen, re.DOTALL)
    assert len(re.findall(r"^(>>>|\.\.\.) ", program, re.MULTILINE)) == 10
    parts = ("<img ", "**For**", "**Not for**", "make demo", ">>>", "**Not covered:**")
    order = [screen.index(part) for part in parts]
    assert order == sorted(order)


def test_the_architecture_names_files_that_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert len(page.splitlines()) <= 110
    files = [f"/{path.relative_to(ROOT)}" for path in ROOT.glob("src/discreet/**/*.py")]
    named_files = set(re.findall(r"`([\w/]+\.py)`", page))
    assert len(named_files) > 30
    absent = {name for name in named_files if not any(path.endswith(f"/{name}") for path in files)}
    assert absent <= {"docs/site/pages.py"}
    tree = page[page.index("```\n") : page.index("## Rules")]
    packages = {path.parent.name for path in ROOT.glob("src/discreet/*/__init__.py")}
    assert packages == set(re.findall(r"^  (\w+)/", tree, re.MULTILINE))


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
