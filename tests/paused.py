"""Runs a command on a machine that pauses, so that tests which hope to be in time fail.

    sudo python tests/paused.py [--seed 1] [--longest 0.8] [--every 1.0] -- make test

Now and then all cores are taken away from everything else at once, as a busy host does with a
virtual machine. Linux only, and it needs the right to real-time priority.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from multiprocessing import Process


def take(core, begins, seed, longest, every):
    """Keep one core busy in the moments that the seed says, which are those of the other cores."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    draws = random.Random(seed)
    while True:
        time.sleep(max(0.0, begins - time.monotonic()))
        ends = begins + draws.uniform(0.1, longest)
        while time.monotonic() < ends:
            pass
        begins = ends + draws.expovariate(1.0 / every)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.8, help="seconds of a pause")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two, on average")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    try:  # what each of the processes will ask for
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        sys.exit("paused.py must have the right to real-time priority; it has not. Use sudo.")
    words = (time.monotonic() + 1.0, given.seed, given.longest, given.every)
    takers = [Process(target=take, args=(core, *words)) for core in os.sched_getaffinity(0)]
    for each in takers:
        each.start()
    try:
        return subprocess.run(given.command).returncode
    finally:
        for each in takers:
            each.kill()


if __name__ == "__main__":
    sys.exit(main())
