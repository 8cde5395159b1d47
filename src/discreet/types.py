"""The shape vocabulary, and what a decision is.

Shapes are written with three letters: n rows, A actions, p features (bias included).
``...`` stands for any leading axes: none in the service, (seeds, runs) in a campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

Array = Any
"""An array of the Python Array API: NumPy in the service, NumPy or torch in a campaign."""
Floats = np.ndarray[Any, Any]
"""A NumPy array of numbers, where no other kind of array comes."""


def added_later(default: Any) -> Any:
    """A parameter that documents name only where it differs from its default.

    It did not exist when the first documents were written, which so keep their bytes and digests.
    """
    return field(default=default, metadata={"added_later": True})


@dataclass(frozen=True, eq=False)
class Decisions:
    """What ``Learner.decide`` returns: scalars for one context, arrays for many.

    ``id`` names the slot for ``observe``; it is −1 where nothing is stored (``stored`` False):
    the loss of such a decision is not needed, and reporting it changes nothing. A call with more
    contexts than the open batch has slots stores as many as fit; printing says how many.
    """

    id: Any
    action: Any
    stored: Any
    _probabilities: Callable[[], np.ndarray[Any, Any]] = field(repr=False)

    def __repr__(self) -> str:
        stored = f"{np.sum(self.stored)} of {np.size(self.stored)} stored"
        return f"Decisions({stored}, id={self.id!r}, action={self.action!r})"

    @cached_property
    def propensity(self) -> Any:
        """Probability with which the policy chose ``action``: for its owner's eyes only.

        Computed when first asked for: the exact mixture of VanillaPO costs more than a draw.
        """
        probabilities = self._probabilities()
        if np.ndim(self.action) == 0:
            return float(probabilities[0, self.action])
        return np.take_along_axis(probabilities, self.action[:, None], axis=-1)[:, 0]
