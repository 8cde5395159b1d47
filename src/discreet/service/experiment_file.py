"""Files of experiments: examples, changes that keep comments, and detection of edits."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomlkit
import tomlkit.items

from discreet.errors import CorruptRelease, InvalidInput
from discreet.service.logs import Log
from discreet.service.settings import Settings
from discreet.service.settings_sources import named_files
from discreet.text import parse_toml
from discreet.types import JsonMapping

_START = "# Start it with   discreet serve --config experiment.toml\n"
_LISTEN = """\
host = "127.0.0.1"
port = 8000

"""

EXPERIMENT_EXAMPLE = f"""\
# An experiment: which of three greetings suits whom. Everything in this file is public.
{_START}
experiment = "welcome"
# question = "Which greeting makes more people stay?"    # shown on the pages
database = "discreet.db"    # or postgresql://user@host/name, for several workers
vault = "vault"             # secrets: never in a backup together with the database
# anchor = "/mnt/other/welcome.jsonl"    # notices restored backups; --init says where it lies

window = 10                 # seconds that losses are awaited after a batch is full; or "6h", "7d"
settle = 1                  # seconds after that in which the fit is made
waiting = "pipeline"        # meanwhile the next batch opens; with "gap" nothing is stored
journal = "decide"          # write at decide; "observe" writes once, when the loss comes
unit = "decision"           # what is protected; or "user", all that one person contributes, with
# batches_per_user = 10     # so many batches in which a person's records count, and
# records_per_batch = 1     # so many records in each; further ones are served and void
mode = "online"             # at the start; or "shadow", "frozen"
default_action = 0          # number, or name, of the action of shadow mode
public_releases = false     # whether releases can be read without a key

{_LISTEN}[plan]
n_actions = 3               # or actions = ["plain", "friendly", "brief"]: then answers have names
# outcome = {{ kind = "Reward", low = 0, high = 50 }}    # people send rewards, not losses in [0, 1]
first_batch = 64            # slots of the first batch; each next one is half as long again
# missing_loss = 1.0        # stands in for a loss that never comes; left out, the slot is void
# control = {{ share = 0.1, action = 0 }}    # a tenth plays action 0, to compare: docs/lift.md
# guardrails = [{{ name = "complaints" }}]    # other outcomes to watch: docs/guardrails.md
# policy and oracle are chosen from public numbers; [plan.policy] and [plan.oracle] choose others

[plan.budget]
epsilon = 1.0
delta = 1e-6

[plan.features]
kind = "Schema"

[[plan.features.fields]]
kind = "Number"
name = "hour"
low = 0
high = 24

[[plan.features.fields]]
kind = "Category"
name = "device"
values = ["phone", "tablet", "desk"]
other = true
"""

FOLDER_EXAMPLE = EXPERIMENT_EXAMPLE.replace(_START, "").replace(_LISTEN, "")
"""The example for one of many experiments: the server starts it and listens for it."""

SERVER_EXAMPLE = """\
# A server of many experiments, each in its folder under experiments/.
# Start it with   discreet serve --folder .
# Begin one with  discreet experiment new NAME --folder .

host = "127.0.0.1"
port = 8000
# prefix = "/bandit"             # where a reverse proxy serves it below a path
# database = "postgresql://user@host/name"    # a schema for each experiment; allows --workers 4
# anchors = "/mnt/other/anchors" # what was published, best on another disk
# sign_in_header = "X-Webauth-User"   # single sign-on by a proxy at one of these addresses
# sign_in_proxies = ["127.0.0.1"]
"""


FORM_EXAMPLE = """\
experiment = ""
question = ""
window = "1d"

[plan]
actions = []
outcome = { kind = "Reward", low = 0, high = 1 }
missing_loss = 1.0
control = { share = 0.1, action = 0 }
first_batch = 64

[plan.budget]
epsilon = 1.0
delta = 1e-6

