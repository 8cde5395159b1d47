"""``Logs`` as a log of Vowpal Wabbit, with propensities, and with what each row was offered."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.data.vw_logs import VwLog
from discreet.data.vw_text import vw_word
from discreet.errors import InvalidInput
from discreet.features.feature_names import feature_names
from discreet.features.offered import OfferedPairs
from discreet.plan import Plan
from discreet.simulate.off_policy import Logs
from discreet.types import Floats


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
    told = (columns, logs.features[:, 1:], logs.actions, logs.losses, logs.propensities)
    if logs.offers is None:
        return VwLog(*told, plan.n_actions)
    offered, inside = logs.offers.offered, logs.offers.inside
    ids = [vw_word(str(name)) for name in logs.offers.names]
    if len(set(ids)) < len(ids):
        raise InvalidInput(
            "actions must have distinct names without blanks, bars and colons; some become the "
            "same word. Rename them."
        )
    places: Any = offered.actions
    if places is None:
        places = np.broadcast_to(np.arange(len(ids)), inside.shape)
    offers = tuple(
        tuple(ids[place] for place in row[own].tolist())
        for row, own in zip(places, inside, strict=True)
    )
    items = {name: {name: 1.0} for name in ids}
    if isinstance(offered, OfferedPairs):
        names = [vw_word(name) for name in feature_names(offered.joint.action)[1:]]
        items = {name: _named(names, row) for name, row in zip(ids, offered.items, strict=True)}
    return VwLog(*told, offered.count, offers=offers, items=items)


def _named(names: list[str], row: Floats) -> dict[str, float]:
    return dict(zip(names, row[1:].tolist(), strict=True))
