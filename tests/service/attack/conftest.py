"""Fixtures of attacks: quick starts, and experiments on every database."""

from functools import partial

import pytest


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    from discreet.service.runtime import lifecycle
    from service.attack.harness import write_settings
    from service.attack.processes import Launcher

    folder = tmp_path_factory.mktemp("launcher")
    lifecycle.begin(write_settings(folder))
    launcher = Launcher(folder / "experiment.toml")
    yield launcher
    launcher.close()


@pytest.fixture
def places(tmp_path, launcher):
    """``places(database, name, **settings)``: experiments that have begun."""
    from service.attack.harness import Place

    made = []

    def new(database, name="experiment", **words):
        made.append(Place(tmp_path / name, launcher, database, **words))
        return made[-1]

    yield new
    for each in made:
        each.kill()


@pytest.fixture
def place_on_sqlite(places):
    return partial(places, "discreet.db")


@pytest.fixture
def place_on_postgresql(places, new_schema):
    return lambda *name, **words: places(new_schema(), *name, **words)


@pytest.fixture(params=["sqlite", "postgresql"])
def begun(tmp_path, request):
    """``begun(name, **settings)``: experiments that no process serves, on each database."""
    from discreet.service.runtime import lifecycle
    from service.attack.harness import write_settings

    def new(name="experiment", **words):
        on_file = request.param == "sqlite"
        database = "discreet.db" if on_file else request.getfixturevalue("new_schema")()
        settings = write_settings(tmp_path / name, database, **words)
        lifecycle.begin(settings)
        return settings

    return new
