"""The files of deploy/ name what exists."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from discreet.cli.main import main
from discreet.service.metrics import GAUGES
from discreet.service.settings_sources import VARIABLES

DEPLOY = Path(__file__).parents[2] / "deploy"
METRICS = {f"discreet_{name}" for name in GAUGES} | {
    "discreet_errors_total",
    *(f"discreet_request_seconds_{part}" for part in ("bucket", "count", "sum")),
}
FILES = [path for path in DEPLOY.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["grafana/discreet.json", "prometheus/alerts.yaml"])
def test_figures_that_are_shown_or_watched_exist(name):
    text = (DEPLOY / name).read_text()
    if name.endswith("json"):
        panels = json.loads(text)["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        text = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    named = set(re.findall(r"discreet_\w+", text))
    assert len(named) >= 6
    assert named <= METRICS
    assert not re.search("observe|activate", text)  # they would tell who answered


def test_every_variable_of_these_files_is_read():
    text = "".join(path.read_text() for path in FILES)
    named = {name.removesuffix("_FILE") for name in re.findall(r"DISCREET_[A-Z_]+", text)}
    assert named - {"DISCREET_API_KEY"} <= set(VARIABLES)
    assert "DISCREET_DATABASE_URL" in named


def test_the_readme_lists_every_file():
    listed = (DEPLOY / "README.md").read_text()
    for path in FILES:
        place = path.relative_to(DEPLOY)
        assert str(place) in listed or f"({place.parts[0]})" in listed or place.name == "README.md"


def test_no_password_is_in_a_file():
    for path in FILES:
        assert not re.search(r"://\w+:(?!%s@)[^@\s/]+@", path.read_text()), path


def test_the_check_of_the_image_finds_the_keys_that_commands_print(tmp_path, capsys, monkeypatch):
    """With an empty key it would end at the first decision, without a word."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    text = (DEPLOY / "check_image.sh").read_text()
    found = re.findall(r"^key=\$\(\$run discreet (.*?) \| sed '(.*)'\)$", text, re.MULTILINE)
    assert [words.split()[0] for words, _ in found] == ["serve", "experiment"]
    assert main(["serve", "--folder", "many", "--init"]) == 0
    capsys.readouterr()
    for words, program in found:
        assert main(words.split()) == 0
        reported = capsys.readouterr().out
        key = subprocess.run(
            ["sed", program], input=reported, capture_output=True, text=True, check=True
        ).stdout
        assert key.startswith("dk_"), words
    assert text.count('test -n "$key" || {') == len(found)


def test_git_ignores_the_secrets_of_the_compose_file():
    text = (DEPLOY / "compose.yaml").read_text()
    made = re.search(r"mkdir -p ([\w ]+) &&", text)[1].split()
    assert made == ["secrets", "data"]
    ignored = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    assert {f"/deploy/{name}/" for name in made} <= set(ignored)


def test_the_time_until_a_release_is_shown_only_while_one_waits():
    """The metric is 0 while none does, which is 1970."""
    panels = json.loads((DEPLOY / "grafana/discreet.json").read_text())["panels"]
    shown = [
        target["expr"] for panel in panels for target in panel["targets"] if "due" in target["expr"]
    ]
    assert shown
    assert all(re.search(r"due_timestamp_seconds\{[^}]*\} > 0\)", each) for each in shown)


def test_the_unit_that_backs_up_makes_its_folder_and_knows_every_kind(tmp_path):
    """What its shell runs, with a program in place of discreet that prints its words."""
    text = (DEPLOY / "systemd/discreet-backup@.service").read_text().replace("\\\n", "")
    (makes,) = re.findall(r"^ExecStartPre=\+(\S+) (.*)$", text, re.MULTILINE)
    assert makes[0] == "/usr/bin/install"
    assert "-o discreet" in makes[1]
    (script,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", text, re.MULTILINE)
    script = script.replace("%i", "shop").replace("%%", "%").replace("$$", "$")
    script = script.replace("/srv/discreet/venv/bin/discreet", "echo")
    for made, expected in (
        ((), r"backup /var/backups/discreet/shop-[\d-]+\.backup"),
        (("server.toml",), r"backup --folder \. /var/backups/discreet/shop-[\d-]+"),
    ):
        for name in made:
            (tmp_path / name).touch()
        done = subprocess.run(
            ["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert re.fullmatch(expected, done.stdout.strip())
