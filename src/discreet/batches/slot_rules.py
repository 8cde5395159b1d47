"""The rules of a slot, for learner and service: its first loss stays, and its batch ends once."""

from __future__ import annotations

from discreet.errors import DecisionClosed, LossConflict, UnknownDecision


def refuse_other_loss(same: bool, word: str = "loss") -> None:
    """Raise unless the loss of a slot that was heard before is the ``same`` again.

    ``word`` is what its sender calls it, where that is known.
    """
    if not same:
        raise LossConflict(
            f"{word} must equal the one already stored for that decision; it differs. "
            "The first one is kept."
        )


def unknown_decision() -> UnknownDecision:
    """The error for an id that nobody was given here."""
    return UnknownDecision(
        "decision id must be one that decide returned here; this one is not. "
        "Send it unchanged, to the learner or service that returned it."
    )


def batch_over() -> DecisionClosed:
    """The error for whatever comes after the end of a batch."""
    return DecisionClosed(
        "decision must belong to a batch under way; its batch is over, or not known any more. "
        "Nothing changed: drop the late loss. If losses often come so late, begin with a longer "
        "window."
    )
