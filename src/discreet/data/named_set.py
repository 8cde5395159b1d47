"""A set that was named but not read yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from discreet.data.dataset import Dataset
from discreet.data.user_column import with_users
from discreet.errors import InvalidInput


@dataclass(frozen=True)
class Handle:
    """Reading waits until ``load()``, which may happen in another process.

    ``kind`` is generated, bundled, file or openml; ``reader(place)`` reads the set, and
    that of a file also takes the column of the class. ``rows``,
    ``features`` and ``classes`` are what an index says of a set before it is read, or None.
    """

    name: str
    kind: str
    reader: Callable[..., Dataset]
    place: str | int
    rows: int | None = None
    features: int | None = None
    classes: int | None = None

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return str(self.place) if self.kind == "file" else f"the {self.kind} set"

    def load(
        self, target: str | None = None, encoded: bool = True, user: str | None = None
    ) -> Dataset:
        """The set itself, under the name of the handle; what is asked for here is for files."""
        if user is not None:
            return with_users(self.load(target, encoded=False), user, encoded)
        chosen = (target, encoded) if self.kind == "file" else ()
        data = replace(self.reader(self.place, *chosen), name=self.name)
        found = {"rows": data.rows, "classes": data.n_actions}
        for what, count in found.items():
            said = getattr(self, what)
            if said is not None and said != count:
                raise InvalidInput(
                    f"{self.name} must have {said} {what}, as its INDEX.csv says; {self.place} has "
                    f"{count}. Correct the index, or put the right file there."
                )
        return data
