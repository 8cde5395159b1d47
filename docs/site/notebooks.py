"""Write every tutorial as a notebook, made from its page.

    python docs/site/notebooks.py build/notebooks

Prose and pictures become Markdown cells, blocks become code cells in their order. A block with
prompts is cut after each result, since a cell shows its last value only. Links lead to the pages
of the site where the notebooks lie in its folder ``tutorials``.
"""

from __future__ import annotations

import base64
import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

TUTORIALS = Path(__file__).parents[1] / "tutorials"
LISTS = {"README.md"}
"""Pages that list tutorials."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
PAGE_LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)\.md(?=[)#])")
RUN = ("python", "sh", "toml")
"""Languages of blocks that become code cells; others are shown."""


def tutorials() -> list[Path]:
    return sorted(page for page in TUTORIALS.glob("*.md") if page.name not in LISTS)


def notebook(page: Path) -> Any:
    """Return the page as a notebook."""
    cells = list(_cells(page, page.read_text(encoding="utf-8")))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same page gives the same file
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _cells(page: Path, text: str) -> Iterator[Any]:
    prose, end = "", 0
    for fence in FENCE.finditer(text):
        prose += text[end : fence.start()]
        end = fence.end()
        if fence[1] not in RUN:
            prose += fence[0]
            continue
        yield from _prose(page, prose)
        prose = ""
        yield from code_cells(fence[1], fence[2])
    yield from _prose(page, prose + text[end:])


def _prose(page: Path, text: str) -> Iterator[Any]:
    if text.strip():
        pictures = {
            Path(link).name: {"image/png": _base64(page.parent / link)}
            for _, link in PICTURE.findall(text)
        }
        text = PICTURE.sub(lambda each: f"![{each[1]}](attachment:{Path(each[2]).name})", text)
        cell = new_markdown_cell(PAGE_LINK.sub(r"\1.html", text).strip())
        if pictures:
            cell["attachments"] = pictures
        yield cell


def _base64(picture: Path) -> str:
    return base64.b64encode(picture.read_bytes()).decode("ascii")


def code_cells(language: str, text: str) -> Iterator[Any]:
    """The cells of a block: commands and files by magics, prompts without their results."""
    text = text.rstrip("\n")
    if language == "sh":
        yield new_code_cell(f"%%bash\n{text}")
    elif language == "toml" or re.match(r"# \S+\.py\n", text):
        name = text.split("\n", 1)[0].removeprefix("# ")
        yield new_code_cell(f"%%writefile {name}\n{text}")
        if language == "python":
            yield new_code_cell(f"from {name.removesuffix('.py')} import *")
    elif ">>>" in text:
        source = ""
        for example in doctest.DocTestParser().get_examples(text + "\n"):
            source += example.source
            if example.want:
                yield _shown(source, example)
                source = ""
        if source:
            yield new_code_cell(source.rstrip("\n"))
    else:
        yield new_code_cell(text)


def _shown(source: str, example: doctest.Example) -> Any:
    cell = new_code_cell(source.rstrip("\n"))
    if example.exc_msg is not None:  # the page shows an error: run the cells after it all the same
        cell["metadata"]["tags"] = ["raises-exception"]
    return cell


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in tutorials():
        made = notebook(page)
        nbformat.validate(made)
        path = folder / f"{page.stem}.ipynb"
        path.write_text(nbformat.writes(made) + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
