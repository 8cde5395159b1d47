"""The tree of exceptions: one root, the built-in class that a caller expects, readable text."""

import inspect

import pytest

from discreet import errors

TREE = {
    "InvalidInput": ValueError,
    "UnknownDecision": KeyError,
    "LossConflict": ValueError,
    "DecisionClosed": ValueError,
    "NotReady": RuntimeError,
    "BudgetExceeded": RuntimeError,
    "CorruptRelease": ValueError,
    "StateClaimed": RuntimeError,
    "ServiceError": RuntimeError,
    "PrivateData": TypeError,
}


def test_the_tree_is_complete():
    defined = {name for name, item in inspect.getmembers(errors, inspect.isclass)}
    assert defined == {"DiscreetError", *TREE}


@pytest.mark.parametrize(("name", "builtin"), TREE.items())
def test_every_error_is_a_discreet_error_and_a_builtin(name, builtin):
    error = getattr(errors, name)
    assert issubclass(error, errors.DiscreetError)
    assert issubclass(error, builtin)
    assert error.__doc__
    assert str(error("id must be known; it is not.")) == "id must be known; it is not."
