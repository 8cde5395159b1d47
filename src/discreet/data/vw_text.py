"""Logs as text that ``vw --cb`` and ``vw --cb_adf`` read, and ``vw_logs.py`` as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.data.vw_logs import ACTION, CONTEXT, VwLog
from discreet.errors import InvalidInput


def vw_lines(log: VwLog, *, adf: bool = False) -> Iterator[str]:
    """The log as text, a line (or with ``adf`` a block) per decision; zeros are left out.

    Blocks have the features of the items that each row was offered, and their ids as tags, where
    the log has items; otherwise a feature for each action.
    """
    _refuse_names(log.columns, "columns")
    if log.offers is not None and not adf:
        if not log.same_offers:
            raise InvalidInput(
                "adf must be True where rows were offered different actions; got False. "
                "Lines of the kind cb cannot say what was offered."
            )
    elif log.items is not None:
        _refuse_names(log.items, "items")
        _refuse_names({name for told in log.items.values() for name in told}, "features of items")
    for row, values in enumerate(log.contexts):
        told = _features(dict(zip(log.columns, values.tolist(), strict=True)))
        action = int(log.actions[row])
        label = f"{float(log.costs[row])!r}:{float(log.propensities[row])!r}"
        if not adf:
            yield f"{action + 1}:{label} |{CONTEXT} {told}\n"
            continue
        yield f"shared |{CONTEXT} {told}\n"
        for place, line in enumerate(_offered(log, row)):
            yield f"{f'0:{label} ' if place == action else ''}{line}\n"
        yield "\n"


def write_vw(log: VwLog, path: str | Path, *, adf: bool = False) -> None:
    """Write the log to a file. It is as private as its rows are: guard it, or delete it.

    With ``adf`` a row is a block with a line per action, else one line.
    """
    text = "".join(vw_lines(log, adf=adf))
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"output must be writable; {path} is not ({error.strerror}). Choose another place."
        ) from None


def vw_word(name: str) -> str:
    """The name without the signs that Vowpal Wabbit reads as something else.

    >>> vw_word("device = phone")
    'device_=_phone'
    """
    return "".join("_" if sign.isspace() or sign in "|:" else sign for sign in name)


def _offered(log: VwLog, row: int) -> list[str]:
    """The lines of the actions that a row was offered, without a label."""
    if log.offers is None or log.items is None:
        return [f"|{ACTION} action_{place}" for place in range(log.n_actions)]
    return [f"'{item}|{ACTION} {_features(log.items[item])}" for item in log.offers[row]]


def _features(told: Mapping[str, float]) -> str:
    return " ".join(f"{name}:{float(value)!r}" for name, value in told.items() if value)


def _refuse_names(names: object, what: str) -> None:
    for name in names:  # type: ignore[attr-defined]
        if not name or vw_word(name) != name or name.startswith("'"):
            raise InvalidInput(
                f"{what} must be words without blanks, bars and colons to be written; got "
                f"{name!r}. Rename it."
            )
