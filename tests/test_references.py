"""Every citation resolves to an entry of docs/references.md, and every entry is cited."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs" / "references.md"
ENTRY = re.compile(r"^- \*\*(.+?)\.\*\* (.*?)(?=^- |\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = dict(ENTRY.findall(LIST.read_text()))
SOURCES = sorted(
    {*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"} - {LIST}
)
YEAR = r"(?:1[89]|20)\d\d\b"
NAME = r"[A-ZÀ-Ž][\w-]+"
# Names before a year: inside brackets one is enough, outside it takes "et al." or "and".
INSIDE = re.compile(rf"({NAME}(?: et al\.| and {NAME})?) {YEAR}")
OUTSIDE = re.compile(rf"({NAME}(?: et al\.|(?:, {NAME})* and {NAME})),? \(?{YEAR}")
BRACKET = re.compile(r"\[([^\[\]]*)\](?!\()")


def plain(text):
    """One line, without the signs that continue comments."""
    return re.sub(r"\s*\n\s*(?:#\s)?\s*", " ", text)


def cited(text):
    """Whatever looks like a citation."""
    text = plain(text)
    found = {match[0] for inside in BRACKET.findall(text) for match in INSIDE.finditer(inside)}
    found |= {match[0] for match in OUTSIDE.finditer(text)}
    if re.search(r"\[paper[,\]]|[;:] paper,", text):
        found.add("paper")
    return found


CITING = [path for path in SOURCES if cited(path.read_text())]


@pytest.mark.parametrize("path", CITING, ids=lambda path: str(path.relative_to(ROOT)))
def test_citations_resolve(path):
    found = cited(path.read_text())
    assert found <= set(ENTRIES)
    if found - {"paper"} and path.suffix == ".md":
        assert "references.md)" in path.read_text(), "a page that cites links to the list"


def test_every_entry_is_cited():
    assert set().union(*(cited(path.read_text()) for path in SOURCES)) == set(ENTRIES)


@pytest.mark.parametrize("label", ENTRIES)
def test_entries_are_complete(label):
    """Names, a title, where it appeared and when; an id, where there is one, has its form."""
    text = plain(ENTRIES[label]).strip()
    assert re.match(r"[^*]{5,}\. (In )?\*[^*]{10,}\*", text)
    assert re.search(YEAR, text)
    if label != "paper":
        assert label.split()[0] in text
        assert label.split()[-1] in text.partition("*")[2]
    for kind, identity in re.findall(r"(arXiv|doi):(\S+)", text):
        pattern = {"arXiv": r"\d{4}\.\d{4,5}", "doi": r"10\.\d{4,5}/\S+"}[kind]
        assert re.fullmatch(pattern, identity)
