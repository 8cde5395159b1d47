"""Form of a new experiment: a second view of its file.

The text of the file is the only state. The form shows its values as texts; texts that were changed
become values of the file, and settings that the form has no field for stay as they are.
"""

from __future__ import annotations

import copy
import csv
import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from discreet.errors import InvalidInput
from discreet.features.sample_schema import column_warning
from discreet.releases.catalogue import ID

Fields = dict[str, list[str]]
"""What a browser sends: texts by the name of their input."""
Document = dict[str, Any]
"""The values of an experiment file."""

SIMPLE: dict[str, tuple[str, ...]] = {
    "name": ("experiment",),
    "question": ("question",),
    "window": ("window",),
    "batches_per_user": ("batches_per_user",),
    "records_per_batch": ("records_per_batch",),
    "first_batch": ("plan", "first_batch"),
    "longest_batch": ("plan", "longest_batch"),
    "close_every": ("plan", "close_every"),
    "missing_loss": ("plan", "missing_loss"),
    "epsilon": ("plan", "budget", "epsilon"),
    "delta": ("plan", "budget", "delta"),
}
"""Fields that are one value of the file each, and its keys."""
WORDS = ("name", "question", "close_every")
OF_USER = ("batches_per_user", "records_per_batch")
KEYS = {
    "Number": ("low", "high", "clip"),
    "Flag": (),
    "Category": ("values", "other"),
    "Hashed": ("width",),
    "Date": ("parts",),
}
"""Kinds of columns, and the keys of each that the form has a field for."""
ROWS = {
    "action": ("action",),
    **{
        group: tuple(f"{group}_{key}" for key in ("was", "name", "kind", "missing"))
        + tuple(f"{group}_{key}" for keys in KEYS.values() for key in keys)
        for group in ("col", "item")
    },
}
"""Inputs of each row of a list; a browser sends one text per row and input."""


def text_of(value: object) -> str:
    """Return a value of the file as a field shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.15g}".replace("e-0", "e-")
    return "" if value is None else str(value)


def value_of(text: str) -> int | float | str:
    """Return the number of a text; a text that is no number is kept, for the library to refuse."""
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


def _percent(value: object) -> str:
    """Return a share in per cent, without rounding."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return text_of(value)
    return f"{Decimal(repr(value)) * 100:f}".rstrip("0").rstrip(".") or "0"


def share_of(text: str) -> float | str:
    try:
        return float(Decimal(text) / 100)
    except InvalidOperation:
        return text


