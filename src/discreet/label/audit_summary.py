"""What a label repeats of an audit: the verdict, and what attackers could prove."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import CorruptRelease
from discreet.releases.canonical import read_document

FORMAT = "discreet-audit/1"


def read_audit(path: str | Path) -> dict[str, Any]:
    """The summary of a file that ``discreet audit --json`` wrote; ε as text."""
    document = read_document(path)
    try:
        if document["format"] != FORMAT:
            raise ValueError
        bounds = [_bound(each) for each in document["findings"] if each["measured"] is not None]
        told = {name: str(document[name]) for name in ("version", "command", "verdict", "summary")}
        return {**told, "questions": len(document["findings"]), "lower_bounds": bounds}
    except (KeyError, TypeError, ValueError):
        raise CorruptRelease(
            f"audit must be a file that discreet audit --json wrote; {path} is not. "
            "Write one with discreet audit --quick --json > audit.json."
        ) from None


def _bound(finding: Mapping[str, Any]) -> dict[str, str]:
    """What was promised, and what an attacker proved of it."""
    return {
        "mechanism": str(finding["subject"]),
        "attack": str(finding["part"]),
        "claimed": repr(float(finding["claimed"])),
        "proven": repr(float(finding["measured"])),
        "verdict": str(finding["verdict"]),
    }
