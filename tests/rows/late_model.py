"""What batches under way must do, in plain Python: dictionaries and counts, no arrays."""

from dataclasses import dataclass, field


@dataclass
class Batch:
    number: int
    size: int
    losses: dict = field(default_factory=dict)
    """Ids in the order of decisions; None until a loss is heard."""
    sealed: tuple | None = None
    closed: bool = False


@dataclass
class Model:
    first: int
    horizon: int | None
    waiting: str
    decisions_window: int | None
    seconds_window: float | None
    automatic: bool
    decisions: int = 0
    now: float = 0.0
    opened: int = 0
    ids: int = 0
    live: list = field(default_factory=list)
    released: list = field(default_factory=list)
    """Number, ids and losses of every release."""

    def over(self, batch, coming=0):
        if batch.sealed is None:
            return False
        made, since = self.decisions + coming - batch.sealed[0], self.now - batch.sealed[1]
        counted = self.decisions_window is not None and made > self.decisions_window
        timed = self.seconds_window is not None and since >= self.seconds_window
        return batch.closed or counted or timed

    def ready(self, coming=0):
        if not self.live or self.live[0].sealed is None:
            return False
        return None not in self.live[0].losses.values() or self.over(self.live[0], coming)

    def release(self):
        batch = self.live.pop(0)
        self.released.append((batch.number, dict(batch.losses)))

    def decide(self, count):
        """The ids that must be returned."""
        while self.automatic and self.ready(count):
            self.release()
        ids = [self._slot() for _ in range(count)]
        self.decisions += count
        for batch in self.live:
            if batch.sealed is None and len(batch.losses) == batch.size:
                batch.sealed = (self.decisions, self.now)
        return ids

    def _slot(self):
        last = self.live[-1] if self.live else None
        if last is None or len(last.losses) == last.size:
            if last is not None and self.waiting == "gap":
                return -1
            size = self.first << self.opened
            if (
                self.horizon is not None
                and self.first * (2 ** (self.opened + 1) - 1) >= self.horizon
            ):
                return -1
            self.opened += 1
            last = Batch(self.opened, size)
            self.live.append(last)
        last.losses[self.ids] = None
        self.ids += 1
        return self.ids - 1

    def observe(self, told):
        """The word for what must come of losses by id; all of them are kept, or none."""
        told = {id: loss for id, loss in told.items() if id != -1}
        if any(id < -1 or id >= self.ids for id in told):
            return "unknown"
        homes = {id: batch for batch in self.live for id in batch.losses}
        if any(id not in homes or self.over(homes[id]) for id in told):
            return "closed"
        if any(homes[id].losses[id] not in (None, loss) for id, loss in told.items()):
            return "conflict"
        for id, loss in told.items():
            homes[id].losses[id] = loss
        return "kept"
