"""Ports for the services that tests start."""

import os
import random
import socket

LOWEST, HIGHEST = 20_000, 32_767
"""Below the ports that the kernel hands out, so that no other server of a test gets the same one
between the choice and the start of the service: it would be taken for the service."""


def free_port():
    """A port of this machine on which nothing listens; processes of one run draw from their own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    own = range(LOWEST + int(worker) % 8, HIGHEST, 8)
    for port in random.SystemRandom().sample(own, len(own)):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
