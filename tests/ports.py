"""Ports for the services that tests start."""

import random
import socket
import sys

LOWEST, HIGHEST = 20_000, 32_767
"""Below the ports that the kernel hands out, so that no other server of a test gets the same one
between the choice and the start of the service: it would be taken for the service."""

_HELD = []
"""A socket for each port that was handed out, on another address of this machine: until this
process ends, no other test gets the port, of this run or of another one beside it."""


def free_port():
    """A port of this machine on which nothing listens, and which no other test was given."""
    for port in random.SystemRandom().sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST):
        held, tried = socket.socket(), socket.socket()
        with tried:
            try:
                if sys.platform == "linux":  # elsewhere the machine has one such address
                    held.bind(("127.0.0.2", port))
                tried.bind(("127.0.0.1", port))
            except OSError:
                held.close()
                continue
        _HELD.append(held)
        return port
    raise AssertionError("no port is free")
