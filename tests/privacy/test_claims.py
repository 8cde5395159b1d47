"""Every privacy claim in the source points to a page of docs/privacy, and to a section there."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "discreet"
PAGE = re.compile(r"docs/[\w/-]+\.md")
SECTION = re.compile(r'docs/[\w/-]+\.md, "([^"]+)"')


def passages(text: str) -> list[str]:
    """Comment blocks and strings of a module, each as one line of text."""
    found, block, last = [], [], -2
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and block:
                found.append(" ".join(block))
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    found.append(" ".join(block))
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return found + [" ".join(string.split()) for string in strings]


def headings(page: Path) -> set[str]:
    return {
        line.lstrip("#").strip() for line in page.read_text().splitlines() if line.startswith("#")
    }


PASSAGES = [
    (path.relative_to(SOURCE).as_posix(), passage)
    for path in sorted(SOURCE.rglob("*.py"))
    if "Privacy:" in (text := path.read_text()) or "docs/" in text
    for passage in passages(text)
]
CLAIMS = [(module, passage) for module, passage in PASSAGES if "Privacy:" in passage]
CITATIONS = [(module, passage) for module, passage in PASSAGES if "docs/" in passage]


@pytest.mark.parametrize(
    ("module", "claim"), CLAIMS, ids=[f"{m}-{i}" for i, (m, _) in enumerate(CLAIMS)]
)
def test_each_claim_names_its_proof(module, claim):
    after = claim[claim.index("Privacy:") :]
    assert SECTION.search(after), f'{module}: a privacy claim must end in [docs/privacy/….md, "…"]'


@pytest.mark.parametrize(
    ("module", "passage"), CITATIONS, ids=[f"{m}-{i}" for i, (m, _) in enumerate(CITATIONS)]
)
def test_each_citation_exists(module, passage):
    pages = PAGE.findall(passage)
    for page in pages:
        assert (ROOT / page).is_file(), f"{module} cites {page}"
    for match in SECTION.finditer(passage):
        page = PAGE.search(match.group(0)).group(0)
        assert match.group(1) in headings(ROOT / page), f"{module} cites {match.group(0)}"
