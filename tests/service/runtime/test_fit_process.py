"""The child that fits: not urgent, ready before it is asked, and nothing is read twice."""

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from discreet.service.runtime import fit_process
from discreet.service.runtime.service import Service
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.locations import open_database
from service.conftest import PLAN, windows_end
from waiting import PATIENCE


def requested(settings):
    """What the child reads before a fit is due."""
    return io.StringIO(json.dumps({"terms": fit_process._written(settings)}) + "\n")


@pytest.fixture
def database():
    return "discreet.db"


def test_the_child_has_the_lowest_priority(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before_imports = fit_process.CHILD.partition("from discreet")[0]
    requested = before_imports + "print(os.nice(0), os.environ['OMP_NUM_THREADS'])"
    reported = subprocess.run(
        [sys.executable, "-c", requested], capture_output=True, text=True, check=True
    )
    assert reported.stdout.split() == ["19", "1"]


def test_its_priority_is_below_that_of_the_serving_process(monkeypatch):
    """Linux gives each session its share first; within one, niceness decides."""
    reported = "import os; input(); print([os.getsid(0), os.getpgrp()])"
    monkeypatch.setattr(fit_process, "CHILD", reported)
    child = fit_process.FitChild()
    session, group = child.request(None, {})
    child.close(None)
    assert session == os.getsid(0)
    assert group != os.getpgrp()  # Ctrl-C does not reach it


def test_the_chain_is_verified_before_a_fit_and_each_document_once(settings, monkeypatch):
    chosen, verified, honest = settings(), [], fit_process.Chain.extended
    monkeypatch.setattr(sys, "stdin", requested(chosen))

    def spy(chain, contents):
        verified.extend(contents)
        return honest(chain, contents)

    monkeypatch.setattr(fit_process.Chain, "extended", spy)
    fit_process.main()
    assert len(verified) == 1  # the genesis
    database, vault = open_database(chosen), Vault(chosen.place(chosen.vault))
    kept = fit_process.VerifiedChain(vault)
    with closing(database.connect()) as connection:
        assert kept.extended(connection) == kept.extended(connection)
    assert len(verified) == 2


def test_a_chain_that_cannot_be_read_yet_ends_no_child(settings, monkeypatch, capsys):
    def broken(*_):
        raise OSError

    monkeypatch.setattr(sys, "stdin", requested(settings()))
    monkeypatch.setattr(fit_process.documents, "after", broken)
    fit_process.main()
    assert capsys.readouterr().out == "null\n"


def test_an_experiment_that_is_let_go_leaves_the_child_to_the_others(monkeypatch):
    echo = "import sys\nfor line in sys.stdin:\n    print('null', flush=True)"
    monkeypatch.setattr(fit_process, "CHILD", echo)
    child = fit_process.FitChild()
    for who in ("a", "b", "a"):
        assert child.request(who, {}) is None
    child.close("a")
    assert (child.has_served("a"), child.has_served("b")) == (False, True)
    child.close("c")  # it never asked
    assert child.has_served("b")
    last = child._child
    child.close("b")
    assert last.poll() is not None


def test_a_stop_does_not_wait_for_a_fit(settings, monkeypatch):
    monkeypatch.setattr(fit_process, "CHILD", "import time; time.sleep(3600)")
    chosen = settings(plan={"first_batch": 4}, window=0.01)

    async def run():
        service = Service(chosen, child=fit_process.FitChild())
        await service.start()
        for _ in range(4):
            await service.decisions.decide("caller", [0.1, 0.2])
        while not service.upkeep._fitter._child._current:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(PATIENCE):
            await service.stop()

    asyncio.run(run())


HANGS_ONCE = """
import itertools, os, sys, time
from discreet.service.runtime import fit_process
line = sys.stdin.readline()
while '"batch"' not in line:
    print("null", flush=True)
    line = sys.stdin.readline()
if not os.path.exists({reported!r}):
    open({reported!r}, "w").close()
    time.sleep(3600)
sys.stdin = itertools.chain([line], sys.stdin)
fit_process.main()
"""


class DeadlinePasses(threading.Thread):
    """A timer for which the hour is over as soon as the child says that it hangs."""

    def __init__(self, reported, end):
        super().__init__(daemon=True)
        self._told, self._end, self._over = reported, end, threading.Event()

    def run(self):
        while not self._over.is_set():
            if self._told.exists():
                self._end()
                return
            self._over.wait(0.01)

    def cancel(self):
        self._over.set()


def test_a_fit_that_hangs_is_ended_and_made_again_and_charged_once(
    settings, play, released, monkeypatch, tmp_path
):
    reported, timers = tmp_path / "hangs", []
    monkeypatch.setattr(fit_process, "CHILD", HANGS_ONCE.format(reported=str(reported)))

    def timer(seconds, end):
        assert seconds == fit_process.DEADLINE
        if reported.exists():  # the fit after the one that hung has an hour of its own
            return threading.Timer(seconds, end)
        timers.append(DeadlinePasses(reported, end))
        return timers[-1]

    child, chosen = fit_process.FitChild(timer), settings()

    async def scenario(service):
        for _ in range(4):
            await service.decisions.decide("caller", [0.1, 0.2])
        await windows_end(service)
        assert await service.upkeep.once() is False
        assert reported.exists()
        assert service.state.refused == "deadline"
        text = (await service.status())["text"]
        assert "did not end within its deadline" in text
        assert (await service.ledger())["entries"] == []
        assert child._child is None, "the child that hung is still there"
        await released(service)
        assert service.state.refused is None
        assert len((await service.ledger())["entries"][0]["charges"]) == 1
        with service.state.anchor.held() as book:
            assert len(book.intents) == len(book.confirmed) == 2  # document 0, and one release

    play(chosen, scenario, child=child)


class AtOnce(threading.Timer):
    """A timer whose time is over when it starts."""

    def __init__(self, seconds, end):
        assert seconds == fit_process.DEADLINE
        super().__init__(0, end)


def test_a_fit_in_time_is_not_ended_and_one_that_is_late_is(monkeypatch):
    """Without a deadline the second child would be awaited until it gives up by itself."""
    made = []

    def noted(seconds, end):
        made.append(threading.Timer(seconds, end))
        return made[-1]

    echo = "import sys\nfor line in sys.stdin:\n    print('7', flush=True)"
    monkeypatch.setattr(fit_process, "CHILD", echo)
    child = fit_process.FitChild(noted)
    assert [child.request("a", {}), child.request("a", {})] == [7, 7]
    assert not child.late
    assert [each.finished.is_set() for each in made] == [True, True]
    child.close("a")
    monkeypatch.setattr(fit_process, "CHILD", "import time\ntime.sleep(20)\nprint(7)")
    child = fit_process.FitChild(AtOnce)
    assert child.request("a", {}) is None
    assert child.late
    child.close("a")


def test_output_of_a_fit_is_discarded(monkeypatch, capfd):
    """A warning of a library could contain rows."""
    tells = "import sys\nfor line in sys.stdin:\n    print('0.731', file=sys.stderr, flush=True)"
    monkeypatch.setattr(fit_process, "CHILD", f"{tells}\n    print('7', flush=True)")
    child = fit_process.FitChild()
    assert child.request("a", {}) == 7
    child.close("a")
    received = capfd.readouterr()
    assert (received.out, received.err) == ("", "")


def test_experiments_of_one_name_are_two(tmp_path):
    """On a server of many, the name in the file need not be that of the folder."""
    document = {"experiment": "same", "plan": PLAN}
    folders = [tmp_path / name for name in ("one", "two")]
    for each in folders:
        each.mkdir()
        Vault(each / "vault").create()
    found = [
        fit_process._read(fit_process._written(Settings.from_config(document, folder)))
        for folder in folders
    ]
    assert [vault.folder for _, _, vault, _ in found] == [each / "vault" for each in folders]
    assert [database.path.parent for _, database, _, _ in found] == folders
