"""HTTP status, code and message of every error."""

from __future__ import annotations

import msgspec

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


class ErrorDetail(msgspec.Struct, omit_defaults=True):
    """Code and message of an error, and the field of the request that caused it."""

    code: str
    message: str
    field: str | None = None


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
    """Return status and detail; unknown errors are 503 if storage failed, else 500."""
    if isinstance(error, ServiceError):
        return error.status or 500, ErrorDetail(error.code or "error", str(error), error.field)
    for kind, (status, code) in _STATUS.items():
        if isinstance(error, kind):
            return status, ErrorDetail(code, str(error), getattr(error, "field", None))
    if isinstance(error, (*lost, OSError)):
        # After a lost answer to COMMIT, or a failed sync, it is unknown whether it was stored.
        message = (
            "storage must be available; the database fails. Try again: with the same "
            "Idempotency-Key a decision counts once, and a loss always does."
        )
        return 503, ErrorDetail("storage_unavailable", message)
    return 500, ErrorDetail(
        "internal",
        "Internal error. The operator finds details in the log.",
    )
