"""Client and Billboard with a real service: settings, process, HTTP, releases."""

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from discreet.client import Billboard, Client
from discreet.service.runtime import lifecycle
from discreet.service.settings import Settings
from service.conftest import toml
from tolerances import EXACT
from waiting import PATIENCE, until

pytest.importorskip("uvicorn")
CLIENT = Path(__file__).parents[2] / "clients" / "js"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service that was started, and its admin key."""
    from service.served import Server

    folder = tmp_path_factory.mktemp("service")
    (folder / "experiment.toml").write_text(toml(waiting="pipeline", journal="observe"))
    key = lifecycle.begin(Settings.read(folder / "experiment.toml"))
    server = Server(folder)
    try:
        yield server.wait(), key
    finally:
        server.stop()


@pytest.fixture(scope="module")
def service(running):
    """Address and admin key of a running service."""
    server, key = running
    return f"http://127.0.0.1:{server.port}", key


@pytest.fixture
def client(service):
    with Client(*service) as made:
        yield made


def fill(client, records):
    """So many stored decisions with their losses."""
    for _ in range(records):
        decision = until(lambda: (d := client.decide([0.5, -0.5])).stored and d)
        client.observe(decision, 1.0)


def test_what_the_service_learns_is_what_the_billboard_says(running, service, client):
    url, key = service
    public_key = client.releases()["key"]
    board = Billboard(url, public_key, key=key)
    np.testing.assert_allclose(board.probabilities([0.5, 0.5]), 1 / 3, rtol=0, atol=EXACT)
    fill(client, 4)
    running[0].windows_end()
    until(lambda: board.refresh() >= 1)
    probabilities = board.probabilities([0.5, 0.5])
    assert probabilities.sum() == pytest.approx(1.0, abs=EXACT)
    until(lambda: client.decide([0.5, 0.5]).release == board.number)


@pytest.mark.skipif(shutil.which("node") is None, reason="node must be installed for clients/js")
def test_javascript_reads_the_same(service, client, tmp_path):
    url, key = service
    public_key = client.releases()["key"]
    board = Billboard(url, public_key, key=key)
    for name in ("discreet.js", "client.js", "package.json"):
        shutil.copy(CLIENT / name, tmp_path)
    code = (
        'import { Billboard, Client } from "./client.js";\n'
        f'const headers = {{ Authorization: "Bearer {key}" }};\n'
        f'const board = await Billboard.open("{url}", "{public_key}", headers);\n'
        "const probabilities = board.probabilities([0.5, 0.5]);\n"
        f'const client = new Client("{url}", {{ key: "{key}" }});\n'
        "const { ranking } = await client.decide([0.5, 0.5], { actions: [1, 0], ranking: true });\n"
        "const { action } = await client.decide([0.5, 0.5], { actions: [1] });\n"
        "console.log(JSON.stringify({ number: board.number, probabilities, ranking, action }));\n"
    )
    (tmp_path / "ask.mjs").write_text(code)
    done = subprocess.run(["node", "ask.mjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (sorted(found["ranking"]), found["action"]) == ([0, 1], 1)
    expected = board.probabilities([0.5, 0.5], release=found["number"])
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=EXACT)


def test_a_ticket_lets_the_device_decide(service, client):
    url, key = service
    board = Billboard(url, client.releases()["key"], key=key)
    ticket = until(lambda: (t := client.ticket()).stored and t)
    if ticket.release > board.number:
        board.refresh()
    context = [0.25, 0.75]
    action = board.sample(context, release=ticket.release)
    client.observe(ticket, 0.5, context=context, action=action)
    client.observe(ticket, 0.5, context=context, action=action)


def test_the_page_about_clients_works(service, client):
    """docs/clients.md defines functions; here they meet a service."""
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    assert "deadline=0.2" in page
    page = page.replace("deadline=0.2", f"deadline={PATIENCE}")  # a machine may pause for longer
    told = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(block, told)
    url, key = service
    assert told["greet"](url, key, [0.5, 0.5]) in range(3)
    assert told["greet_in_time"](url, key, [0.5, 0.5]) in range(3)
    assert asyncio.run(told["greet_async"](url, key, [0.5, 0.5])) in range(3)
    told["report"](client, client.decide([0.5, 0.5]), 0.5)
    assert told["decide_here"](url, key, client.releases()["key"], [0.5, 0.5]) in range(3)
