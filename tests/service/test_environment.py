"""Settings that come from environment variables and from files that they name."""

import pytest

from discreet.errors import InvalidInput
from discreet.service.experiment_file import EXPERIMENT_EXAMPLE
from discreet.service.settings import Settings
from discreet.service.settings_sources import VARIABLES, from_environment

SECRET = "postgresql://me:secret@host/name"


def test_the_environment_takes_the_place_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT_EXAMPLE)
    (tmp_path / "url").write_text(f"{SECRET}\n")
    monkeypatch.setenv("DISCREET_DATABASE_URL_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("DISCREET_PORT", "9000")
    monkeypatch.setenv("DISCREET_ANCHOR", "/mnt/anchor.jsonl")
    found = Settings.read(tmp_path / "experiment.toml")
    assert (found.database, found.port, found.anchor) == (SECRET, 9000, "/mnt/anchor.jsonl")
    assert (found.host, found.vault) == ("127.0.0.1", "vault")


def test_every_variable_is_a_setting_and_may_be_a_file(tmp_path):
    assert set(VARIABLES.values()) <= set(Settings.__dataclass_fields__)
    for name, setting in VARIABLES.items():
        (tmp_path / name).write_text(" 7 \n")
        by_file = from_environment({f"{name}_FILE": str(tmp_path / name)})
        assert (
            by_file == from_environment({name: "7"}) == {setting: 7 if setting == "port" else "7"}
        )
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
