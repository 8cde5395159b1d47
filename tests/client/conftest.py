"""A stub of a service, and time that does not pass."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from discreet.client import transport


class Stub:
    """``answers`` maps (method, path) to (status, body) or to a list of them, one a request.

    A status of None closes the connection without an answer. ``url`` is its address.
    """

    def __init__(self):
        self.answers, self.asked, self.connections = {}, [], set()

    def answer(self, method, path):
        found = self.answers.get((method, path), (404, {"error": {"code": "not_found"}}))
        return found.pop(0) if isinstance(found, list) else found


@pytest.fixture
def stub():
    """A tiny HTTP server that answers as a test defines, and records requests."""
    made = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together

        def _handle(self):
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            made.connections.add(self.client_address)
            made.asked.append((self.command, self.path, dict(self.headers), body))
            status, content, *headers = made.answer(self.command, self.path)
            if status is None:
                self.close_connection = True
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _handle  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def waits(monkeypatch):
    """Seconds that a client would have slept."""
    slept = []
    monkeypatch.setattr(transport.time, "sleep", slept.append)
    return slept
