"""Copy the pages to one folder for Sphinx, with links to their new places.

    python docs/site/stage.py build/site-source

The pages in the repository stay plain Markdown that a code host shows. Added here are what only a
site has: navigation from the lists, docstrings in the reference, figures in light and dark,
notebooks beside tutorials. A file is written only where its text changed, so that Sphinx reads
again what is new.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat

from notebooks import notebook, tutorials
from pages import DOCS, FENCE, LINK, LISTS, ROOT, START, faults, listed, pages, place, sections
from reference import expanded


class Stage:
    """The folder that Sphinx reads, and the faults that were found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = set(pages())
        self.written: set[Path] = set()
        self.faults = faults()

    def fill(self) -> None:
        for page in sorted(self.pages):
            text = page.read_text(encoding="utf-8")
            if page.parent == DOCS / "reference":
                text = expanded(text)
            text = _outside_code(text, lambda part, page=page: self._linked(page, part))
            if page in tutorials():
                text += self._as_notebook(page)
            self._write(page, text + self._navigation(page))
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path not in self.written:
                path.unlink()

    def _linked(self, page: Path, text: str) -> str:
        return LINK.sub(lambda link: self._link(page, link), text)

    def _link(self, page: Path, link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return link[0]
        found = (page.parent / path).resolve()
        if not found.is_file() or not found.is_relative_to(ROOT):
            self.faults.append(f"{page.relative_to(ROOT)} links to {target}, which is no file.")
            return link[0]
        if found == ROOT / "README.md":
            found = START
        if found.suffix != ".md":
            self._copy(found)
        elif found not in self.pages:
            self.faults.append(f"{page.relative_to(ROOT)} links to {target}, which is no page.")
        dark = found.with_name(found.name.replace("-light.", "-dark."))
        if mark and dark != found and dark.is_file():
            self._copy(dark)
            both = {"light": self._relative(page, found), "dark": self._relative(page, dark)}
            return "\n\n".join(
                f"```{{image}} {each}\n:alt: {words}\n:class: only-{kind}\n```"
                for kind, each in both.items()
            )
        place_there = self._relative(page, found) + (f"#{anchor}" if anchor else "")
        return f"{mark}[{words}]({place_there})"

    def _relative(self, page: Path, target: Path) -> str:
        return os.path.relpath(place(target), place(page).parent)

    def _copy(self, path: Path) -> None:
        there = self.folder / place(path)
        self.written.add(there)
        if not there.exists() or there.read_bytes() != path.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)

    def _as_notebook(self, page: Path) -> str:
        name = f"{page.stem}.ipynb"
        self._put(place(page).with_name(name), nbformat.writes(notebook(page)) + "\n")
        return f"\nThis page is a notebook, too: {{download}}`{name}`.\n"

    def _write(self, page: Path, text: str) -> None:
        self._put(place(page), text)

    def _put(self, path: Path, text: str) -> None:
        there = self.folder / path
        self.written.add(there)
        if not there.exists() or there.read_text(encoding="utf-8") != text:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text, encoding="utf-8")

    def _navigation(self, page: Path) -> str:
        if page == START:
            return "".join(_toctree(below, name) for name, below in sections(page))
        return _toctree(listed(page)) if page in LISTS else ""


def _toctree(below: list[Path], caption: str = "") -> str:
    head = "\n```{toctree}\n:hidden:\n" + (f":caption: {caption}\n" if caption else "")
    entries = "".join(f"/{place(each).with_suffix('').as_posix()}\n" for each in below)
    return f"{head}\n{entries}```\n"


def _outside_code(text: str, change) -> str:
    """The text with ``change`` applied to what is in no fenced block."""
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def main() -> None:
    stage = Stage(Path(sys.argv[1]).resolve())
    stage.fill()
    for fault in stage.faults:
        print(f"error: {fault}", file=sys.stderr)
    sys.exit(1 if stage.faults else 0)


if __name__ == "__main__":
    main()
