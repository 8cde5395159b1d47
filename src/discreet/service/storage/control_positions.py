"""Which slots are of the control: a public rule of batch and slot, the same in every process.

Epoch and number of a batch never change, while its place in the schedule would when an earlier one
is burned. Without burns and restores these are the positions that a learner has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.control import Control, control_slots

LEAST = 10
"""Positions are computed for 2^10 slots at least, then for twice as many, and kept."""


def positions(control: Control, epoch: int, batch: int, size: int) -> np.ndarray[Any, Any]:
    """Which of the first ``size`` slots of a batch are of the control: (size,) bool."""
    return control_slots(control.share, (epoch - 1) << 32 | batch, size)


def slot_in_control(control: Control, epoch: int, batch: int, slot: int) -> bool:
    """Whether one slot is; the length of its batch makes no difference."""
    return bool(positions(control, epoch, batch, 1 << max(LEAST, slot.bit_length()))[slot])
