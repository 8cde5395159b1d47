"""Every tutorial becomes a valid notebook, whose cells are the blocks that test_docs runs."""

import doctest
import importlib
import sys
from pathlib import Path

import nbformat
import pytest

from page_blocks import BLOCK

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
RUN = ("python", "sh", "toml")
PAGES = sorted({*(ROOT / "docs" / "tutorials").glob("*.md")})
TUTORIALS = [page for page in PAGES if page.name != "README.md"]


@pytest.fixture
def notebooks(monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    yield importlib.import_module("notebooks")
    sys.modules.pop("notebooks")


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
def test_cells_are_the_blocks_of_the_page(page, notebooks):
    made = notebooks.notebook(page)
    nbformat.validate(made)
    assert nbformat.reads(nbformat.writes(made), as_version=4) == made
    assert code(made.cells) == page_code(page)
    assert len(page_code(page)) > 10
    prose = "".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert ".md)" not in prose
    shown = prose.count("](attachment:")
    assert shown == sum(len(cell.get("attachments", {})) for cell in made.cells)


def test_the_command_writes_every_tutorial(notebooks, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebooks.py", str(tmp_path / "made")])
    notebooks.main()
    written = {path.stem for path in (tmp_path / "made").glob("*.ipynb")}
    assert written == {page.stem for page in TUTORIALS}


def test_kinds_of_blocks(notebooks):
    def cells(language, text):
        return [cell.source for cell in notebooks.code_cells(language, text)]

    assert cells("sh", "discreet data list\n") == ["%%bash\ndiscreet data list"]
    assert cells("toml", "# a.toml\nx = 1\n") == ["%%writefile a.toml\n# a.toml\nx = 1"]
    assert cells("python", "# my_b.py\nx = 1\n") == [
        "%%writefile my_b.py\n# my_b.py\nx = 1",
        "from my_b import *",
    ]
    assert cells("python", ">>> x = 1\n>>> x\n1\n>>> y = 2\n") == ["x = 1\nx", "y = 2"]
    (refused,) = notebooks.code_cells(
        "python", ">>> 1 / 0\nTraceback (most recent call last):\n...\nZeroDivisionError: no\n"
    )
    assert refused.metadata.tags == ["raises-exception"]
