"""Reference pages: a bullet with a public name is replaced by its documentation.

``- `discreet.Plan`: …`` becomes the docstrings of the class and its methods, ``- `discreet plan`:
…`` what the command prints as its help. On a code host the page is the list itself.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from argparse import ArgumentParser
from dataclasses import is_dataclass
from functools import cache
from typing import Any

NAME = re.compile(r"^- `(discreet(?:\.\w+)+)`(?:: (.*(?:\n  .+)*))?\n?", re.MULTILINE)
COMMAND = re.compile(r"^- `discreet ([a-z-]+)`.*(?:\n  .+)*\n?", re.MULTILINE)
FIELDS_ALONE = re.compile(
    r"discreet\.(Number|Flag|Category|Hashed|Date|SecureNoise|SeededNoise|Prior"
    r"|AdaptivePO|ReplayBonusPO|SquareCB|FastCB|LinUCB|RegCB|AdaCB|Greedy|Uniform"
    r"|PooledRidge|Ridge|Logistic|FiniteClass|audit\.Chosen|audit\.Trials)"
)
"""Classes whose methods only the library calls."""
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
COLUMNS = "92"
"""Width of help texts."""


def names(text: str) -> list[str]:
    """Return the public names of a page, in its order."""
    return [name for name, _ in NAME.findall(text)]


def undocumented(text: str) -> list[str]:
    """Arguments that neither the docstring of a name on this page nor the page itself explains."""
    missing = []
    for name in names(text):
        item = found(name)
        if not callable(item) or (inspect.isclass(item) and issubclass(item, BaseException)):
            continue
        said = f"{inspect.getdoc(item) or ''}\n{NAME.sub('', text)}"
        source = inspect.getsource(item) if is_dataclass(item) else ""  # type: ignore[arg-type]
        for argument in inspect.signature(item).parameters.values():
            word = re.escape(argument.name)
            known = re.search(rf"(?<![\w.]){word}(?!\w)", said)
            below = re.search(rf'^    {word}: .*\n    """', source, re.MULTILINE)  # of a field
            hidden = argument.kind not in NAMED or argument.name.startswith("_")
            if not (known or below or hidden):
                missing.append(f"{name}: {argument.name}")
    return missing


def commands(text: str) -> list[str]:
    return COMMAND.findall(text)


def expanded(text: str) -> str:
    """Return the page with documentation in place of names."""
    named = NAME.sub(lambda entry: _entry(entry[1], entry[2] or ""), text)
    return COMMAND.sub(lambda entry: _help(entry[1]), named)


def found(name: str) -> Any:
    """Return the object of a dotted name; a function before a module of the same name."""
    path, *parts = name.split(".")
    item: Any = importlib.import_module(path)
    for part in parts:
        path = f"{path}.{part}"
        item = getattr(item, part) if hasattr(item, part) else importlib.import_module(path)
    return item


def _entry(name: str, words: str) -> str:
    item = found(name)
    if inspect.isclass(item):
        bare = issubclass(item, BaseException) or FIELDS_ALONE.fullmatch(name)
        members = "" if bare else "   :members:\n"
        directive = f".. autoclass:: {name}\n{members}"
    elif callable(item):
        directive = f".. autofunction:: {name}\n"
    else:  # a constant has no docstring: what the list says of it is all
        line = " ".join(words.split()).replace("`", "``")
        directive = f".. py:data:: {name}\n\n   {line}\n"
    return f"```{{eval-rst}}\n{directive}```\n\n"


@cache
def _parsers() -> dict[str, ArgumentParser]:
    from discreet.cli.main import build_parser

    os.environ["COLUMNS"] = COLUMNS
    return dict(build_parser()[1])


def _help(command: str) -> str:
    parser = _parsers()[command]
    texts = [(f"discreet {command}", parser)]
    for action in parser._actions:
        if isinstance(action.choices, dict):
            texts += [(f"discreet {command} {name}", each) for name, each in action.choices.items()]
    said = f"## discreet {command}\n\n"
    for title, each in texts:
        said += "" if each is parser else f"### {title}\n\n"
        said += f"```text\n{each.format_help().rstrip()}\n```\n\n"
    return said
