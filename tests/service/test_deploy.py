"""The files of deploy/ name what exists."""

import json
import re
from pathlib import Path

import pytest

from discreet.service.environment import VARIABLES
from discreet.service.http.metrics import GAUGES

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
