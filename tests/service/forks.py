"""A process that has imported the service, from which tests fork theirs.

A Python that imports it anew needs two seconds.
"""

import multiprocessing
import os
import sys
from multiprocessing import forkserver
from unittest.mock import patch

import dp_accounting  # noqa: F401
import uvloop  # noqa: F401

import discreet.learner
import discreet.service.http.app
import discreet.service.http.request_limits
import discreet.service.http.server  # noqa: F401

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


def started(process):
    """Start a process of ``FORKS``."""
    # The server that forks imports everything once; it needs to be told where.
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()
    process.start()
    return process
