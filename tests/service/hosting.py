"""A folder of experiments in the process of a test, and requests to its application."""

import asyncio
import json
from contextlib import asynccontextmanager

from discreet.service.http.server_app import make_server_app
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.storage.api_keys import begin_server
from service.conftest import toml
from service.dashboard.visitor import Visitor

SETTINGS = {"window": 60, "waiting": "pipeline"}


class Folder:
    """``keys`` of experiments by name, and the ``key`` of the server."""

    def __init__(self, path, names=("a", "b"), **server):
        path.mkdir(exist_ok=True)
        server = {"anchors": str(path.parent / "anchors")} | server
        lines = [f"{name} = {json.dumps(value)}" for name, value in server.items()]
        (path / "server.toml").write_text("\n".join(lines))
        self.path, self.key = path, begin_server(path)
        self.held = ExperimentFolder(path)
        self.keys = {}
        for name in names:
            self.add(name)

    def add(self, name, **settings):
        self.keys[name] = self.held.new(name, toml(**(SETTINGS | settings))).admin_key

    def file(self, name, *parts):
        return self.path.joinpath("experiments", name, *parts)


class Asking(Visitor):
    """JSON to the application of a folder, with a key."""

    async def call(self, method, path, key=None, body=None):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        raw = body if method == "POST" and body is not None else None
        reply = await self.ask(method, path, raw=raw, **headers)
        json_ = reply.headers.get("content-type") == "application/json"
        return reply.status, json.loads(reply.text) if json_ else reply.text

    async def decide(self, name, key, path="decide"):
        return await self.call(
            "POST", f"/v1/experiments/{name}/{path}", key, {"context": [0.1, 0.2]}
        )


@asynccontextmanager
async def hosting(folder):
    """The application with all experiments started, and these."""
    app, hosted, service = make_server_app(ExperimentFolder(folder.path))
    await hosted.start()
    try:
        yield Asking(None, app=app), hosted
    finally:
        await hosted.stop()
        service.close()


def host(folder, scenario):
    """Run ``scenario(asking, hosted)`` on a folder."""

    async def run():
        async with hosting(folder) as (asking, hosted):
            return await scenario(asking, hosted)

    return asyncio.run(run())
