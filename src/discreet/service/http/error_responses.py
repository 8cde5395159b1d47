"""Turns every error into one JSON shape, with a status that a client can act on."""

from __future__ import annotations

from discreet.errors import (
    BudgetExceeded,
    CorruptRelease,
    DecisionClosed,
    DiscreetError,
    InvalidInput,
    LossConflict,
    NotReady,
    ServiceError,
    StateClaimed,
    UnknownDecision,
)
from discreet.service.http.bodies import ErrorDetail

_STATUS: dict[type[DiscreetError], tuple[int, str]] = {
    InvalidInput: (422, "invalid"),
    UnknownDecision: (404, "unknown_decision"),
    LossConflict: (409, "conflict"),
    DecisionClosed: (410, "over"),
    BudgetExceeded: (409, "budget_exceeded"),
    CorruptRelease: (503, "corrupt_release"),
    NotReady: (503, "not_ready"),
    StateClaimed: (503, "state_claimed"),
}


def problem_of(error: Exception, lost: tuple[type[Exception], ...]) -> tuple[int, ErrorDetail]:
    """Status and problem; other errors are 503 if storage failed, else 500 without detail."""
    if isinstance(error, ServiceError):
        return error.status or 500, ErrorDetail(error.code or "error", str(error), error.field)
    for kind, (status, code) in _STATUS.items():
        if isinstance(error, kind):
            return status, ErrorDetail(code, str(error), getattr(error, "field", None))
    if isinstance(error, (*lost, OSError)):
        # After a lost answer to COMMIT, or a sync that failed, nobody knows whether it was stored.
        said = (
            "storage must be available; the database fails. Try again: with the same "
            "Idempotency-Key a decision counts once, and a loss always does."
        )
        return 503, ErrorDetail("storage_unavailable", said)
    return 500, ErrorDetail(
        "internal", "the request must not fail; the service has a fault. Tell its operator."
    )
