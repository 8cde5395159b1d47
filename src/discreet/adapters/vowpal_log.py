"""``Logs`` as a log of Vowpal Wabbit, with propensities, and with what each row was offered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from discreet.data.decision_logs import ACTION, CONTEXT, VwLog
from discreet.errors import InvalidInput
from discreet.features.joint import feature_names
from discreet.features.offered import OfferedPairs
from discreet.plan.plan import Plan
from discreet.simulate.off_policy import Logs
from discreet.types import Array
from discreet.validate import writable


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
        _refuse_names({name for item in log.items.values() for name in item}, "features of items")
    for row, values in enumerate(log.contexts):
        features = _features(dict(zip(log.columns, values.tolist(), strict=True)))
        action = int(log.actions[row])
        label = f"{float(log.costs[row])!r}:{float(log.propensities[row])!r}"
        if not adf:
            yield f"{action + 1}:{label} |{CONTEXT} {features}\n"
            continue
        yield f"shared |{CONTEXT} {features}\n"
        for place, line in enumerate(_offered(log, row)):
            yield f"{f'0:{label} ' if place == action else ''}{line}\n"
        yield "\n"


def write_vw(log: VwLog, path: str | Path, *, adf: bool = False) -> None:
    """Write the log to a file. It is as private as its rows are: guard it, or delete it.

    With ``adf`` a row is a block with a line per action, else one line.
    """
    text = "".join(vw_lines(log, adf=adf))
    with writable(path):
        Path(path).write_text(text, encoding="utf-8")


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


def _features(values: Mapping[str, float]) -> str:
    return " ".join(f"{name}:{float(value)!r}" for name, value in values.items() if value)


def _refuse_names(names: Iterable[str], what: str) -> None:
    for name in names:
        if not name or vw_word(name) != name or name.startswith("'"):
            raise InvalidInput(
                f"{what} must be words without blanks, bars and colons to be written; got "
                f"{name!r}. Rename it."
            )


def vw_log(logs: Logs, plan: Plan) -> VwLog:
    """The logs that ``Logs.of(plan, …)`` made, with the names of the plan's features.

    Features are written as the plan maps them, without the constant, since Vowpal Wabbit has its
    own. Where rows were offered different actions, or actions are items of a catalogue, write it
    with ``adf=True``: an item has its features, and any other action one that is its name.
    """
    width = logs.features.shape[1]
    if width != plan.contexts.p:
        raise InvalidInput(
            f"logs must have the plan's {plan.contexts.p} features of a context; got {width}. "
            "Make them with Logs.of(plan, …)."
        )
    columns = tuple(vw_word(name) for name in feature_names(plan.contexts)[1:])
    logged = (columns, logs.features[:, 1:], logs.actions, logs.losses, logs.propensities)
    if logs.offers is None:
        return VwLog(*logged, plan.n_actions)
    offered, inside = logs.offers.offered, logs.offers.inside
    ids = [vw_word(str(name)) for name in logs.offers.names]
    if len(set(ids)) < len(ids):
        raise InvalidInput(
            "actions must have distinct names without blanks, bars and colons; some become the "
            "same word. Rename them."
        )
    places: Array = offered.actions
    if places is None:
        places = np.broadcast_to(np.arange(len(ids)), inside.shape)
    offers = tuple(
        tuple(ids[place] for place in row[own].tolist())
        for row, own in zip(places, inside, strict=True)
    )
    items = {name: {name: 1.0} for name in ids}
    if isinstance(offered, OfferedPairs):
        names = [vw_word(name) for name in feature_names(offered.joint.action)[1:]]
        items = {
            name: dict(zip(names, row[1:].tolist(), strict=True))
            for name, row in zip(ids, offered.items, strict=True)
        }
    return VwLog(*logged, offered.count, offers=offers, items=items)
