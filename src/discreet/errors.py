"""Every exception that discreet raises on purpose.

A message has the form ``<name> must be <rule>; got <value>. <next step>``. Public values are
quoted: parameters of a plan, names of declared fields, paths, columns of public sets. Values of a
person are never quoted, nor anything computed from them: contexts, offers, actions, losses,
rewards, ids of people and of decisions. There ``<value>`` is its kind (``kind_of``), and the row or
line is named: logs and exception reporters keep errors.
[docs/privacy/threat-model.md, "Errors"]
"""

import datetime
import numbers


def kind_of(value: object) -> str:
    """Describe the kind of a private value, for errors; never the value itself.

    >>> [kind_of(each) for each in (131.4, "Anna", "", None, True, [7])]
    ['a number', 'text', 'empty text', 'none', 'a truth value', 'a list']
    """
    name = type(value).__name__
    if value is None:
        return "none"
    if name in ("bool", "bool_"):
        return "a truth value"
    if isinstance(value, str):
        return "text" if value else "empty text"
    if isinstance(value, numbers.Real):
        try:
            finite = float("-inf") < float(value) < float("inf")
        except OverflowError:
            finite = False
        return "a number" if finite else "a number that is not finite"
    if isinstance(value, datetime.date) or name == "datetime64":
        return "a date"
    return f"a {name}"


class DiscreetError(Exception):
    """The base class: ``except DiscreetError`` catches all that discreet raises on purpose."""


class InvalidInput(DiscreetError, ValueError):  # noqa: N818
    """An argument, context, loss, configuration or file that breaks a stated rule."""


class UnknownDecision(DiscreetError, KeyError):  # noqa: N818
    """A decision id that the learner or service never returned."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class LossConflict(DiscreetError, ValueError):  # noqa: N818
    """A second, different loss for a decision that already has one; the first is kept."""


class DecisionClosed(DiscreetError, ValueError):  # noqa: N818
    """A loss for a batch that was closed or released; the loss changes nothing."""


class NotReady(DiscreetError, RuntimeError):  # noqa: N818
    """A release was requested, but no sealed batch is complete."""


class BudgetExceeded(DiscreetError, RuntimeError):  # noqa: N818
    """A charge that would spend more than the privacy budget; nothing was spent."""


class CorruptRelease(DiscreetError, ValueError):  # noqa: N818
    """A release file that was altered, cut short, reordered or written by something else."""


class StateClaimed(DiscreetError, RuntimeError):  # noqa: N818
    """A learner state that was saved or loaded already: a state can be continued exactly once."""


class ServiceError(DiscreetError, RuntimeError):
    """A request that a decision service refused, with its message, or did not answer.

    ``status`` is the HTTP status, None without an answer; the service sets ``code`` and ``field``.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


class PrivateData(DiscreetError, TypeError):  # noqa: N818
    """Private rows cannot be pickled, copied to text or written to a log."""
