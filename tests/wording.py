"""How an error of discreet reads: ``<name> must be <rule>; got <value>. <next step>``."""

import re
from contextlib import contextmanager

import pytest

FORM = re.compile(r"[^;]+ must [^;]+; .+\. \S.*[.?]", re.DOTALL)


@contextmanager
def refused(error, *words):
    """``error`` is raised, in the form of the house, and its message holds all of ``words``."""
    with pytest.raises(error) as caught:
        yield caught
    message = str(caught.value)
    assert FORM.fullmatch(message), message
    for word in words:
        assert word in message, message
