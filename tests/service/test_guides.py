"""The guides of the service: their commands run, and they name everything there is."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from discreet.plan.checks import UNITS
from discreet.service.experiment_file import EXPERIMENT_EXAMPLE
from discreet.service.metrics import Metrics
from discreet.service.settings import MODES, OF_SERVER, PEOPLE, Settings
from discreet.service.storage.api_keys import SCOPES
from service.served import Server

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "service.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def test_the_walkthrough(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "utf8",
            str(ROOT / "examples" / "service" / "walkthrough.py"),
            tmp_path,
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "first decision: action" in done.stdout
    assert re.search(r"[3-9] releases verified here; they cost one decision ε = 2 ", done.stdout)
    kept = {path.name for path in (tmp_path / "vault").glob("batch-*")}
    with closing(sqlite3.connect(tmp_path / "discreet.db")) as database:
        rows = database.execute("SELECT epoch, id FROM batches WHERE state = 'released'").fetchall()
    released = {f"batch-{epoch}-{batch}.key" for epoch, batch in rows}
    # The service may stop between its last release and the end of that batch's key.
    assert len(released) >= 3
    assert len(kept & released) <= 1, "keys of released batches are destroyed"
    assert "dk_" not in re.sub(r"dk_\w{1,12}…", "", done.stdout), "no key is printed whole"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl must be installed: apt install curl")
def test_three_commands_reach_a_first_decision(tmp_path):
    block = re.search(r"```bash\n(pip .*?)```", GUIDE, re.DOTALL)[1]
    install, begin, serve, ask = block.strip().splitlines()
    assert install.partition("  #")[0] == "pip install '.[serve]'"
    assert serve == "discreet serve &"
    program = [sys.executable, "-m", "discreet.cli.main", *begin.split()[1:]]
    begun = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    key = re.search(r"dk_\S+", begun.stdout)[0]
    server = Server(tmp_path).wait()
    try:
        ask = ask.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
        done = subprocess.run(
            ["bash", "-c", f"{ask} --silent"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "KEY": key},
        )
    finally:
        server.stop()
    answer = json.loads(done.stdout)
    shown = json.loads(re.search(r"```json\n(.*?)```", GUIDE, re.DOTALL)[1])
    assert set(answer) == set(shown)
    assert answer["stored"]


def test_the_traffic_of_the_guide_shows_a_release_before_it_ends(tmp_path):
    """The command runs for rows / rate seconds; the first release of the example comes earlier."""
    rate, rows = map(
        int, re.search(r"simulate-traffic .*--rate (\d+) --rows (\d+)", GUIDE).groups()
    )
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT_EXAMPLE)
    settings = Settings.read(path)
    first = settings.plan.first_batch / rate + settings.window + settings.settle
    assert first < rows / rate / 2, "with room for a slow machine"


def unnamed(text, names):
    return [name for name in names if f"`{name}`" not in text]


def test_the_guide_names_every_setting_scope_mode_and_unit():
    settings = {each.name for each in fields(Settings)} - {"plan", "folder", "server"}
    assert unnamed(GUIDE, [*settings, *OF_SERVER]) == []
    assert unnamed(GUIDE, (*SCOPES, *MODES, *UNITS, *PEOPLE)) == []
    assert unnamed(GUIDE, ["no_such_setting"]) == ["no_such_setting"]


def test_defaults_in_the_guide_are_those_of_the_code():
    defaults = {each.name: each.default for each in fields(Settings)}
    defaults |= {name: getattr(defaults["server"], name) for name in OF_SERVER}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", GUIDE, re.MULTILINE)
    reported = {}
    for names, values in rows:
        reported |= dict(zip(re.findall(r"\w+", names), values.split(", "), strict=False))
    checked = {
        name: text.strip().strip("`")
        for name, text in reported.items()
        if name in defaults and isinstance(defaults[name], (str, int, float))
    }
    assert len(checked) >= 15
    for name, text in checked.items():
        value = defaults[name]
        expected = str(value).lower() if isinstance(value, bool) else str(value)
        assert text in (expected, f"{value:g}" if isinstance(value, float) else expected), name


def test_operations_name_every_public_metric():
    status = {"batches": [], "now": 0.0, "newest": 0, "ready": True, "ended": False, "alerts": []}
    metrics = Metrics(internal=False)
    metrics.count("/v1/decide", 503, 0.1)
    text = metrics.public(status, 0.0, 1.0).decode()
    families = set(re.findall(r"^# TYPE (discreet_\w+)", text, re.MULTILINE))
    families = {name for name in families if not name.endswith("_created")}
    assert len(families) >= 10
    counters = set(re.findall(r"^# TYPE (\w+) counter", text, re.MULTILINE))
    shown = {
        f"{name.removesuffix('_total')}_total" if name in counters else name for name in families
    }
    assert unnamed(OPERATIONS, sorted(shown)) == []


def test_messages_quoted_in_operations_exist():
    source = "".join(path.read_text() for path in (ROOT / "src/discreet/service").rglob("*.py"))
    spaced = re.sub(r'"\s*\n\s*f?"', "", source)
    for quoted in re.findall(r'^\| "([^"…]+)', OPERATIONS, re.MULTILINE):
        assert quoted.strip() in spaced, quoted
    for code in re.findall(r"^\| 503 `(\w+)`", OPERATIONS, re.MULTILINE):
        assert f'"{code}"' in spaced
