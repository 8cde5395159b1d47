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
from decimal import Decimal, InvalidOperation

from discreet.errors import InvalidInput
from discreet.features.schema_file import column_warning
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
    "guardrails_share": ("plan", "guardrails_share"),
    "epsilon": ("plan", "budget", "epsilon"),
    "delta": ("plan", "budget", "delta"),
}
"""Fields that are one value of the file each, and its keys."""
WORDS = ("name", "question", "close_every", "worse")
PERCENT, OF_USER = ("guardrails_share",), ("batches_per_user", "records_per_batch")
KEYS = {
    "Number": ("low", "high", "clip"),
    "Flag": (),
    "Category": ("values", "other"),
    "Hashed": ("width",),
    "Date": ("parts",),
}
"""Kinds of columns, and the keys of each that the form has a field for."""
GUARDRAIL = {"name": None, "low": 0, "high": 1, "worse": "higher", "limit": 0}
"""Keys of a guardrail, and their defaults."""
_COLUMN = ("was", "name", "kind", "missing", *(key for keys in KEYS.values() for key in keys))
ROWS = {
    "action": ("action",),
    "col": tuple(f"col_{key}" for key in _COLUMN),
    "item": tuple(f"item_{key}" for key in _COLUMN),
    "rail": tuple(f"rail_{key}" for key in ("was", *GUARDRAIL)),
}
"""Inputs of each row of a list; a browser sends one text per row and input."""
TYPED = ("name", "low", "high", "values", "width", "limit")
"""Inputs of a row that are empty, or as they were, that nobody has filled."""


