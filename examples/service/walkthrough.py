"""A service from its first day to its third release, in a folder of its own.

    python examples/service/walkthrough.py [FOLDER]

Every step is what an operator or a shop would do; `discreet …` lines are run as they are printed.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from discreet.client import Billboard, Client
from discreet.errors import ServiceError

HERE = Path(__file__).parent
RELEASES, PATIENCE = 3, 120


def discreet(folder, *words):
    """Run a command of discreet and return its JSON answer."""
    print("$ discreet", *(word[:15] + "…" if word.startswith("dk_") else word for word in words))
    done = subprocess.run(
        [sys.executable, "-m", "discreet.cli.main", *words, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def wait(found):
    """The first answer that is not None."""
    end = time.monotonic() + PATIENCE
    while (answer := found()) is None:
        if time.monotonic() > end:
            raise SystemExit("the service did not get there in time")
        time.sleep(0.1)
    return answer


def up(client):
    try:
        return client.status()
    except ServiceError:
        return None


def walk(folder):
    shutil.copy(HERE / "experiment.toml", folder)
    admin = discreet(folder, "serve", "--init")["admin_key"]
    scopes = ("--scope", "decide", "--scope", "observe")
    shop = discreet(folder, "keys", "create", *scopes, "--label", "shop")["key"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    print("$ discreet serve --port", port, "&")
    service = subprocess.Popen(
        [sys.executable, "-m", "discreet.cli.main", "serve", "--port", port],
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        visit(folder, f"http://127.0.0.1:{port}", admin, shop)
    finally:
        service.terminate()
        service.wait()
    print(
        "stopped; what is left in the vault:", *sorted(p.name for p in (folder / "vault").iterdir())
    )


def visit(folder, url, admin, shop):
    client, operator = Client(url, shop, retries=0), Client(url, admin)
    wait(lambda: up(client))

    decision = client.decide({"hour": 9, "visits": 3})
    print(f"first decision: action {decision.action}, by document {decision.release}")
    client.observe(decision, loss=0.0)
    print("status:", client.status()["text"])

    traffic = ("simulate-traffic", "--url", url, "--key", shop, "--data", "linear")
    habits = ("--rate", "150", "--rows", "450", "--missing", "0.1", "--duplicates", "0.05")
    while operator.status()["releases"] < RELEASES:
        told = discreet(folder, *traffic, *habits)
        print(f"mean loss {told['loss']:.3f}, {told['stored']} of {told['decided']} stored")
    print("status:", client.status()["text"])

    public_key = operator.releases()["key"]  # in earnest: from the operator, by another way
    board = Billboard(url, public_key, key=admin)
    for hour in (3, 12, 21):
        shares = board.probabilities({"hour": hour, "visits": 10})
        print(f"at {hour:2} h:", ", ".join(f"action {a} {x:.0%}" for a, x in enumerate(shares)))
    spent = operator.ledger()["spent"]
    print(f"{operator.status()['releases']} releases verified here; they cost one {spent['unit']} "
          f"ε = {float(spent['epsilon']):.3g} at δ = {spent['delta']}")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        walk(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            walk(Path(place))
