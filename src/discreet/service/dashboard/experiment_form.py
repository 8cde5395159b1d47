"""Form of a new experiment: a second view of its file.

The text of the file is the only state. The form shows its values as texts; texts that were changed
become values of the file, and settings that the form has no field for stay as they are.
"""

from __future__ import annotations

import copy
import csv
import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from discreet.errors import InvalidInput
from discreet.features.sample_schema import column_warning
from discreet.releases.catalogue import ID
from discreet.types import JsonMapping, JsonObject

Fields = dict[str, list[str]]
"""What a browser sends: texts by the name of their input."""

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


def table_at(document: JsonMapping, *keys: str) -> JsonMapping:
    """Return a table of the file; an empty one where there is none."""
    for key in keys:
        found = document.get(key)
        document = found if isinstance(found, Mapping) else {}
    return document


def tables_in(value: object) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def shown(document: JsonObject) -> JsonObject:
    """Return the texts of all fields, the choices, and the rows of actions and columns."""
    plan, control = table_at(document, "plan"), table_at(document, "plan", "control")
    actions, outcome = plan.get("actions"), table_at(plan, "outcome")
    kind = "items" if isinstance(actions, dict) else "names"
    made: JsonObject = {
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
    kind: str, names: list[str], plan: JsonMapping, chosen: object
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


def _row(column: JsonObject) -> dict[str, str]:
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

    document: JsonObject
    problems: dict[str, str] = field(default_factory=dict)
    texts: JsonObject = field(default_factory=dict)
    blank: dict[str, int] = field(default_factory=dict)
    """Rows of each list that are still empty."""


def edited(document: JsonObject, fields: Fields) -> Edit:
    """Return the values of a file after somebody sent the form that showed them."""
    editor = _Editor(document, fields)
    editor.simple()
    for part in (editor.actions, editor.outcome, editor.control, editor.columns):
        part()
    made, after = editor.made, shown(editor.made.document)
    kept = (*SIMPLE, "n_actions", "items", "low", "high", "share")
    made.texts |= {name: editor.typed(name) for name in kept if editor.typed(name) != after[name]}
    if not after["action"]:  # the names, while another kind of actions is chosen
        made.texts["action"] = [each for each in map(str.strip, fields.get("action", ())) if each]
    return made


class _Editor:
    """Changes of a file by the texts of a form; a text that was not changed changes nothing."""

    def __init__(self, document: JsonObject, fields: Fields) -> None:
        self.made, self.fields, self.before = Edit(copy.deepcopy(document)), fields, shown(document)
        if not isinstance(self.made.document.get("plan"), dict):
            self.made.document["plan"] = {}
        self.plan: JsonObject = self.made.document["plan"]

    def typed(self, name: str) -> str:
        """Return the text of a field; of one that was not sent, as it was."""
        return self.fields[name][0].strip() if name in self.fields else str(self.before[name])

    def changed(self, *names: str) -> bool:
        return any(self.typed(name) != self.before[name] for name in names)

    def simple(self) -> None:
        user = self.typed("unit") == "user"
        for name, path in SIMPLE.items():
            if self.changed(name) and (name not in OF_USER or user):
                text = self.typed(name)
                _put(self.made.document, path, text if name in WORDS else value_of(text))
        if self.changed("unit"):
            self.made.document["unit"] = self.typed("unit")
            for name in () if user else OF_USER:
                self.made.document.pop(name, None)

    def actions(self) -> None:
        kind = self.typed("actions_kind")
        sent: list[str] = self.fields.get("action") or self.before["action"]
        names = [each.strip() for each in sent if each.strip()]
        self.made.blank["action"] = len(sent) - len(names)
        if kind == "names" and (names != self.before["action"] or self.changed("actions_kind")):
            self.plan["actions"] = names
            self.plan.pop("n_actions", None)
        elif kind == "count" and self.changed("actions_kind", "n_actions"):
            self.plan.pop("actions", None)
            _put(self.plan, ("n_actions",), value_of(self.typed("n_actions")))
        elif kind == "items" and not self.before["items_elsewhere"]:
            self._items()

    def _items(self) -> None:
        """Read the items of a catalogue, and the columns that describe them."""
        table = dict(table_at(self.plan, "actions"))
        schema = dict(table_at(table, "schema"))
        columns, self.made.blank["item"] = _columns(self.fields, "item", schema.get("fields"))
        if "item_name" in self.fields and columns != schema.get("fields"):
            table["schema"] = {"kind": "Schema"} | schema | {"fields": columns}
        text = self.typed("items").replace("\r\n", "\n")
        if text != self.before["items"] or "items" not in table:
            try:
                table["items"] = _items(text, columns)
            except InvalidInput as error:
                self.made.problems["items"] = str(error)
                table.setdefault("items", [])
        if table != self.plan.get("actions"):
            self.plan["actions"] = table
            self.plan.pop("n_actions", None)

    def outcome(self) -> None:
        kind = self.typed("outcome")
        if not self.changed("outcome") and (kind == "click" or not self.changed("low", "high")):
            return
        clip = table_at(self.plan, "outcome").get("clip")
        values: JsonObject = {"low": 0, "high": 1}
        if kind != "click":
            texts = {key: self.typed(key) for key in values}
            values = {key: value_of(text) for key, text in texts.items() if text}
        name = {"kind": "Loss" if kind == "loss" else "Reward"}
        self.plan["outcome"] = name | values | ({} if clip is None else {"clip": clip})

    def control(self) -> None:
        if self.typed("control") == "none":
            self.plan.pop("control", None)
            return
        made, names = dict(table_at(self.plan, "control")), self.before["action"]
        number, after = made.get("action"), self.plan.get("actions")
        if type(number) is int and 0 <= number < len(names) and isinstance(after, list):
            moved = names[number] in after[:number] + after[number + 1 :]
            made["action"] = names[number] if moved else number  # and no other one by its number
        new = self.before["control"] == "none"
        if new or self.changed("share"):
            _put(made, ("share",), share_of(self.typed("share")))
        if new or self.changed("control_action"):
            action, named = self.typed("control_action"), isinstance(after, (list, dict))
            _put(made, ("action",), action if named else value_of(action))
        self.plan["control"] = made

    def columns(self) -> None:
        features = table_at(self.plan, "features")
        columns, self.made.blank["col"] = _columns(self.fields, "col", features.get("fields"))
        if "col_name" in self.fields and (columns or not self.before["other_features"]):
            old = {} if self.before["other_features"] else dict(features)
            if columns != old.get("fields"):
                self.plan["features"] = {"kind": "Schema"} | old | {"fields": columns}


def _put(document: JsonObject, path: tuple[str, ...], value: object) -> None:
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


def _items_text(items: object) -> str:
    """Return the items of a catalogue as CSV."""
    rows = tables_in(items)
    titles = list(dict.fromkeys([ID, *(key for row in rows for key in row)]))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([titles, *([text_of(row.get(key)) for key in titles] for row in rows)])
    return file.getvalue().strip() if rows else ""


def _items(text: str, columns: list[JsonObject]) -> list[JsonObject]:
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
        item: JsonObject = {}
        for title, cell in zip(titles, map(str.strip, row), strict=True):
            if title in flags and cell.lower() in ("yes", "no", "true", "false"):
                item[title] = cell.lower() in ("yes", "true")
            elif cell:
                item[title] = value_of(cell) if title in numeric else cell
        made.append(item)
    return made


def _columns(fields: Fields, group: str, known: object) -> tuple[list[JsonObject], int]:
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


def _column(row: Mapping[str, str], old: JsonObject) -> JsonObject:
    """Return the declaration of a column; keys that the form does not show are those of ``old``."""
    before, kind = _row(old), row["kind"]
    made: JsonObject = dict(old) if old.get("kind") == kind else {"kind": kind}
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