def text_of(value: object) -> str:
    """Return a value of the file as a field shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.15g}".replace("e-0", "e-")
    return "" if value is None else str(value)


def value_of(text: str) -> int | float | str:
    """Return the number of a text; another text is returned, for the library to refuse."""
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


def _read(name: str, text: str) -> int | float | str:
    if name in PERCENT and text:
        return share_of(text)
    return text if name in WORDS else value_of(text)


def table_at(document: JsonMapping, *keys: str) -> JsonMapping:
    """Return a table of the file; an empty one where there is none."""
    for key in keys:
        found = document.get(key)
        document = found if isinstance(found, Mapping) else {}
    return document


def tables_in(value: object) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def shown(document: JsonObject) -> JsonObject:
    """Return the texts of all fields, the choices, and the rows of the lists."""
    plan, control = table_at(document, "plan"), table_at(document, "plan", "control")
    actions, outcome = plan.get("actions"), table_at(plan, "outcome")
    catalogue, features = table_at(plan, "actions"), table_at(plan, "features")
    kind = "items" if isinstance(actions, dict) else "names"
    if actions is None and "n_actions" in plan:
        kind = "count"
    made: JsonObject = {}
    for name, path in SIMPLE.items():
        value = table_at(document, *path[:-1]).get(path[-1])
        made[name] = _percent(value) if name in PERCENT else text_of(value)
    reward = outcome.get("kind") == "Reward"
    clicks = reward and (outcome.get("low"), outcome.get("high")) == (0, 1)
    return made | {
        "actions_kind": kind,
        "action": [*map(str, actions)] if isinstance(actions, list) else [],
        "n_actions": text_of(plan.get("n_actions")),
        "items": _items_text(catalogue.get("items")),
        "items_elsewhere": "ids" in catalogue or not isinstance(catalogue.get("items", []), list),
        "item": [_row(each) for each in tables_in(table_at(catalogue, "schema").get("fields"))],
        "outcome": "click" if clicks else "reward" if reward else "loss",
        "low": text_of(outcome.get("low", None if outcome else 0)),
        "high": text_of(outcome.get("high", None if outcome else 1)),
        "rail": [_rail(each) for each in tables_in(plan.get("guardrails"))],
        "control": "share" if "control" in plan else "none",
        "choices": _choices(kind, plan, control.get("action")),
        "share": _percent(control.get("share", 0.1)),
        "control_action": text_of(control.get("action", "uniform")),
        "unit": text_of(document.get("unit", "decision")),
        "new_row": _row({"kind": "Number", "clip": True, "other": True}),
        "new_rail": _rail({}),
        "col": [_row(each) for each in tables_in(features.get("fields"))],
        "other_features": features.get("kind", "Schema") != "Schema",
    }


def _choices(kind: str, plan: JsonMapping, chosen: object) -> list[tuple[str, str]]:
    """Return values and words of the actions that a control may get; a chosen number stays one."""
    actions = plan.get("actions")
    names = [*map(str, actions)] if isinstance(actions, list) else []
    if kind == "items":
        names = [str(each.get(ID)) for each in tables_in(table_at(plan, "actions").get("items"))]
    elif kind == "count":
        count = plan.get("n_actions")
        numbers = range(min(count, 100) if type(count) is int else 0)
        return [(str(i), f"action {i}") for i in numbers]
    number = chosen if type(chosen) is int else None
    return [(str(i) if i == number else name, name) for i, name in enumerate(names)]


def _row(column: JsonObject) -> dict[str, str]:
    texts = {key: text_of(column.get(key)) for key in _COLUMN}
    values = column.get("values")
    gaps = "stand_in" if "stand_in" in column else "refused"
    return texts | {
        "values": "\n".join(map(text_of, values or ())),
        "parts": ", ".join(map(text_of, column.get("parts") or ("weekday", "hour"))),
        "clip": texts["clip"] or "no",
        "other": texts["other"] or "no",
        "missing": "indicator" if column.get("indicator") else gaps,
        "stand_in": text_of(column.get("stand_in")),
        "warning": column_warning(texts["name"], values if isinstance(values, list) else ()),
    }


def _rail(guardrail: JsonObject) -> dict[str, str]:
    return {key: text_of(guardrail.get(key, usual)) for key, usual in GUARDRAIL.items()}


class Edit:
    """Values of a file after somebody sent its form; texts that were not changed change nothing.

    ``texts`` are those that were sent, ``blank`` counts empty rows of each list.
    """

    def __init__(self, document: JsonObject, fields: Fields) -> None:
        self.document, self.fields, self.before = copy.deepcopy(document), fields, shown(document)
        self.problems: dict[str, str] = {}
        self.blank: dict[str, int] = {}
        if not isinstance(self.document.get("plan"), dict):
            self.document["plan"] = {}
        self.plan: JsonObject = self.document["plan"]
        self._simple()
        self._actions()
        self._outcome()
        self._control()
        self._guardrails()
        self._columns()
        after = shown(self.document)
        single = (*SIMPLE, "n_actions", "items", "low", "high", "share")
        self.texts: JsonObject = {name: self.typed(name) for name in single if name in fields}
        if "action" in fields and not after["action"]:  # names, while other actions are chosen
            self.texts["action"] = [*filter(None, map(str.strip, fields["action"]))]

    def typed(self, name: str) -> str:
        """Return the text of a field; of one that was not sent, as it was."""
        return self.fields[name][0].strip() if name in self.fields else str(self.before[name])

    def changed(self, *names: str) -> bool:
        return any(self.typed(name) != self.before[name] for name in names)

    def _simple(self) -> None:
        other = () if self.typed("unit") == "user" else OF_USER
        for name, path in SIMPLE.items():
            if self.changed(name) and name not in other:
                _put(self.document, path, _read(name, self.typed(name)))
        if self.changed("unit"):
            self.document["unit"] = self.typed("unit")
            for name in other:
                self.document.pop(name, None)

    def _actions(self) -> None:
        kind = self.typed("actions_kind")
        sent: list[str] = self.fields.get("action") or self.before["action"]
        names = [each.strip() for each in sent if each.strip()]
        self.blank["action"] = len(sent) - len(names)
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
        columns = self._rows("item", schema.get("fields"))
        if "item_name" in self.fields and columns != schema.get("fields"):
            table["schema"] = {"kind": "Schema"} | schema | {"fields": columns}
        text = self.typed("items").replace("\r\n", "\n")
        if text != self.before["items"] or "items" not in table:
            try:
                table["items"] = _items(text, columns)
            except InvalidInput as error:
                self.problems["items"] = str(error)
                table.setdefault("items", [])
        if table != self.plan.get("actions"):
            self.plan["actions"] = table
            self.plan.pop("n_actions", None)

    def _outcome(self) -> None:
        kind = self.typed("outcome")
        if not self.changed("outcome") and (kind == "click" or not self.changed("low", "high")):
            return
        clip = table_at(self.plan, "outcome").get("clip")
        texts = {"low": "0", "high": "1"}
        if kind != "click":
            texts = {key: text for key in texts if (text := self.typed(key))}
        values = {key: value_of(text) for key, text in texts.items()}
        name = {"kind": "Loss" if kind == "loss" else "Reward"}
        self.plan["outcome"] = name | values | ({} if clip is None else {"clip": clip})

    def _control(self) -> None:
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

    def _guardrails(self) -> None:
        before = tables_in(self.plan.get("guardrails"))
        made = self._rows("rail", before)
        if "rail_name" in self.fields and made != before:
            self.plan["guardrails"] = made
            if not made:
                del self.plan["guardrails"]
                self.plan.pop("guardrails_share", None)

    def _columns(self) -> None:
        features = table_at(self.plan, "features")
        columns = self._rows("col", features.get("fields"))
        if "col_name" in self.fields and (columns or not self.before["other_features"]):
            old = {} if self.before["other_features"] else dict(features)
            if columns != old.get("fields"):
                self.plan["features"] = {"kind": "Schema"} | old | {"fields": columns}

    def _rows(self, group: str, known: object) -> list[JsonObject]:
        """Return the tables of the rows that were sent, and count the empty rows."""
        texts_of, make = (_rail, _guardrail) if group == "rail" else (_row, _column)
        before, made, blank = tables_in(known), [], 0
        for number in range(len(self.fields.get(f"{group}_name", ()))):
            texts = {name: "".join(self.fields.get(name, [])[number:][:1]) for name in ROWS[group]}
            row = {
                name.removeprefix(f"{group}_"): text.strip().replace("\r\n", "\n")
                for name, text in texts.items()
            }
            index = row["was"]
            was = int(index) if index.isascii() and index.isdecimal() else len(before)
            old = before[was] if was < len(before) else {}
            shown_before = texts_of(old)
            if not old and all(row.get(key, "") in ("", shown_before.get(key)) for key in TYPED):
                blank += 1
            else:
                made.append(make(row, old, shown_before))
        self.blank[group] = blank
        return made


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
    rows, file = tables_in(items), io.StringIO()
    titles = list(dict.fromkeys([ID, *(key for row in rows for key in row)]))
    lines = [titles, *([text_of(row.get(key)) for key in titles] for row in rows)]
    csv.writer(file, lineterminator="\n").writerows(lines if rows else [])
    return file.getvalue().strip()


def _items(text: str, columns: list[JsonObject]) -> list[JsonObject]:
    """Return the items of a CSV text, with values as their columns read them."""
    known = {each.get("name"): each for each in columns}
    rows = [[*map(str.strip, row)] for row in csv.reader(io.StringIO(text)) if row]
    for line, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InvalidInput(
                f"items, line {line} must have {len(rows[0])} values, as the first line; it has "
                f"{len(row)}. Quote values that contain commas."
            )
    pairs = (zip(rows[0], row, strict=True) for row in rows[1:])
    return [{key: _cell(text, known.get(key, {})) for key, text in row if text} for row in pairs]


def _cell(text: str, column: JsonObject) -> object:
    kind, values = column.get("kind"), column.get("values", [""])
    if kind == "Flag" and text.lower() in ("yes", "no", "true", "false"):
        return text.lower() in ("yes", "true")
    whole = kind == "Category" and all(isinstance(value, int) for value in values)
    return value_of(text) if kind == "Number" or whole else text


def _guardrail(row: dict[str, str], old: JsonObject, before: dict[str, str]) -> JsonObject:
    """Return the declaration of a guardrail; defaults that nobody changed are left out."""
    made = {"name": ""} | old | {"name": row["name"]}
    for key in ("low", "high", "worse", "limit"):
        if row[key] != before[key]:
            _put(made, (key,), _read(key, row[key]))
    return made


def _column(row: dict[str, str], old: JsonObject, before: dict[str, str]) -> JsonObject:
    """Return a column; keys that the form does not show are those of ``old``."""
    kind, same = row["kind"], old.get("kind") == row["kind"]
    made: JsonObject = dict(old) if old.get("kind") == kind else {"kind": kind}
    if row["name"] != before["name"] or "name" not in made:
        made["name"] = row["name"]
    for key in KEYS.get(kind, ()):
        text = row[key]
        if same and text == before[key]:
            continue
        if key in ("clip", "other"):
            _put(made, (key,), True if text == "yes" else "")
        elif key in ("parts", "values"):
            words = [each.strip() for each in text.split("\n" if key == "values" else ",")]
            whole = all(type(each) is int for each in old.get(key) or [""])
            made[key] = [value_of(word) if whole else word for word in words if word]
        else:
            _put(made, (key,), value_of(text))
    if row["missing"] != before["missing"] or not same:
        _put(made, ("indicator",), True if row["missing"] == "indicator" else "")
        if row["missing"] != "stand_in":
            made.pop("stand_in", None)
    return made
