"""A process that has imported the service and forks a ``discreet`` for each line it reads.

It answers with the process id, or after its end with the exit status. A start then takes a
fraction of a second, so that a test can afford many crashes. The forked process is what the
command is: its own session, a real server.
"""

import json
import os
import signal
import sys


def main(example):
    import uvloop  # noqa: F401

    import discreet.service.http.app
    import discreet.service.http.request_limits
    import discreet.service.http.server  # noqa: F401
    from discreet.service.http.server import preflight
    from discreet.service.settings import Settings

    preflight(Settings.read(example))  # imports what is imported late
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not kept as zombies
    print("ready", flush=True)
    for line in sys.stdin:
        requested = json.loads(line)
        if requested["wait"]:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            become(requested)
        if requested["wait"]:
            pid = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print(pid, flush=True)


def become(requested):
    """Turn this fork into the command that was asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    log = os.open(requested["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for mine, wanted in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(mine, wanted)
    os.environ.update(requested["environment"])
    from discreet.service.storage.database import kill_at

    kill_at(os.environ.get("DISCREET_STEP", ""))
    if requested["sabotage"]:
        from service.attack import sabotage

        getattr(sabotage, requested["sabotage"])()
    from discreet.cli.main import main as command

    os._exit(command(requested["arguments"]))


if __name__ == "__main__":
    main(sys.argv[1])
