"""Check the built site: what its pages load, and where their links lead.

    python docs/site/check_site.py build/site

Fails where a page loads something from another host, links to a file or an anchor that is not
there, is more than two clicks in the text from the start page, does not say for whom it is, or has
a picture without words.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

MADE = {"genindex.html", "search.html", "py-modindex.html"}
"""Pages that Sphinx makes: every page links to them, and they need no first line."""
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
CLICKS = 2
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//|^https?:")
IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")]+)")


class Page(HTMLParser):
    """The resources, links and first words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.wordless: list[str] = []
        self.in_text: list[str] = []
        self.first = ""
        self._article = 0
        self._title = self._paragraph = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in LOADS and LOADS[tag] in given:
            self.loads.append(given[LOADS[tag]])
        if tag == "img" and not given.get("alt"):
            self.wordless.append(given.get("src", "?"))
        if tag == "article":
            self._article += 1
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self._article:
                self.in_text.append(given["href"])
        if tag == "h1":
            self._title = True
        if tag == "p" and self._title and self._article and not self.first:
            self._paragraph = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._article -= 1
        if tag == "p":
            self._paragraph = False

    def handle_data(self, data: str) -> None:
        if self._paragraph:
            self.first += data


class Site:
    """All pages of a folder, and their faults."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {
            path.relative_to(folder).as_posix(): Page(path.read_text(encoding="utf-8"))
            for path in sorted(folder.rglob("*.html"))
            if "_static" not in path.parts
        }

    def faults(self) -> list[str]:
        wrong = []
        for name, page in self.pages.items():
            wrong += [f"{name} loads {each}" for each in page.loads if ELSEWHERE.match(each)]
            wrong += [f"{name} shows {each} without words" for each in page.wordless]
            wrong += [f"{name} links to {each}" for each in page.links if self._dead(name, each)]
            if name not in MADE and not page.first.startswith("For "):
                wrong.append(f'{name} does not begin with "For …": it must say for whom it is')
        for style in self.folder.rglob("*.css"):
            found = IN_STYLES.findall(style.read_text(encoding="utf-8"))
            wrong += [f"{style.relative_to(self.folder)} loads {each}" for each in found]
        far = set(self.pages) - MADE - self._near()
        wrong += [f"{name} is more than {CLICKS} clicks from the start" for name in sorted(far)]
        return wrong

    def _dead(self, name: str, link: str) -> bool:
        if re.match(r"[a-z]+:", link) or link in ("", "#"):
            return False
        path, anchor = self._target(name, link)
        if path in self.pages:
            return bool(anchor) and anchor not in self.pages[path].anchors
        return not (self.folder / path).is_file()

    def _target(self, name: str, link: str) -> tuple[str, str]:
        path, _, anchor = unquote(link).partition("#")
        if not path:
            return name, anchor
        there = (self.folder / name).parent / path
        return there.resolve().relative_to(self.folder).as_posix(), anchor

    def _near(self) -> set[str]:
        """Return the pages within the clicks, by links in the text, without the side bar."""
        near = newest = {"index.html"}
        for _ in range(CLICKS):
            links = {(name, link) for name in newest for link in self.pages[name].in_text}
            local = {pair for pair in links if not re.match(r"[a-z]+:", pair[1])}
            newest = {self._target(*pair)[0] for pair in local} & set(self.pages) - near
            near = near | newest
        return near


def main() -> None:
    site = Site(Path(sys.argv[1]).resolve())
    wrong = site.faults()
    for each in wrong:
        print(f"error: {each}", file=sys.stderr)
    if not site.pages:
        sys.exit("error: the site must have pages; it has none. Run make docs.")
    print(f"{len(site.pages)} pages, {len(wrong)} faults: {site.folder / 'index.html'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
