"""Settings: experiment files, environment variables, and detection of edits."""

from pathlib import Path

import pytest

from discreet.design.control import Control
from discreet.errors import InvalidInput
from discreet.service.experiment_file import (
    EXPERIMENT_EXAMPLE,
    VARIABLES,
    changed_keys,
    from_environment,
)
from discreet.service.runtime.lifecycle import ExperimentFile
from discreet.service.settings import OF_SERVER, ServerSettings, Settings
from wording import refused

PLAN = {
    "n_actions": 3,
    "features": {"kind": "UnitBall", "dimension": 2},
    "budget": {"epsilon": 1.0, "delta": 1e-6},
}


USERS = {"unit": "user", "batches_per_user": 4, "records_per_batch": 1}


def made(plan=None, **changes):
    document = {"experiment": "test", "plan": PLAN | (plan or {})} | changes
    return Settings.from_config(document, Path())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"windw": 3}, "Did you mean 'window'"),
        ({"experiment": " "}, "experiment must be text"),
        ({"window": -1}, "window must be a number in"),
        ({"window": "3s"}, None),
        ({"window": "three days"}, "window must be a number above zero with a unit"),
        ({"unit": "person"}, "unit must be 'decision' or 'user'; got 'person'"),
        ({"mode": "off"}, "mode must be one of"),
        ({"default_action": 3}, "default_action must be"),
        ({"port": "8000"}, "port must be a whole number"),
        ({"cors_origins": ["a.example"]}, "cors_origins must be a list"),
        ({"cors_origins": ["https://a.example/shop"]}, "cors_origins must be .* without a path"),
        ({"prefix": "/bandit/"}, "prefix must be empty or a path"),
        ({"connections": 0}, "connections must be at least 1"),
        ({"public_releases": "yes"}, "public_releases must be true or false"),
        ({"batches_per_user": 3, "records_per_batch": 1}, "only with unit='user'"),
        (USERS | {"batches_per_user": 0}, "batches_per_user must be"),
        ({"folder": "/"}, "no folder"),
        ({"remember": 0}, "remember must be a number in .* counts a second time"),
        ({"window": 0}, "window must be a number in .* would be void"),
    ],
)
def test_refusals_name_the_key(changes, complaint):
    if complaint is None:
        assert made(**changes).window == 3.0
        return
    with pytest.raises(InvalidInput, match=complaint):
        made(**changes)