def table_at(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return a table of the file; an empty one where there is none."""
    for key in keys:
        found = document.get(key)
        document = found if isinstance(found, Mapping) else {}
    return document


def tables_in(value: object) -> list[Document]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def shown(document: Document) -> dict[str, Any]:
    """Return the texts of all fields, the choices, and the rows of actions and columns."""
    plan, control = table_at(document, "plan"), table_at(document, "plan", "control")
    actions, outcome = plan.get("actions"), table_at(plan, "outcome")
    kind = "items" if isinstance(actions, dict) else "names"
    made: dict[str, Any] = {
        name: text_of(table_at(document, *path[:-1]).get(path[-1])) for name, path in SIMPLE.items()
    }
    if actions is None and "n_actions" in plan:
        kind = "count"
    names = [str(each) for each in actions] if isinstance(actions, list) else []
    catalogue = table_at(plan, "actions")
    clicks = {key: outcome.get(key) for key in ("kind", "low", "high")} == {
        "kind": "Reward",
        "low": 0,
        "high": 1,
    }
    features = table_at(plan, "features")
    return made | {
        "actions_kind": kind,
        "action": names,
        "n_actions": text_of(plan.get("n_actions")),
        "items": _items_text(catalogue.get("items")),
        "items_elsewhere": "ids" in catalogue or not isinstance(catalogue.get("items", []), list),
        "item": [_row(each) for each in tables_in(table_at(catalogue, "schema").get("fields"))],
        "outcome": "click" if clicks else "reward" if outcome.get("kind") == "Reward" else "loss",
        "low": text_of(outcome.get("low", None if outcome else 0)),
        "high": text_of(outcome.get("high", None if outcome else 1)),
        "control": "share" if "control" in plan else "none",
        "choices": _choices(kind, names, plan, control.get("action")),
        "share": _percent(control.get("share", 0.1)),
        "control_action": text_of(control.get("action", "uniform")),
        "unit": text_of(document.get("unit", "decision")),
        "row": _row({"kind": "Number", "clip": True, "other": True}),
        "col": [_row(each) for each in tables_in(features.get("fields"))],
        "other_features": features.get("kind", "Schema") != "Schema",
    }


def _choices(
    kind: str, names: list[str], plan: Mapping[str, Any], chosen: object
) -> list[tuple[str, str]]:
    """Return values and words of the actions that a control may get; a chosen number stays one."""
    if kind == "items":
        names = [str(each.get(ID)) for each in tables_in(table_at(plan, "actions").get("items"))]
    if kind == "count":
        count = plan.get("n_actions")
        return [
            (str(i), f"action {i}") for i in range(min(count, 100) if type(count) is int else 0)
        ]
    number = chosen if type(chosen) is int else None
    return [(str(i) if i == number else name, name) for i, name in enumerate(names)]


def _row(column: Document) -> dict[str, str]:
    """Return the texts of one column."""
    listed = {
        "values": "\n".join(map(text_of, column.get("values") or ())),
        "parts": ", ".join(map(text_of, column.get("parts") or ("weekday", "hour"))),
    }
    texts = {key: text_of(column.get(key)) for keys in KEYS.values() for key in keys} | listed
    gaps = "stand_in" if "stand_in" in column else "refused"
    values = column.get("values")
    name = text_of(column.get("name"))
    return texts | {
        "name": name,
        "kind": text_of(column.get("kind")),
        "clip": texts["clip"] or "no",
        "other": texts["other"] or "no",
        "missing": "indicator" if column.get("indicator") else gaps,
        "stand_in": text_of(column.get("stand_in")),
        "warning": column_warning(name, values if isinstance(values, list) else ()),
    }


@dataclass
class Edit:
    """Values of the file after a form, what could not be read, and texts that the file lacks."""

    document: Document
    problems: dict[str, str] = field(default_factory=dict)
    texts: dict[str, Any] = field(default_factory=dict)
    blank: dict[str, int] = field(default_factory=dict)
    """Rows of each list that are still empty."""


def edited(document: Document, fields: Fields) -> Edit:
    """Return the values of a file after somebody sent the form that showed them."""
    made, before = Edit(copy.deepcopy(document)), shown(document)

    def typed(name: str) -> str:
        return fields[name][0].strip() if name in fields else str(before[name])

    unit = typed("unit")
    for name, path in SIMPLE.items():
        text = typed(name)
        if text != before[name] and (name not in OF_USER or unit == "user"):
            _put(made.document, path, text if name in WORDS else value_of(text))
    if unit != before["unit"]:
        _put(made.document, ("unit",), unit)
        for name in OF_USER if unit != "user" else ():
            made.document.pop(name, None)
    plan = made.document.get("plan")
    if not isinstance(plan, dict):
        plan = made.document["plan"] = {}
    _edit_actions(plan, fields, typed, before, made)
    _edit_outcome(plan, typed, before)
    _edit_control(plan, typed, before)
    columns, made.blank["col"] = _columns(fields, "col", table_at(plan, "features").get("fields"))
    if "col_name" in fields and (columns or not before["other_features"]):
        old = {} if before["other_features"] else dict(table_at(plan, "features"))
        if columns != old.get("fields"):
            plan["features"] = {"kind": "Schema"} | old | {"fields": columns}
    after = shown(made.document)
    kept = (*SIMPLE, "n_actions", "items", "low", "high", "share")
    made.texts |= {name: typed(name) for name in kept if typed(name) != after[name]}
    if not after["action"]:  # the names, while another kind of actions is chosen
        made.texts["action"] = [each for each in map(str.strip, fields.get("action", ())) if each]
    return made


def _put(document: Document, path: tuple[str, ...], value: object) -> None:
    """Set a value of the file; an empty text removes it, so that its default applies."""
    *tables, last = path
    for key in tables:
        if not isinstance(document.get(key), dict):
            document[key] = {}
        document = document[key]
    if value == "":
        document.pop(last, None)
    else:
        document[last] = value


Typed = Callable[[str], str]


def _edit_actions(
    plan: Document, fields: Fields, typed: Typed, before: Mapping[str, Any], made: Edit
) -> None:
    kind = typed("actions_kind")
    names = [each.strip() for each in fields.get("action", before["action"])]
    made.blank["action"] = names.count("")
    names = [each for each in names if each]
    if kind == "names" and (names != before["action"] or kind != before["actions_kind"]):
        plan["actions"] = names
        plan.pop("n_actions", None)
    elif kind == "count" and (
        kind != before["actions_kind"] or typed("n_actions") != before["n_actions"]
    ):
        plan.pop("actions", None)
        _put(plan, ("n_actions",), value_of(typed("n_actions")))
    elif kind == "items" and not before["items_elsewhere"]:
        _edit_items(plan, fields, typed, before, made)


def _edit_items(
    plan: Document, fields: Fields, typed: Typed, before: Mapping[str, Any], made: Edit
) -> None:
    """Read the items of a catalogue, and the columns that describe them."""
    table = dict(table_at(plan, "actions"))
    schema = dict(table_at(table, "schema"))
    columns, made.blank["item"] = _columns(fields, "item", schema.get("fields"))
    if "item_name" in fields and columns != schema.get("fields"):
        table["schema"] = {"kind": "Schema"} | schema | {"fields": columns}
    text = typed("items").replace("\r\n", "\n")
    if text != before["items"] or "items" not in table:
        try:
            table["items"] = _items(text, columns)
        except InvalidInput as error:
            made.problems["items"] = str(error)
            table.setdefault("items", [])
    if table != plan.get("actions"):
        plan["actions"] = table
        plan.pop("n_actions", None)


def _items_text(items: object) -> str:
    """Return the items of a catalogue as CSV."""
    rows = tables_in(items)
    titles = list(dict.fromkeys([ID, *(key for row in rows for key in row)]))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([titles, *([text_of(row.get(key)) for key in titles] for row in rows)])
    return file.getvalue().strip() if rows else ""


def _items(text: str, columns: list[Document]) -> list[Document]:
    """Return the items of a CSV text; a column of numbers has numbers, and so on."""
    numeric = {each.get("name") for each in columns if each.get("kind") == "Number"}
    numeric |= {
        each.get("name")
        for each in columns
        if each.get("kind") == "Category"
        and all(isinstance(value, int) for value in each.get("values", [""]))
    }
    flags = {each.get("name") for each in columns if each.get("kind") == "Flag"}
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    titles = [title.strip() for title in rows[0]] if rows else []
    made = []
    for place, row in enumerate(rows[1:], start=2):
        if len(row) != len(titles):
            raise InvalidInput(
                f"items, line {place} must have {len(titles)} values, as the first line; it has "
                f"{len(row)}. Quote values that contain commas."
            )
        item: Document = {}
        for title, cell in zip(titles, map(str.strip, row), strict=True):
            if title in flags and cell.lower() in ("yes", "no", "true", "false"):
                item[title] = cell.lower() in ("yes", "true")
            elif cell:
                item[title] = value_of(cell) if title in numeric else cell
        made.append(item)
    return made


def _edit_outcome(plan: Document, typed: Typed, before: Mapping[str, Any]) -> None:
    kind, ends = typed("outcome"), {key: typed(key) for key in ("low", "high")}
    if kind == before["outcome"] and (
        kind == "click" or ends == {key: before[key] for key in ends}
    ):
        return
    clip = {"clip": True} if table_at(plan, "outcome").get("clip") is True else {}
    if kind == "click":
        plan["outcome"] = {"kind": "Reward", "low": 0, "high": 1} | clip
        return
    values = {key: value_of(text) for key, text in ends.items() if text}
    plan["outcome"] = {"kind": "Loss" if kind == "loss" else "Reward"} | values | clip


def _edit_control(plan: Document, typed: Typed, before: Mapping[str, Any]) -> None:
    if typed("control") == "none":
        plan.pop("control", None)
        return
    made, names = dict(table_at(plan, "control")), before["action"]
    number = made.get("action")
    if type(number) is int and 0 <= number < len(names):  # another action must not take its number
        after = plan.get("actions")
        if isinstance(after, list) and names[number] in after[:number] + after[number + 1 :]:
            made["action"] = names[number]
    if before["control"] == "none" or typed("share") != before["share"]:
        _put(made, ("share",), share_of(typed("share")))
    if before["control"] == "none" or typed("control_action") != before["control_action"]:
        action = typed("control_action")
        named = isinstance(plan.get("actions"), (list, dict))
        _put(made, ("action",), action if named else value_of(action))
    plan["control"] = made


def _columns(fields: Fields, group: str, known: object) -> tuple[list[Document], int]:
    """Return the columns of the rows that were sent, and the number of empty rows."""
    before, made, blank = tables_in(known), [], 0
    for number in range(len(fields.get(f"{group}_name", ()))):
        row = {
            name.removeprefix(f"{group}_"): (fields.get(name, [])[number : number + 1] or [""])[0]
            for name in ROWS[group]
        }
        row = {key: text.strip().replace("\r\n", "\n") for key, text in row.items()}
        was = int(row["was"]) if row["was"].isascii() and row["was"].isdecimal() else len(before)
        old = before[was] if was < len(before) else {}
        if not old and not any(row[key] for key in ("name", "low", "high", "values", "width")):
            blank += 1
        else:
            made.append(_column(row, old))
    return made, blank


def _column(row: Mapping[str, str], old: Document) -> Document:
    """Return the declaration of a column; keys that the form does not show are those of ``old``."""
    before, kind = _row(old), row["kind"]
    made: Document = dict(old) if old.get("kind") == kind else {"kind": kind}
    if row["name"] != before["name"] or "name" not in made:
        made["name"] = row["name"]
    for key in KEYS.get(kind, ()):
        text = row[key]
        if old.get("kind") == kind and text == before[key]:
            continue
        if key in ("clip", "other"):
            made.pop(key, None)
            made |= {key: True} if text == "yes" else {}
        elif key == "parts":
            made[key] = [part.strip() for part in text.split(",") if part.strip()]
        elif key == "values":
            whole = bool(old.get("values")) and all(type(each) is int for each in old["values"])
            words = [word.strip() for word in text.split("\n") if word.strip()]
            made[key] = [value_of(word) if whole else word for word in words]
        else:
            _put(made, (key,), value_of(text))
    if row["missing"] != before["missing"] or old.get("kind") != kind:
        made.pop("indicator", None)
        if row["missing"] != "stand_in":
            made.pop("stand_in", None)
        made |= {"indicator": True} if row["missing"] == "indicator" else {}
    return made
