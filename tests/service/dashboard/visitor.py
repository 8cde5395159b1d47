"""A visitor of the dashboard without a browser: keeps its cookie, sends forms."""

import json
import re
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from discreet.service.http.app import make_app
from service.conftest import running

EITHER = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
HERE = [0.3, -0.2]


def at(path):
    """The address of a page, for document 0 where it has a number."""
    return path.replace("{number:int}", "0")


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self):
        """The JSON of the answer; None if it is empty."""
        return json.loads(self.text) if self.text else None


class Visitor:
    """Requests to the application of a started service, as from ``host``."""

    def __init__(self, service, host="127.0.0.1", app=None):
        self.app = app or make_app(service)
        self.host, self.cookie, self.token = host, None, ""

    def other(self, host=None):
        """Somebody else, by default from the same address, with the same application."""
        return Visitor(None, self.host if host is None else host, self.app)

    async def ask(self, method, path, form=None, raw=None, content=None, **headers):
        sent = [
            (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        if self.cookie:
            sent.append((b"cookie", self.cookie.encode()))
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": sent,
            "client": (self.host, 1),
            "server": ("localhost", 80),
            "scheme": "http",
            "root_path": "",
        }
        body, answers = urlencode(form or {}, doseq=True).encode(), []
        if raw is not None:  # for the routes that take JSON
            body = json.dumps(raw).encode()
        body = body if content is None else content

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            answers.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode().lower(): value.decode() for name, value in answers[0]["headers"]}
        content = b"".join(each.get("body", b"") for each in answers[1:])
        if "set-cookie" in headers:
            self.cookie = headers["set-cookie"].split(";")[0]
        text = content.decode("utf-8", "replace")
        if found := re.search('name="token" value="([^"]+)"', text):
            self.token = found[1]
        return Reply(answers[0]["status"], headers, text)

    async def get(self, path, **headers):
        return await self.ask("GET", path, **headers)

    async def send(self, path, **form):
        """A form with our token in it."""
        return await self.ask("POST", path, {"token": self.token, **form})

    async def log_in(self, key):
        await self.get("/ui/login")
        reply = await self.send("/ui/login", key=key)
        if reply.status == 303:
            await self.get("/ui")
        return reply


@asynccontextmanager
async def visiting(settings, **changes):
    """A visitor who is signed in as an administrator, and the service."""
    async with running(settings(**changes)) as service:
        visitor = Visitor(service)
        assert (await visitor.log_in(settings.key())).status == 303
        yield visitor, service


async def fill(service, context=HERE):
    """Decide until the batch is full, and report the losses."""
    while (made := await service.decisions.decide("caller", context)).stored:
        await service.decisions.observe(made.decision, 0.5)


EVERY_KIND = {
    "kind": "Schema",
    "fields": [
        {"kind": "Number", "name": "n", "low": 1, "high": 100, "log": True, "indicator": True},
        {"kind": "Flag", "name": "f", "stand_in": True},
        {"kind": "Category", "name": "c", "values": [1, 2], "other": True},
        {"kind": "Hashed", "name": "h", "width": 4, "indicator": True},
        {"kind": "Date", "name": "t"},
    ],
    "products": [["n", "f"]],
}
"""A schema with a column of each kind."""
