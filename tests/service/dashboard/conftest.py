"""Pages of services on SQLite; the tests that are marked with ``EITHER`` also use PostgreSQL."""

import pytest


@pytest.fixture
def database(request):
    if getattr(request, "param", "sqlite") == "sqlite":
        return "discreet.db"
    return request.getfixturevalue("fresh_schema")
