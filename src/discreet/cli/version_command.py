"""``discreet version``: what is installed."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import discreet
from discreet.cli.answer import Answer

LIBRARIES = ("numpy", "scipy", "opendp", "dp-accounting", "scikit-learn", "matplotlib", "torch")


def version(args: argparse.Namespace) -> Answer:  # noqa: ARG001
    """Version of discreet, Python and the libraries, without importing any of them."""
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
    try:
        return installed(name)
    except PackageNotFoundError:
        return None
