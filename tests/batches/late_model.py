"""What batches under way must do, in plain Python: dictionaries and counts, no arrays."""

from dataclasses import dataclass, field


@dataclass
class Batch:
    number: int
    size: int
    opened: float = 0.0
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
    every: float | None = None
    decisions: int = 0
    now: float = 0.0
    opened: int = 0
    ids: int = 0
    """One more than the last id."""
    since: float = 0.0
    """When the batch that is open, or opens next, began."""
    live: list = field(default_factory=list)
    released: list = field(default_factory=list)
    """Number, ids and losses of every release."""

    def tick(self):
        """What the clock does: a batch with slots ends, one without goes on to the next tick."""
        while self.every is not None and self.since + self.every <= self.now:
            last = self.live[-1] if self.live else None
            if last is not None and last.sealed is not None and self.waiting == "gap":
                return  # nothing is open
            self.since += self.every
            if last is not None and last.sealed is None:
                last.sealed, last.size = (self.decisions, self.since), len(last.losses)
                if self.waiting == "pipeline" and self._another:
                    self.ids = self._next_start  # numbers that nobody took stay unused

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
        answered = None not in self.live[0].losses.values()
        return (self.automatic and answered) or self.over(self.live[0], coming)

    def release(self):
        batch = self.live.pop(0)
        if self.waiting == "gap":
            self.since = self.now
        self.released.append((batch.number, dict(batch.losses)))

    def decide(self, count):
        """The ids that must be returned."""
        self.tick()
        while self.automatic and self.ready(count):
            self.release()
        ids = [self._slot() for _ in range(count)]
        self.decisions += count
        for batch in self.live:
            if batch.sealed is None and len(batch.losses) == batch.size:
                batch.sealed = (self.decisions, self.now)
                self.since = self.now
        return ids

    def _slot(self):
        last = self.live[-1] if self.live else None
        if last is None or len(last.losses) == last.size:
            if last is not None and self.waiting == "gap":
                return -1
            if not self._another:
                return -1
            size, self.ids = self.first << self.opened, self._next_start
            self.opened += 1
            last = Batch(self.opened, size)
            self.live.append(last)
        last.losses[self.ids] = None
        self.ids += 1
        return self.ids - 1

    @property
    def _another(self):
        """Whether a batch may follow those that were opened."""
        ends = self.first * (2 ** (self.opened + 1) - 1)
        return self.horizon is None or ends < self.horizon

    @property
    def _next_start(self):
        return self.first * (2**self.opened - 1)

    @property
    def _oldest(self):
        """The first id of the oldest batch under way."""
        number = self.live[0].number if self.live else self.opened + 1
        return self.first * (2 ** (number - 1) - 1)

    def observe(self, told):
        """The word for what must come of losses by id; all of them are kept, or none."""
        self.tick()
        told = {id: loss for id, loss in told.items() if id != -1}
        # The numbers that a clock left unused count as past once their batch was released.
        if any(id < -1 or id >= max(self.ids, self._oldest) for id in told):
            return "unknown"
        homes = {id: batch for batch in self.live for id in batch.losses}
        if any(id < self._oldest for id in told):
            return "closed"
        if any(id not in homes for id in told):
            return "unknown"  # between two batches: a slot that nobody took
        if any(id not in homes or self.over(homes[id]) for id in told):
            return "closed"
        if any(homes[id].losses[id] not in (None, loss) for id, loss in told.items()):
            return "conflict"
        for id, loss in told.items():
            homes[id].losses[id] = loss
        return "kept"
