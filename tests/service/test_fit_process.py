"""The child that fits: not urgent, ready before it is asked, and nothing is read twice."""

import asyncio
import io
import json
import os
import subprocess
import sys
from contextlib import closing

import pytest

from discreet.privacy.ledger import Ledger
from discreet.service.runtime import fit_process
from discreet.service.runtime.service import Service
from discreet.service.secrets.vault import Vault
from discreet.service.storage import document_table
from discreet.service.storage.locations import open_database
from waiting import PATIENCE


def asked(settings):
    """What the child reads before a fit is due."""
    return io.StringIO(json.dumps({"terms": fit_process._written(settings)}) + "\n")


@pytest.fixture
def database():
    return "discreet.db"


def test_the_child_has_the_lowest_priority():
    before_imports = fit_process.CHILD.partition("from discreet")[0]
    asked = before_imports + "print(os.nice(0), os.environ['OMP_NUM_THREADS'])"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["19", "1"]


def test_its_priority_counts_beside_the_process_that_answers(monkeypatch):
    """Linux gives each session its share first; within one, niceness decides."""
    told = "import os; input(); print([os.getsid(0), os.getpgrp()])"
    monkeypatch.setattr(fit_process, "CHILD", told)
    child = fit_process.FitChild()
    session, group = child.ask(None, {})
    child.close(None)
    assert session == os.getsid(0)
    assert group != os.getpgrp()  # Ctrl-C does not reach it


def test_the_chain_is_verified_before_a_fit_is_asked_for_and_each_document_once(
    settings, monkeypatch
):
    chosen, verified, honest = settings(), [], fit_process.Chain.extended
    monkeypatch.setattr(sys, "stdin", asked(chosen))

    def spy(chain, contents):
        verified.extend(contents)
        return honest(chain, contents)

    monkeypatch.setattr(fit_process.Chain, "extended", spy)
    fit_process.main()
    assert len(verified) == 1  # the genesis
    database, vault = open_database(chosen), Vault(chosen.place(chosen.vault))
    kept = fit_process.Verified(vault)
    with closing(database.connect()) as connection:
        assert kept.extended(connection) == kept.extended(connection)
    assert len(verified) == 2


def test_a_chain_that_cannot_be_read_yet_ends_no_child(settings, monkeypatch, capsys):
    def broken(*_):
        raise OSError

    monkeypatch.setattr(sys, "stdin", asked(settings()))
    monkeypatch.setattr(fit_process.documents, "after", broken)
    fit_process.main()
    assert capsys.readouterr().out == "null\n"


def test_charges_are_parsed_once(settings, monkeypatch):
    chosen, parsed, honest = settings(), [], document_table.entries_of
    monkeypatch.setattr(
        document_table, "entries_of", lambda group: parsed.append(group) or honest(group)
    )
    document_table._entries.cache_clear()
    plan, made = chosen.plan, Ledger(chosen.plan.budget)
    with closing(open_database(chosen).connect()) as connection:
        for number in (1, 2, 3):
            made = made.charge(f"batch {number} of epoch 0", plan.event)
            document_table.charge(connection, number, document_table.entry_of(made, 1))
            assert document_table.ledger_of(connection, chosen) == made
    assert len(parsed) == 3


def test_an_experiment_that_is_let_go_leaves_the_child_to_the_others(monkeypatch):
    echo = "import sys\nfor line in sys.stdin:\n    print('null', flush=True)"
    monkeypatch.setattr(fit_process, "CHILD", echo)
    child = fit_process.FitChild()
    for who in ("a", "b", "a"):
        assert child.ask(who, {}) is None
    child.close("a")
    assert (child.was_asked("a"), child.was_asked("b")) == (False, True)
    child.close("c")  # it never asked
    assert child.was_asked("b")
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
        while not service.upkeep._fitter._child._asking:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(PATIENCE):
            await service.stop()

    asyncio.run(run())
