"""A service that answers as a test says, and time that does not pass."""

import pytest

from client.stub_service import serving
from discreet.client import transport


@pytest.fixture
def stub():
    with serving() as made:
        yield made


@pytest.fixture
def waits(monkeypatch):
    """Seconds that a client would have slept."""
    slept = []
    monkeypatch.setattr(transport.time, "sleep", slept.append)
    return slept
