"""Run the code blocks of a Markdown page in order, in a folder of their own.

Python shares one namespace; shell lines that begin with discreet run; TOML is a file, and so is
Python that begins with "# name.py". Tests run all pages so, and figures of tutorials come of it.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import time
import urllib.request
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest.mock import patch

import discreet
from discreet.cli.main import main
from discreet.plan import registry
from ports import free_port
from program import PROGRAM

SECONDS = 300
"""A loaded machine is slow, and slow is not wrong."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = "8000"
"""Where services of pages listen; a free one takes its place."""


def blocks(page, *languages):
    """Code blocks of a Markdown file, in order."""
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def run_page(text, folder, name):
    """Run all blocks of a page. No block may give cause for advice."""
    port, services = free_port(), []
    text = text.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{port}")
    namespace = {"__name__": "__main__"}
    environment = dict(os.environ)
    try:
        with chdir(folder):
            for number, (language, code) in enumerate(BLOCK.findall(text), start=1):
                if language == "python":
                    warnings.simplefilter("error", discreet.Advice)
                    if module := re.match(r"# (\S+\.py)\n", code):
                        (folder / module[1]).write_text(code)
                    run_python(code, namespace, f"{name}, block {number}")
                elif language == "toml":
                    first = re.match(r"# (\S+\.toml)\n", code)
                    assert first, "a TOML block begins with '# name.toml'"
                    (folder / first[1]).write_text(code)
                elif language == "sh":
                    for line in code.splitlines():
                        if line.startswith("discreet serve") and " & " in line:
                            services.append(start(line, folder, port))
                        elif line.startswith("discreet "):
                            run_line(line.split("  #")[0], folder)
    finally:
        for each in services:
            each.terminate()
            each.wait(SECONDS)
        os.environ.clear()
        os.environ.update(environment)
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")


def run_line(line, folder):
    """Run a command, whose output may go to a file."""
    command, _, target = line.partition(" > ")
    said = run(command, folder)
    if target:
        (folder / target.strip()).write_text(said)


def run(command, folder):
    """What a command prints; it must succeed.

    It runs in this process, which has imported the libraries: other tests start programs. Only
    workers that are told of a page's own code need a fresh process.
    """
    words = command.split()
    assert words[0] == "discreet"
    if {"--import", "--jobs"} <= set(words):
        return in_fresh_process(words[1:], folder)
    said, complained = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        nothing_registered(folder),
        redirect_stdout(said),
        redirect_stderr(complained),
    ):
        try:
            code = main(words[1:])
        except SystemExit as end:  # --help
            code = end.code
    assert code == 0, complained.getvalue()
    return said.getvalue()


@contextlib.contextmanager
def nothing_registered(folder):
    """What the page has registered here is not known to a command, which must import it."""
    with (
        patch.object(registry.POLICIES, "own", {}),
        patch.object(registry.ORACLES, "own", {}),
        patch.object(sys, "path", sys.path.copy()),
    ):
        yield
    for module in folder.glob("*.py"):
        sys.modules.pop(module.stem, None)


def in_fresh_process(words, folder):
    done = subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(line, folder, port):
    """A service in the background, once it answers."""
    words = line.partition(" > ")[0].split()[1:]
    with (folder / "service.log").open("wb") as log:
        service = subprocess.Popen(
            [*PROGRAM, *words, "--port", str(port)], cwd=folder, stdout=log, stderr=log
        )
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and service.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            return service
        time.sleep(0.1)
    service.kill()
    raise AssertionError((folder / "service.log").read_text())


def run_python(text, namespace, name):
    """Run a block; one with prompts is compared with what it prints."""
    if ">>>" not in text:
        exec(compile(text, name, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    test.globs = namespace
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said = []
    runner.run(test, out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)
