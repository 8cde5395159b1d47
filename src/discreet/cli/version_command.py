"""``discreet version``: installed versions."""

from __future__ import annotations

import argparse
import platform

import discreet
from discreet.cli.answer import Answer
from discreet.cli.parser import Commands, command

LIBRARIES = ("numpy", "scipy", "opendp", "dp-accounting", "scikit-learn", "matplotlib", "torch")


def add(commands: Commands) -> None:
    """Add the command, which has no flags."""
    command(commands, "version", "versions of discreet and of its libraries", version)


def version(args: argparse.Namespace) -> Answer:  # noqa: ARG001
    """Report versions of discreet, Python and the libraries, without importing them."""
    libraries = {name: _version_of(name) for name in LIBRARIES}
    document = {
        "discreet": discreet.__version__,
        "python": platform.python_version(),
        "libraries": libraries,
    }
    found = ", ".join(f"{name} {number}" for name, number in libraries.items() if number)
    return Answer(
        document, f"discreet {discreet.__version__} (Python {document['python']}, {found})"
    )


def _version_of(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(name)
    except PackageNotFoundError:
        return None