@pytest.mark.parametrize(
    ("plan", "changes", "complaint"),
    [
        ({"oracle": {"kind": "Ridge", "mechanism": "paper"}}, {}, "to protect people"),
        ({"budget": {"epsilon": 20.5, "delta": 1e-6}}, {}, "epsilon must be at most 20 to protect"),
        ({"budget": {"epsilon": 1.0, "delta": 0.01}}, {}, "delta must be at most 0.001 to protect"),
        ({"missing_loss": 1.0}, {"journal": "observe"}, "missing_loss must be left out"),
        ({"feedback": "full"}, {}, "feedback must be 'bandit'"),
        ({"unit": "visit"}, {}, "plan.unit must be left out"),
        ({"close_every": "soon"}, {}, "close_every must be a number above zero with a unit"),
    ],
)
def test_what_cannot_be_had_is_refused(plan, changes, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        made(plan, **changes)


def test_idealised_mechanisms_must_be_allowed():
    plan = {"oracle": {"kind": "Ridge", "mechanism": "paper"}}
    assert made(plan, allow_idealised=True).plan.oracle.mechanism == "paper"
    weak = {"budget": {"epsilon": 50.0, "delta": 0.1}}
    assert made(weak, allow_idealised=True).plan.budget.epsilon == 50.0


def test_a_users_budget_is_for_all_that_one_contributes():
    chosen, alone = made(**USERS), made()
    assert chosen.plan.budget == alone.plan.budget
    assert chosen.plan.participation.batches == 4
    assert chosen.plan.mechanism.gram == pytest.approx(2 * alone.plan.mechanism.gram, rel=1e-4)
    assert (chosen.unit, chosen.plan.to_config()["unit"]) == ("user", "user")


def test_a_control_share_is_part_of_what_never_changes():
    chosen = made({"control": {"share": 0.25, "action": 1}})
    assert chosen.plan.control == Control(share=0.25, action=1)
    assert changed_keys(chosen.fixed, made({"control": {"share": 0.3, "action": 1}}).fixed) == [
        "plan.control.share"
    ]
    with refused(InvalidInput, "control.share must leave each part a slot", "first_batch=100"):
        made({"control": {"share": 0.01}})


def test_the_example_is_valid_and_has_the_defaults(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT_EXAMPLE)
    settings = Settings.read(path)
    assert settings.folder == tmp_path
    assert settings.unit == made().unit == "decision"
    assert settings.plan.releases == "on_request", "releases follow the service's clock"
    for name in ("waiting", "journal", "mode", "database", "vault"):
        assert getattr(settings, name) == Settings.__dataclass_fields__[name].default
    server = settings.server
    assert (server.host, server.port) == (ServerSettings.host, ServerSettings.port)


@pytest.mark.parametrize("content", [b"experiment = ", b"\xff"])
def test_a_file_that_is_no_toml(tmp_path, content):
    path = tmp_path / "experiment.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="must be TOML"):
        Settings.read(path)
    with pytest.raises(InvalidInput, match="serve --init"):
        Settings.read(tmp_path / "none.toml")


FIELDS = [{"kind": "Number", "name": "n", "low": 0, "high": high} for high in (1, 2)]


@pytest.mark.parametrize(
    ("one", "other", "keys"),
    [
        ({}, {"plan": {"first_batch": 16, "growth": 1.5}}, []),  # a default that is written out
        ({"window": 3}, {"window": 3.0}, []),
        ({}, {"port": 9000, "window": 1.5}, ["port", "window"]),
        ({}, {"database": "postgresql://me:secret@host/name"}, ["database"]),
        ({}, {"cors_origins": ["https://a.example"]}, ["cors_origins"]),
        ({}, {"plan": {"budget": {"epsilon": 2.0, "delta": 1e-5}}},
         ["plan.budget.delta", "plan.budget.epsilon"]),
        ({}, {"plan": {"policy": {"kind": "Greedy"}}}, ["plan.policy.kind"]),
        ({}, {"plan": {"features": {"kind": "Schema", "fields": FIELDS[:1]}}},
         ["plan.features.kind"]),
        ({"plan": {"features": {"kind": "Schema", "fields": FIELDS[:1]}}},
         {"plan": {"features": {"kind": "Schema", "fields": FIELDS[1:]}}},
         ["plan.features.fields.0.high"]),
        ({"plan": {"features": {"kind": "Schema", "fields": FIELDS[:1]}}},
         {"plan": {"features": {"kind": "Schema",
                                "fields": [FIELDS[0], FIELDS[0] | {"name": "m"}]}}},
         ["plan.features.fields"]),
        (USERS, USERS | {"batches_per_user": 7}, ["batches_per_user"]),
        ({}, USERS, ["batches_per_user", "records_per_batch", "unit"]),
    ],
)  # fmt: skip
def test_differences_are_named_by_key(one, other, keys):
    assert changed_keys(made(**one).values, made(**other).values) == keys
    assert changed_keys(made(**other).values, made(**other).values) == []


SECRET = "postgresql://me:secret@host/name"


def test_the_environment_takes_the_place_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT_EXAMPLE)
    (tmp_path / "url").write_text(f"{SECRET}\n")
    monkeypatch.setenv("DISCREET_DATABASE_URL_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("DISCREET_PORT", "9000")
    monkeypatch.setenv("DISCREET_ANCHOR", "/mnt/anchor.jsonl")
    found = Settings.read(tmp_path / "experiment.toml")
    assert (found.database, found.server.port, found.anchor) == (SECRET, 9000, "/mnt/anchor.jsonl")
    assert (found.server.host, found.vault) == ("127.0.0.1", "vault")


def test_every_variable_is_a_setting_and_may_be_a_file(tmp_path):
    assert set(VARIABLES.values()) <= {*Settings.__dataclass_fields__, *OF_SERVER}
    for name, setting in VARIABLES.items():
        (tmp_path / name).write_text(" 7 \n")
        by_file = from_environment({f"{name}_FILE": str(tmp_path / name)})
        expected = {setting: 7 if setting == "port" else "7"}
        assert by_file == from_environment({name: "7"}) == expected
    assert from_environment({"DISCREET_HOST": "", "HOME": "/"}) == {}


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"DISCREET_PORT": "secret"}, "DISCREET_PORT must be a whole number"),
        ({"DISCREET_VAULT": "secret", "DISCREET_VAULT_FILE": "x"}, "must be given once"),
        ({"DISCREET_DATABASE_URL_FILE": "/no/such"}, "must name a readable file; /no/such"),
        (
            {"DISCREET_DATABASE_URL_FILE": "/bin/ls"},
            r"must name a readable file; .*it is not text",
        ),
    ],
)
def test_errors_repeat_no_value(variables, complaint):
    with pytest.raises(InvalidInput, match=complaint) as error:
        from_environment(variables)
    assert "secret" not in str(error.value)


EXPERIMENT = """
experiment = "films"
[plan]
budget = { epsilon = 8.0, delta = 1e-5 }
features = { kind = "UnitBall", dimension = 1 }
[plan.actions]
items = "items.csv"
[plan.actions.schema]
kind = "Schema"
fields = [ { kind = "Number", name = "year", low = 1930, high = 2030 } ]
"""
ITEMS = "id,year\na,1950\nb,1990\n"


class Told:
    def __init__(self):
        self.lines = []

    def event(self, name, **fields):
        self.lines.append((name, fields))


def test_edited_items_are_reported_until_they_are_restored(tmp_path):
    path, items = tmp_path / "experiment.toml", tmp_path / "items.csv"
    path.write_text(EXPERIMENT)
    items.write_text(ITEMS)
    reported = Told()
    watch = ExperimentFile(path, Settings.read(path), reported)
    watch.look()
    assert reported.lines == []
    items.write_text(ITEMS.replace("1950", "1951"))
    watch.look()
    watch.look()
    assert reported.lines == [("experiment file differs", {"keys": ["plan.actions.items"]})]
    items.write_text(ITEMS)
    watch.look()
    assert reported.lines[-1] == ("experiment file as served", {})
    items.unlink()
    watch.look()
    assert reported.lines[-1] == ("experiment file unreadable", {})
