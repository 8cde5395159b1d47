"""Every fault still applies to the source as it is, and the runner tells caught from missed."""

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from discreet.audit.suite import AUDITED, PARTS
from sabotage import run
from sabotage.faults import FAULTS, Edit, Fault

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.name)
def test_a_fault_applies_and_compiles(fault):
    texts = {}
    for edit in fault.edits:
        path = run.file_of(edit, run.SOURCE)
        before = texts.get(path) or path.read_text()
        texts[path] = run.patched(before, edit)
        assert texts[path] != before
    for path, text in texts.items():
        if path.suffix == ".py":
            compile(text, path, "exec")


@cache
def defined(file):
    """The names that a file of tests defines; the file must exist."""
    return {getattr(node, "name", "") for node in ast.parse((TESTS / file).read_text()).body}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.name)
def test_those_who_must_notice_exist(fault):
    assert fault.tests
    if fault.audit is not None:
        assert fault.audit[0] in AUDITED
        assert fault.audit[1] in PARTS
    for selection in fault.tests:
        file, _, name = selection.partition("::")
        found = defined(file)
        assert not name or name in found


def test_names_are_distinct():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 50


@pytest.mark.parametrize(("old", "found"), [("no such text", "0 times"), ("e", "times")])
def test_a_patch_that_does_not_fit_is_trouble_and_not_a_catch(old, found):
    fault = replace(FAULTS[0], edits=(Edit("errors.py", old, "x"),))
    row = run.tried(fault)
    assert row.missed
    assert found in row.tests.trouble
    assert "**TROUBLE**" in "\n".join(run.table([row]))


SPOKEN = Edit("Batch.__repr__", 'return "Batch(private)"', 'return f"Batch({self.losses})"')
UNSPOKEN = Edit("Batch.__repr__", "def __repr__(self) -> str:", "def __repr__(self) -> str:  # ")
TOLD = ("privacy/test_private_path.py::test_a_batch_shows_nothing",)


@pytest.mark.parametrize(("edit", "missed"), [(SPOKEN, False), (UNSPOKEN, True)])
def test_a_fault_is_caught_and_a_remark_is_not(edit, missed):
    row = run.tried(Fault("a row that is told", "a batch shows nothing", (edit,), TOLD))
    assert row.missed == missed
    assert row.tests.trouble == ""
    shown = "\n".join(run.table([row]))
    assert ("`test_a_batch_shows_nothing`" in shown) == ("**MISSED**" not in shown) == (not missed)


@pytest.mark.parametrize("new", ["return repr(no_such_name)", "return self.__repr__(more=1)"])
def test_a_patch_that_cannot_run_is_trouble_and_not_a_catch(new):
    edit = Edit("Batch.__repr__", 'return "Batch(private)"', new)
    row = run.tried(Fault("a call that does not fit", "a batch shows nothing", (edit,), TOLD))
    assert row.missed
    assert "the patch cannot run" in row.tests.trouble


NOTHING, SOMETHING = run.Seen(), run.Seen(("audit/test_x.py::test_y",))


@pytest.mark.parametrize(
    ("tests", "audit", "missed"),
    [
        (SOMETHING, SOMETHING, False),
        (SOMETHING, NOTHING, True),
        (NOTHING, SOMETHING, True),
        (run.Seen(trouble="no test was found"), SOMETHING, True),
    ],
)
def test_both_must_notice(tests, audit, missed, monkeypatch, tmp_path):
    fault = replace(FAULTS[0], audit=("finite", "exact"))
    row = run.Row(fault, tests, audit, 1.0)
    assert row.missed == missed
    assert not run.Row(replace(fault, audit=None), SOMETHING, NOTHING, 1.0).missed
    monkeypatch.setattr(run, "clean", lambda _: [])
    monkeypatch.setattr(run, "tried", lambda _: row)
    page = tmp_path / "page.md"
    assert run.main([fault.name, "--page", str(page)]) == missed
    assert f"{1 - missed} caught, {int(missed)} missed" in page.read_text()


def test_checks_that_fail_without_a_fault_end_it(monkeypatch, capsys):
    monkeypatch.setattr(run, "clean", lambda _: ["privacy/test_x.py::test_y"])
    assert run.main([]) == 1
    assert "test_y" in capsys.readouterr().err