[plan.features]
kind = "Schema"
fields = []
"""
"""The file with which the form of a new experiment begins."""


def rewritten(text: str, wanted: JsonMapping) -> str:
    """Return the TOML text with these values; comments and the order of lines are kept.

    >>> rewritten("a = 1  # one\\n", {"a": 2, "b": ["x"]})
    'a = 2  # one\\nb = ["x"]\\n'
    """
    document = tomlkit.parse(text)
    _change(document, wanted)
    changed = tomlkit.dumps(document)
    with suppress(InvalidInput):
        if parse_toml(changed, "this text", "experiment") == wanted:
            return changed
    return tomlkit.dumps(wanted)  # without comments; no value is lost


def _change(table: MutableMapping[str, Any], wanted: JsonMapping) -> None:
    for key in [key for key in table if key not in wanted]:
        del table[key]
    for key, value in wanted.items():
        old = table.get(key)
        plain: Any = old.unwrap() if isinstance(old, tomlkit.items.Item) else old
        if old is not None and repr(plain) == repr(value):
            continue
        if isinstance(plain, dict) and isinstance(value, dict):
            _change(table[key], value)
        elif _tables(plain) and _tables(value) and len(plain) == len(value):
            for each, new in zip(table[key], value, strict=True):
                _change(each, new)
        elif isinstance(value, dict) and not any(isinstance(v, dict) for v in value.values()):
            table[key] = tomlkit.inline_table()
            table[key].update(value)
        else:
            table[key] = value


def _tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


class ExperimentFile:
    """Comparison of the experiment file with the settings that are served.

    An edit takes effect only after a restart. ``differs`` lists the keys whose values have changed,
    never the values: one may be a password. ``readable`` is False if the file is missing, or if no
    service could start from it.
    """

    def __init__(self, path: Path, settings: Settings, log: Log) -> None:
        self._path, self._settings, self._log = path, settings, log
        self._seen: tuple[int, ...] | None = None
        self._named = named_files(path)
        self.differs: list[str] = []
        self.readable = True

    def look(self) -> None:
        """Compare the file if it was written to, and log what has changed."""
        seen = self._stamp()
        if seen == self._seen:
            return
        before = (self.readable, self.differs)
        try:
            now = Settings.read(self._path)
            self.readable, self.differs = True, changed_keys(self._settings.values, now.values)
        except (InvalidInput, CorruptRelease):  # the latter for the file of a prior
            self.readable, self.differs = False, []
        named = named_files(self._path)  # if the file names others now, compare once more
        self._seen, self._named = (seen if named == self._named else None), named
        if (self.readable, self.differs) == before:
            return
        if not self.readable:
            self._log.event("experiment file unreadable")
        elif self.differs:
            self._log.event("experiment file differs", keys=self.differs)
        else:
            self._log.event("experiment file as served")

    def _stamp(self) -> tuple[int, ...]:
        """Return a value that changes with every write, even if the file's time is set back."""
        stamp: tuple[int, ...] = ()
        for path in (self._path, *self._named):
            with suppress(OSError):
                found = path.stat()
                stamp += found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        return stamp


def _with_items(table: Mapping[str, object]) -> dict[str, object]:
    """Return a catalogue's table with its ids and rows as one value."""
    rest = {name: table[name] for name in table if name not in ("ids", "rows")}
    return {**rest, "items": repr((table.get("ids"), table.get("rows")))}


def changed_keys(one: object, other: object, key: str = "") -> list[str]:
    """Return the keys under which two settings differ, as in "plan.budget.epsilon"."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.get("kind") != other.get("kind"):  # then the other keys cannot be compared
            return [f"{key}.kind"]
        if "rows" in one:  # a catalogue, whose rows the file calls items
            one, other = _with_items(one), _with_items(other)
        names = sorted(one.keys() | other.keys())
        parts = [(name, one.get(name), other.get(name)) for name in names]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [(str(i), *pair) for i, pair in enumerate(zip(one, other, strict=True))]
        if not any(isinstance(part, Mapping) for part in one):  # plain values are compared as one
            return [] if one == other else [key]
    else:
        return [] if one == other else [key]
    return [
        found
        for name, left, right in parts
        for found in changed_keys(left, right, f"{key}.{name}" if key else name)
    ]
