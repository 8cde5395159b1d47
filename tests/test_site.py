"""The site: every page is in a list, every public name in the reference, notebooks are valid."""

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import nbformat
import pytest

import discreet
from discreet.cli.main import COMMANDS, build_parser
from page_blocks import BLOCK

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))


@pytest.fixture
def site(monkeypatch):
    """Import a module of docs/site, where they import each other."""
    monkeypatch.syspath_prepend(str(SITE))
    yield importlib.import_module
    for name in ("pages", "reference", "stage", "check_site", "notebooks"):
        sys.modules.pop(name, None)


def test_every_page_is_in_one_list(site):
    assert site("pages").faults() == []


def test_a_page_in_no_list_or_in_two_is_found(site, monkeypatch):
    pages = site("pages")
    glossary = pages.DOCS / "glossary.md"
    original = pages.listed
    for change in (set(), {glossary}):
        monkeypatch.setattr(
            pages,
            "listed",
            lambda page, change=change: [*({*original(page)} - {glossary}), *change],
        )
        assert any("glossary.md must be in one list" in each for each in pages.faults())


def test_every_public_name_is_in_the_reference(site):
    names = site("reference").names
    listed = {name for page in REFERENCE for name in names(page.read_text())}
    assert {f"discreet.{name}" for name in discreet.__all__} <= listed
    for module in ("audit", "data"):
        public = importlib.import_module(f"discreet.{module}").__all__
        assert {f"discreet.{module}.{name}" for name in public} <= listed


def test_every_name_that_documents_import_is_in_the_reference(site):
    reference = site("reference")
    listed = {
        id(reference.found(name))
        for page in REFERENCE
        for name in reference.names(page.read_text())
    }
    texts = [path.read_text() for path in (*ROOT.glob("docs/**/*.md"), ROOT / "README.md")]
    imports = re.findall(r"^from (discreet\.\S+) import ([\w, ]+)$", "\n".join(texts), re.MULTILINE)
    assert len(imports) > 20
    for module, names in imports:
        for name in names.split(", "):
            item = reference.found(f"{module}.{name}")
            assert id(item) in listed or type(item) is type(sys), f"{module}.{name}"


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.name)
def test_every_argument_is_explained(page, site):
    assert site("reference").undocumented(page.read_text()) == []


def test_every_public_name_shows_an_example():
    made_by_others = {"Lift", "Mechanism", "OfflineEvaluation"}  # whose makers show one
    for name in set(discreet.__all__) - made_by_others:
        item = getattr(discreet, name)
        if not (inspect.isclass(item) and issubclass(item, BaseException)):
            assert ">>> " in inspect.getdoc(item), name


def test_every_command_is_in_the_reference(site):
    reference = site("reference")
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert reference.commands(page) == list(build_parser()[1])
    assert len(COMMANDS) == len(reference.commands(page))
    assert "usage: discreet campaign run" in reference.expanded(page)


PAGE = """<html><head>{head}</head><body><article><h1 id="top">A</h1><p>{first}</p>{text}</article>
</body></html>"""


def built(folder, head="", first="For all.", text='<a href="b.html#top">b</a>'):
    """A site of three pages in a row."""
    (folder / "index.html").write_text(PAGE.format(head=head, first=first, text=text))
    (folder / "b.html").write_text(
        PAGE.format(head="", first="For all.", text='<a href="c.html">c</a>')
    )
    (folder / "c.html").write_text(PAGE.format(head="", first="For all.", text=""))
    return folder.resolve()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"head": '<link rel="stylesheet" href="//cdn.example/x.css">'}, "loads"),
        ({"text": '<a href="b.html#nowhere">b</a>'}, "links to b.html#nowhere"),
        ({"text": '<a href="no.html">b</a><a href="b.html">b</a>'}, "links to no.html"),
        ({"text": ""}, "more than 2 clicks"),
        ({"first": "Everybody."}, "for whom"),
        ({"text": '<img src="c.html"><a href="b.html">b</a>'}, "without words"),
    ],
)
def test_the_check_of_the_built_site(change, fault, site, tmp_path):
    found = site("check_site").Site(built(tmp_path, **change)).faults()
    assert not found if fault is None else any(fault in each for each in found)


def test_staged_links_lead_to_staged_files(site, tmp_path):
    stage = site("stage").Stage(tmp_path)
    stage.fill()
    assert stage.faults == []
    text = (tmp_path / "repository" / "CONTRIBUTING.md").read_text()
    assert "](../glossary.md)" in text
    assert "autoclass:: discreet.Plan" in (tmp_path / "reference" / "plans.md").read_text()
    start = (tmp_path / "index.md").read_text()
    assert ":class: only-dark" in start
    assert ":caption: Understand" in start


# --- notebooks of the tutorials

RUN = ("python", "sh", "toml")
TUTORIALS = [
    page for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.name != "README.md"
]


def code(cells):
    """The lines of code cells without magics and prompts, in order."""
    lines = "\n".join(cell.source for cell in cells if cell.cell_type == "code").splitlines()
    added = ("%%", "from my_")  # a module that a page writes is imported
    return [line for line in lines if line and not line.startswith(added)]


def page_code(page):
    """The lines of a page's blocks that tests run, those with prompts without their results."""
    found = []
    for language, text in BLOCK.findall(page.read_text()):
        if language in RUN:
            if ">>>" in text:
                text = "".join(each.source for each in doctest.DocTestParser().get_examples(text))
            found += [line for line in text.splitlines() if line]
    return found


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_cells_are_the_blocks_of_the_page(page, site):
    made = site("notebooks").notebook(page)
    nbformat.validate(made)
    assert nbformat.reads(nbformat.writes(made), as_version=4) == made
    assert code(made.cells) == page_code(page)
    assert len(page_code(page)) > 10
    prose = "".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert ".md)" not in prose
    shown = prose.count("](attachment:")
    assert shown == sum(len(cell.get("attachments", {})) for cell in made.cells)


def test_the_command_writes_every_tutorial(site, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebooks.py", str(tmp_path / "made")])
    site("notebooks").main()
    written = {path.stem for path in (tmp_path / "made").glob("*.ipynb")}
    assert written == {page.stem for page in TUTORIALS}
