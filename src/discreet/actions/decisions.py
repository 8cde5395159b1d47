"""Result of ``Learner.decide``: chosen actions, their ids and probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from discreet.actions.offers import Chances
from discreet.design.action_names import ActionName
from discreet.features.frames import frame_like, is_series, new_frame, series_like
from discreet.types import Frame, NumpyArray, Values


@dataclass(frozen=True, eq=False)
class Decisions:
    """Result of ``Learner.decide``: scalars for one context, arrays for many.

    For a frame they are series of its library, with its index in pandas, so that
    ``frame["action"] = decisions.action`` adds each action to its row.

    ``action`` is the name of the chosen action where the plan has names, else its number, which
    ``action_index`` always is.
    ``id`` names the slot for ``observe``; it is −1 where nothing is stored (``stored`` False):
    the loss of such a decision is not needed, and reporting it changes nothing. Printing says how
    many were stored.
    """

    id: Values
    action: Values
    stored: Values
    action_index: Values
    _chances: Callable[[], Chances] = field(repr=False)
    """Probabilities of all that each request was offered, one row each."""
    _chosen: NumpyArray | int | None = field(repr=False, default=None)
    """Places of the chosen actions in these rows; None where they are the numbers of actions."""
    _order: Callable[[Chances], list[list[ActionName]]] = field(repr=False, default=lambda _: [])
    """Orders of what was offered, from those rows."""

    def __repr__(self) -> str:
        stored = np.asarray(self.stored)
        count = f"{stored.sum()} of {stored.size} stored"
        if is_series(self.id):  # a series would fill the screen
            return f"Decisions({count}, as a {type(self.id).__name__} each: see to_frame())"
        return f"Decisions({count}, id={self.id!r}, action={self.action!r})"

    @cached_property
    def _rows(self) -> Chances:
        return self._chances()

    @cached_property
    def propensity(self) -> Values:
        """Probability with which the policy chose ``action``: for its owner's eyes only.

        Computed at the first access: the exact mixture of VanillaPO costs more than a draw.
        """
        chances = self._rows
        chosen = self.action_index if self._chosen is None else self._chosen
        if np.ndim(chosen) == 0:
            return float(chances[0][chosen])
        taken = np.asarray(chosen)
        if isinstance(chances, np.ndarray):
            found = np.take_along_axis(chances, taken[:, None], axis=-1)[:, 0]
        else:
            found = np.array([row[place] for row, place in zip(chances, taken, strict=True)])
        return series_like(self.id, "propensity", found) if is_series(self.id) else found

    @cached_property
    def ranking(self) -> list[ActionName] | list[list[ActionName]]:
        """The offered actions in a sampled order, the chosen one first; a list each for many.

        Only the loss of the first is learned from: report that of ``action``, whatever is shown
        below it. The order is drawn at the first access.
        """
        orders = self._order(self._rows)
        return list(orders[0]) if np.ndim(self.id) == 0 else orders

    def to_frame(self) -> Frame:
        """A row per decision; the frame is of the library of the contexts, with their index."""
        names = ("id", "action", "action_index", "stored", "propensity")
        columns = {name: np.atleast_1d(np.asarray(getattr(self, name))) for name in names}
        return frame_like(self.id, columns) if is_series(self.id) else new_frame(columns)

    @classmethod
    def of_frame(
        cls, frame: Frame, ids: NumpyArray, names: NumpyArray, actions: NumpyArray, *rest: Any
    ) -> Decisions:
        """The decisions of the rows of a frame."""
        columns = {"id": ids, "action": names, "stored": ids >= 0, "action_index": actions}
        made = [series_like(frame, name, values) for name, values in columns.items()]
        return cls(*made, *rest)
