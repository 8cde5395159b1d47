"""The command line as a process of its own."""

import sys

# A suite in the background may have been told to ignore Ctrl-C; the program must hear it.
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from discreet.cli.main import main
raise SystemExit(main())
"""
PROGRAM = [sys.executable, "-c", START]
