"""Pages of the site and their places, from the Markdown files of the repository.

A page is a file of docs/, or one of the few elsewhere that a reader needs. *Lists* are pages whose
bullets and table rows begin with a link: they are the navigation, on the site and on a code host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
START = DOCS / "index.md"
LISTS = (
    DOCS / "tutorials" / "README.md",
    DOCS / "how-to.md",
    DOCS / "reference" / "README.md",
    DOCS / "concepts.md",
    DOCS / "privacy" / "README.md",
    DOCS / "results" / "README.md",
    DOCS / "decisions" / "README.md",
    ROOT / "CONTRIBUTING.md",
)
"""The start page links to each list, so every listed page is two clicks away."""
ELSEWHERE = (
    ROOT / "CHANGELOG.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "RELEASING.md",
    ROOT / "SECURITY.md",
    ROOT / "clients" / "js" / "README.md",
    ROOT / "deploy" / "README.md",
    ROOT / "examples" / "service" / "README.md",
)

FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
ENTRY = re.compile(r"^(?:[-*] |\| )\[[^\]]*\]\(([^)\s#]+\.md)\)", re.MULTILINE)


def pages() -> list[Path]:
    """Return every page of the site."""
    return sorted({*DOCS.rglob("*.md"), *ELSEWHERE})


def place(path: Path) -> Path:
    """Return the place of a file of the repository on the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    return Path("repository") / path.relative_to(ROOT)


def listed(page: Path, text: str | None = None) -> list[Path]:
    """The pages that a list names, in its order."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8") if text is None else text)
    found = [(page.parent / link).resolve() for link in ENTRY.findall(prose)]
    return [each for each in dict.fromkeys(found) if each not in (START, *LISTS)]


def sections(page: Path) -> Iterator[tuple[str, list[Path]]]:
    """Headings of the start page, with the lists that stand below each."""
    for part in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        found = [(page.parent / link).resolve() for link in ENTRY.findall(text)]
        if below := [each for each in found if each in LISTS]:
            yield heading.strip(), below


def faults() -> list[str]:
    """Return the faults of the navigation, as sentences."""
    named = [(page, each) for page in LISTS for each in listed(page)]
    homes: dict[Path, list[Path]] = {}
    for page, each in named:
        homes.setdefault(each, []).append(page)
    for page in LISTS:
        homes.setdefault(page, [START])
    wrong = []
    for page in pages():
        if page == START:
            continue
        count = len(homes.get(page, []))
        if count != 1:
            choices = ", ".join(str(place(each)) for each in homes.get(page, LISTS))
            name = page.relative_to(ROOT)
            wrong.append(f"{name} must be in one list; it is in {count}. Lists: {choices}.")
    linked = {each for _, below in sections(START) for each in below}
    missing = [str(page.relative_to(ROOT)) for page in LISTS if page not in linked]
    if missing:
        wrong.append(f"docs/index.md must list {', '.join(missing)}; it does not. Add a bullet.")
    return wrong
