"""What only the operator knows: who they are, and who holds which data how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from discreet.config import build
from discreet.errors import InvalidInput
from discreet.toml_files import read_toml


@dataclass(frozen=True)
class HeldData:
    """One kind of data: what it is, who holds it, until when."""

    what: str
    holder: str
    kept: str


@dataclass(frozen=True)
class Facts:
    """The keys of the file that ``--facts`` names; what is left out is "not stated"."""

    operator: str | None = None
    contact: str | None = None
    purpose: str | None = None
    audited_on: str | None = None
    data: tuple[HeldData, ...] = ()

    def to_json(self) -> dict[str, Any]:
        stated = {each.name: getattr(self, each.name) for each in fields(self)}
        return stated | {"data": [vars(each) for each in self.data]}


def read_facts(path: str | Path) -> Facts:
    """The facts of a TOML file; unknown keys and values that are not text are refused."""
    given = read_toml(path, "facts")
    held = given.pop("data", [])
    if not isinstance(held, list) or not all(isinstance(each, Mapping) for each in held):
        raise InvalidInput(
            "facts.data must be a list of tables; got another kind. Write [[data]] with what, "
            "holder and kept for each kind of data."
        )
    rows = [_texts(each, f"facts.data[{i}]") for i, each in enumerate(held)]
    built = [build(HeldData, row, f"facts.data[{i}]", {}) for i, row in enumerate(rows)]
    return build(Facts, _texts(given, "facts") | {"data": built}, "facts", {})


def _texts(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Dates are written as text; everything else must be text already."""
    read = {name: _date(value) for name, value in given.items()}
    for name, value in read.items():
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(
                f"{where}.{name} must be text; got {value!r}. Write it in quotes, or leave it out."
            )
    return read


def _date(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
