"""Schemas as TOML files, with one table per field, and a first one from a public sample.

A draft suggests kinds of columns, and ranges rounded outwards. Never from private rows: the range
of a column is a fact about its people. Somebody who knows the columns corrects the suggestion
before the first person arrives. [docs/schema.md]
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.features.category import Category
from discreet.features.column_values import Field, is_missing
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.hashed import Hashed
from discreet.features.number import Number
from discreet.features.schema import KINDS, Schema
from discreet.text import read_toml
from discreet.types import Frame, NumpyArray
from discreet.validate import check_keys, one_of

FORM = """\
# A schema: what a context is, declared before the first person comes.
# Ranges and categories must be public knowledge; never read them from people's data.
"""


def read_schema(path: str | Path) -> Schema:
    """Return the schema of a file; unknown keys and kinds are refused by name."""
    document = read_toml(path, "schema")
    document.pop("kind", None)  # as in the table [features] of an experiment
    tables = document.setdefault("fields", [])
    check_keys("schema", document, Schema)
    if not isinstance(tables, list) or not tables:
        raise InvalidInput(
            "schema must have at least one field; got none. Write [[fields]] above each."
        )
    made = []
    for number, table in enumerate(tables):
        given = dict(table) if isinstance(table, Mapping) else {}
        kind = KINDS[one_of(f"fields[{number}].kind", given.pop("kind", None), KINDS)]
        check_keys(f"fields[{number}]", given, kind)
        made.append(kind(**given))
    return Schema(**{**document, "fields": made})


def schema_text(schema: Schema, notes: Mapping[str, str] | None = None, head: str = FORM) -> str:
    """Return the file of a schema; ``notes`` are comments above fields, by their names."""
    lines = [head + f"squares = {_toml(schema.squares)}"]
    if schema.products:
        lines.append(f"products = {_toml(schema.products)}")
    for field in schema.fields:
        note = (notes or {}).get(field.name, "")
        lines += ["", *(f"# {line}" for line in note.splitlines()), "[[fields]]"]
        lines.append(f"kind = {_toml(type(field).__name__)}")
        for each in fields(field):  # type: ignore[arg-type]
            value = getattr(field, each.name)
            if each.default is MISSING or value != each.default:
                lines.append(f"{each.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Return a value as TOML writes it, which is as JSON does but for one sign."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


FEWEST = 20
"""Rows below which distinct values are no sign of an identifier."""
_NAME = re.compile(r"(^|[^a-z])(id|uuid|key|number|nr|no|index)$")
_PERSON = re.compile(
    r"(^|_)(customer|user|client|person|member|visitor|account|household|patient|subject|subscriber"
    r"|employee|student|contact|card|device|session)_?(id|uuid|no|nr|number|key|hash)$"
)
_MANY = re.compile(r"(^|_)(id|uuid|guid|hash|e_?mail(_address)?|iban|ssn)$")
_VALUE = re.compile(r"[^@\s]+@[^@\s]+\.\w+|(?i:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_PERSONAL = re.compile(
    r"(^|_)(((first|last|full|sur|nick|user|login)_?)?name|phone|mobile|street|address|ip|birthday"
    r"|birth_?date|date_of_birth|passport|licen[cs]e|plate|e_?mail(_address)?|iban|ssn)$"
)
_TEXT = re.compile(
    r"(^|_)(text|comments?|messages?|notes?|description|feedback|review|query|search|body)$"
)
NO_FEATURE = "It identifies people, so it is no feature."
OF_PEOPLE = (
    f"{NO_FEATURE} Where they return, pass it as the user (--user, user=): ε then protects all "
    "that one person contributes."
)
HEAD = """\
# A schema: what a context is, declared before the first person comes. A first draft from {sample}.
#
# That sample must be public. Do NOT make this file from the people of the experiment: their ranges
# and words are facts about them, which no noise covers. Read every line, and correct it by what you
# know: a range that is too wide costs a little, one that is too narrow clips.
"""


def is_identifier(values: NumpyArray, name: str = "") -> bool:
    """Return whether whole numbers are all distinct, and counted, sorted or called by such a name.

    Amounts are often distinct as well, but neither in order nor without gaps.

    >>> is_identifier(np.arange(100, 150)), is_identifier(np.arange(50.0) ** 2 % 997)
    (True, False)
    """
    if len(values) < FEWEST or not bool((values == np.rint(values)).all()):
        return False
    if np.unique(values).size < len(values):
        return False
    counted, steps = np.ptp(values) < 2 * len(values), np.diff(values)
    in_order = (steps > 0).all() or (steps < 0).all()
    return bool(counted or in_order) or _NAME.search(name.lower()) is not None


def identifies_people(name: str, present: list[Any]) -> bool:
    """Return whether a column names people, who may have several rows, by its name or its values.

    >>> [identifies_people(name, [7, 8, 9, 7]) for name in ("customerId", "store_id")]
    [True, False]
    """
    words = _snake(name)
    distinct = len(set(present))
    if _PERSON.search(words) and distinct > 2:
        return True
    if _MANY.search(words) and distinct > max(FEW_WORDS, FEW_ROWS * len(present)):
        return not any(isinstance(each, float) and each % 1 for each in present)
    return all(_VALUE.fullmatch(str(value)) for value in present)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()


def column_warning(name: str, values: Iterable[object] = ()) -> str:
    """Return why a declared column should be left out, by its name and its words; or nothing.

    >>> [column_warning(name)[:25] for name in ("age", "customerId", "comment", "shop_id")]
    ['', 'It may identify people. A', 'It may be free text, in w', 'It may be an id. A policy']
    """
    words = _snake(name)
    shared = "A policy learns what many people have in common"
    if (
        _PERSON.search(words)
        or _PERSONAL.search(words)
        or any(_VALUE.fullmatch(str(value)) for value in values)
    ):
        return f"It may identify people. {shared}, so it does not help: leave it out."
    if _TEXT.search(words):
        return "It may be free text, in which people write anything: leave it out, or make a list."
    if _MANY.search(words) or _NAME.search(words):
        return f"It may be an id. {shared}: leave it out, unless a few values return often."
    return ""


FEW_ROWS = 0.1
"""Distinct values per row from which a column called "id" names people and not, say, shops."""
FEW_WORDS = 20
"""A category of more words than this is hashed."""
HASHED_WIDTH = 32
"""Slots of a suggested hash: few enough for their noise."""
SKEWED = 50.0
"""A range of positive numbers is logarithmic if its end is so many times its middle."""
DATES = (("weekday", "hour"), ("weekday",))
"""Parts of a suggested date, by what the words hold."""
ALIKE = 0.9
"""A column with so many distinct values per row names rows instead of describing them."""


@dataclass(frozen=True)
class Suggestion:
    """A field for a column, or None where the column should be left out; and why."""

    name: str
    field: Field | None
    reason: str


def suggestions(columns: Mapping[str, NumpyArray]) -> list[Suggestion]:
    """Suggest a field for each column (n,) of numbers with NaN, or of objects with None.

    >>> found = suggestions({"age": np.array([18.0, 71, 34, np.nan]), "id": np.arange(4)})
    >>> found[0].field
    Number(name='age', low=0.0, high=80.0, clip=True, log=False, stand_in=None, indicator=True)
    """
    return [_suggestion(name, np.asarray(values)) for name, values in columns.items()]


def schema_of(found: list[Suggestion]) -> Schema:
    """Return the schema of all columns that are worth having."""
    fields = [each.field for each in found if each.field is not None]
    if not fields:
        raise InvalidInput(
            "sample must have a column that describes people; it has none, or all are constant or "
            "name single rows. Add columns, or write the schema by hand: docs/schema.md."
        )
    return Schema(fields)


def draft_text(found: list[Suggestion], head: str) -> str:
    """Return the TOML of the suggestions below ``head``, with the reasons as comments."""
    text = schema_text(schema_of(found), {each.name: each.reason for each in found}, head)
    left_out = [f"# {each.name}: {each.reason}\n" for each in found if each.field is None]
    if left_out:
        text += "\n# Left out:\n" + "".join(left_out)
    return text


def draft_schema(sample: Frame, without: Iterable[str], path: str | Path | None) -> Schema:
    """Suggest a schema from a frame, and write it to a new file if a path is given."""
    read, left_out = frames.opened(sample), list(without)
    for name in left_out:
        frames.column(read, name, "without")
    names = [name for name in read.columns if name not in left_out]
    found = suggestions({str(name): frames.column(read, name).filled("fiu") for name in names})
    if path is not None:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(draft_text(found, HEAD.format(sample="a frame")))
    return schema_of(found)


def _suggestion(name: str, values: NumpyArray) -> Suggestion:
    ends = (math.inf, -math.inf)  # a number too large for a float is missing
    present = [each for each in values.tolist() if not is_missing(each) and each not in ends]
    gaps, distinct = len(present) < len(values), set(present)
    words = [str(value) for value in present]
    parts = next((each for each in DATES if _are_dates(name, words, each)), None)
    field: Field | None = None
    if len(distinct) < 2:
        reason = "It has a single value, which has no information."
    elif identifies_people(name, present):
        reason = OF_PEOPLE
    elif values.dtype.kind in "fiu":
        return _number(name, np.asarray(present, dtype=np.float64), gaps)
    elif values.dtype.kind == "b" or distinct <= {True, False}:
        field, reason = Flag(name, indicator=gaps), "Two values: true and false."
    elif parts is not None:
        field = Date(name, parts, indicator=gaps)
        reason = "Dates, read as written (no time zones)."
    elif len(present) >= FEWEST and len(distinct) >= ALIKE * len(present):
        reason = "It differs in nearly every row: an identifier or a text."
    elif len(distinct) > FEW_WORDS:
        field = Hashed(name, HASHED_WIDTH, indicator=gaps)
        reason = f"{len(distinct)} words in the sample: hashed into {HASHED_WIDTH} slots."
    else:
        field = Category(name, tuple(sorted(set(words))), other=True, indicator=gaps)
        reason = "All words of the sample; any other word is 'other'. Add those that you know."
    return Suggestion(name, field, reason)


def _number(name: str, values: NumpyArray, gaps: bool) -> Suggestion:
    distinct = np.unique(values)
    if set(distinct.tolist()) == {0.0, 1.0}:
        return Suggestion(name, Flag(name, indicator=gaps), "Only 0 and 1.")
    if is_identifier(values, name):
        return Suggestion(name, None, "Another whole number in each row: an identifier.")
    least, most, middle = float(distinct[0]), float(distinct[-1]), float(np.median(values))
    log = least > 0 and most > SKEWED * middle
    low, high = rounded_powers(least, most) if log else rounded_range(least, most)
    reason = f"From {least:g} to {most:g} in the sample, rounded outwards; others are clipped."
    if bool((values == np.rint(values)).all()) and len(distinct) <= 10:
        reason += " If these are codes and not amounts, use a Category of whole numbers."
    return Suggestion(name, Number(name, low, high, clip=True, log=log, indicator=gaps), reason)


def _are_dates(name: str, words: list[str], parts: tuple[str, ...]) -> bool:
    out = np.zeros((len(words), 2 * len(parts)))
    try:
        Date(name, parts).write_column(np.asarray(words, dtype=object), out)
    except InvalidInput:
        return False
    return True


def rounded_range(low: float, high: float) -> tuple[float, float]:
    """Return a range of round numbers around the values, from 0 where they reach near it.

    >>> rounded_range(18, 71), rounded_range(-3.2, 47), rounded_range(1013, 1042)
    ((0.0, 80.0), (-10.0, 50.0), (1010.0, 1045.0))
    """
    if 0 < low < (high - low) / 2:
        low = 0.0
    # The largest of 1, 2, 5 times a power of ten that is at most a quarter of the range.
    width = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(width))
    step = next(times * power for times in (5.0, 2.0, 1.0) if times * power <= width)
    return _decimal(math.floor(low / step) * step), _decimal(math.ceil(high / step) * step)


def rounded_powers(low: float, high: float) -> tuple[float, float]:
    """Return a range between powers of ten.

    >>> rounded_powers(3.0, 4500.0)
    (1.0, 10000.0)
    """
    return _decimal(10.0 ** math.floor(math.log10(low))), 10.0 ** math.ceil(math.log10(high))


def _decimal(value: float) -> float:
    """Round the last digits of a product: 0.3, and not 0.30000000000000004."""
    return float(f"{value:.12g}")
