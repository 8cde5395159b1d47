"""``discreet version``: versions of discreet, Python and the libraries."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, metadata

import discreet
from discreet.cli import command_line as cli

LIBRARIES = ("numpy", "scipy", "opendp", "dp-accounting", "scikit-learn", "matplotlib", "torch")


@cli.command("version")
def version(args: cli.Args) -> cli.Answer:  # noqa: ARG001
    """Report versions without importing the libraries."""
    libraries: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            libraries[name] = metadata(name)["Version"]
        except PackageNotFoundError:
            libraries[name] = None
    python = platform.python_version()
    document = {"discreet": discreet.__version__, "python": python, "libraries": libraries}
    found = ", ".join(f"{name} {number}" for name, number in libraries.items() if number)
    return cli.Answer(document, f"discreet {discreet.__version__} (Python {python}, {found})")
