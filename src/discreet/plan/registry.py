"""The registry: which classes a document may name as its policy or its oracle.

Documents hold names, never code to import. A name is known if it is built in, if ``register``
was called in this process, or if an installed package has an entry point with that name in the
group ``discreet.plugins``. [docs/extending.md]
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from operator import attrgetter
from typing import Any, TypeVar

from discreet import oracles, policies
from discreet.errors import InvalidInput
from discreet.validate import nearest

GROUP = "discreet.plugins"
"""The group of entry points; each has the name of the class that it loads."""
RESERVED = ("Default", "Supervised")
"""Names that campaigns use for algorithms without a class of their own."""

C = TypeVar("C", bound=type[Any])
_ORIGIN = attrgetter("__module__", "__qualname__")


class Registry(Mapping[str, type[Any]]):
    """Classes by name: first the built-in ones, then those that users registered."""

    def __init__(self, built_in: Iterable[type[Any]]) -> None:
        self.built_in = {each.__name__: each for each in built_in}
        self.own: dict[str, type[Any]] = {}

    def __getitem__(self, name: str) -> type[Any]:
        if name not in self.built_in and name not in self.own:
            _load_plugin(name)
        return self.built_in[name] if name in self.built_in else self.own[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self.built_in, *self.own))

    def __len__(self) -> int:
        return len(self.built_in) + len(self.own)

    def holds(self, item: object) -> bool:
        """Return whether the name of an object's class leads back to that class."""
        return self.get(type(item).__name__) is type(item)


def _is_policy(item: Any) -> bool:
    return issubclass(item, policies.Policy) and not inspect.isabstract(item)


def _is_oracle(item: object) -> bool:
    return callable(getattr(item, "calibrate", None)) and hasattr(item, "bounded")


def _classes(package: object) -> list[type[Any]]:
    """The dataclasses that a package exports, in the order of their names."""
    exported = [item for item in vars(package).values() if inspect.isclass(item)]
    return sorted(filter(is_dataclass, exported), key=lambda each: each.__name__)


POLICIES = Registry(each for each in _classes(policies) if _is_policy(each))
ORACLES = Registry(each for each in _classes(oracles) if _is_oracle(each))


def register(kind: C) -> C:
    """Make a policy or an oracle known by the name of its class; also as a decorator.

    The class is a frozen dataclass of words and numbers that keeps the contract of ``Policy`` or
    of ``Oracle``. A class that is defined again, as in a notebook, replaces the earlier one. The
    name of a built-in class, or of a class from another module, is refused.

    Args:
        kind: The class.

    Returns:
        The same class.

    Raises:
        InvalidInput: No frozen dataclass of the contract, or a name that is taken.

    >>> from discreet.policies import Greedy
    >>> register(Greedy) is Greedy  # built in already: nothing changes
    True
    """
    parameters = getattr(kind, "__dataclass_params__", None)
    if not inspect.isclass(kind) or parameters is None or not parameters.frozen:
        raise InvalidInput(
            f"class must be a frozen dataclass to be registered; got {kind!r}. "
            "Write @discreet.register above @dataclass(frozen=True) above the class."
        )
    if not (_is_policy(kind) or _is_oracle(kind)):
        raise InvalidInput(
            f"class must be a Policy with probabilities, or have bounded and calibrate as an "
            f"Oracle has; got {kind.__name__}. docs/extending.md shows both."
        )
    name, registry = kind.__name__, POLICIES if _is_policy(kind) else ORACLES
    for each in (POLICIES, ORACLES):
        if each.built_in.get(name) is kind:
            return kind
        known = each.own.get(name)
        same = known is None or (each is registry and _ORIGIN(known) == _ORIGIN(kind))
        if name in each.built_in or name in RESERVED or not same:
            by = f"{known.__module__} registered" if known else "is built in"
            raise InvalidInput(
                f"class must have a name of its own; got {name!r}, which {by}. Rename it."
            )
    registry.own[name] = kind
    return kind


def refuse_unregistered(name: str, item: object, registry: Registry) -> None:
    """Refuse an object whose class a document cannot name."""
    if registry.holds(item):  # the usual case, without a search of the installed packages
        return
    step = "Make one and pass it, or register your own class with discreet.register."
    if isinstance(item, str) or inspect.isclass(item):
        word = item if isinstance(item, str) else item.__name__
        step = f"Pass an object, as {word}(...)." if word in registry else nearest(word, registry)
        step += " Write it without quotes."
    raise InvalidInput(f"{name} must be an object of {', '.join(registry)}; got {item!r}. {step}")


def import_module(name: str) -> None:
    """Import a module that the command line names, so that it registers its classes.

    Modules in the current folder are found as well, as with ``python -m``.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise InvalidInput(
            f"--import must name a module that can be imported; got {name!r} ({error}). "
            "Write it as package.module, and install the packages that it needs."
        ) from None


def _load_plugin(name: str) -> None:
    for point in importlib.metadata.entry_points(group=GROUP, name=name):
        kind = register(point.load())
        if kind.__name__ != name:
            raise InvalidInput(
                f"entry point {name!r} of {GROUP} must have the name of its class; it loads "
                f"{kind.__name__!r}. Rename the entry point in its package."
            )
