"""Model of the service in a hundred lines: slots, windows, observations, releases."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Batch:
    id: int
    size: int
    opened: float
    taken: int = 0
    state: str = "open"
    closes: float | None = None
    ended: float | None = None
    losses: dict = field(default_factory=dict)
    """The first loss that was heard of a decision; None while nothing was."""

    @property
    def live(self):
        return self.state in ("open", "sealed")

    @property
    def by_clock(self):
        return self.state == "sealed" and self.taken < self.size

    def accepts(self, now):
        return self.live and (self.closes is None or now < self.closes)


@dataclass
class Model:
    """One process with leases of one slot: what is taken is handed out."""

    length: Callable
    """Slots of a batch, by its place in the schedule."""
    window: float
    waiting: str
    memory: float
    every: float | None = None
    """Seconds after which a clock ends a batch."""
    now: float = 0.0
    mode: str = "online"
    batches: list = field(default_factory=list)
    names: dict = field(default_factory=dict)
    """Idempotency keys: the decision and its batch, or no batch."""
    homes: dict = field(default_factory=dict)
    """The batch of every decision that took a slot."""
    spare: Batch | None = None
    """Where a slot was put back, because its request had been made before."""
    releases: int = 0

    @property
    def live(self):
        return [batch for batch in self.batches if batch.live]

    def seal(self, batch):
        batch.state, batch.closes = "sealed", self.now + self.window

    def clock(self):
        """End the open batch if its time is up; an empty one goes on to the next tick."""
        for batch in self.live:
            if batch.state == "open" and self.every and self.now - batch.opened >= self.every:
                if batch.taken:
                    self.seal(batch)
                else:
                    batch.opened += self.every * ((self.now - batch.opened) // self.every)

    def look(self):
        """A worker sees what the clock has ended, and hands out none of its slots."""
        if self.spare is not None and self.spare.by_clock:
            self.spare = None

    def slot(self):
        """The batch of the next slot; None while nothing is stored."""
        if self.mode == "frozen":  # a slot that is held waits
            return None
        spare, self.spare = self.spare, None
        if spare is not None and spare.live:
            return spare
        self.clock()
        batch = next((batch for batch in self.live if batch.state == "open"), None)
        if batch is None:
            if self.waiting == "gap" and self.live:
                return None
            kept = sum(batch.state != "burned" for batch in self.batches)
            batch = Batch(len(self.batches) + 1, self.length(kept + 1), self.now)
            self.batches.append(batch)
        batch.taken += 1
        if batch.taken == batch.size:
            self.seal(batch)
        return batch

    def decide(self, name):
        """The batch that must take the decision, or the decision that must be repeated, or "used"
        where its request took a slot of a batch that is over."""
        known = self.names.get(name)
        if known is not None and known[1] is None:
            return None, known[0]
        if known is not None and not known[1].live and self.now >= known[1].ended + self.memory:
            known = None  # forgotten
        batch = self.slot()
        while batch is not None and not batch.accepts(self.now):
            batch = self.slot()
        if known is not None:
            self.spare = batch or self.spare  # while frozen none is taken, and none put back
            return None, known[0] if known[1].live else "used"
        return batch, None

    def decided(self, name, decision, batch):
        if batch is not None:
            self.homes[decision] = batch
            batch.losses[decision] = None
        if name is not None:
            self.names[name] = (decision, batch)

    def observe(self, decision, loss):
        """What must come of it: unstored, over, conflict or kept."""
        batch = self.homes.get(decision)
        if batch is None:
            return "unstored"
        if not batch.accepts(self.now):
            return "over"
        before = batch.losses[decision]
        if before is None:
            batch.losses[decision] = loss
        return "kept" if before in (None, loss) else "conflict"

    def upkeep(self):
        """The clock ticks, and everything that is due is released, the oldest first."""
        self.clock()
        self.look()
        for batch in self.live:
            if batch.state != "sealed" or self.now < batch.closes:
                return
            batch.state, batch.ended = "released", self.now
            self.releases += 1

    def restart(self):
        """A clean stop gives back the slot that is held, which is the last one taken."""
        if self.spare is not None and self.spare.state == "open":
            self.spare.taken -= 1
        self.spare = None
        self.names = {name: known for name, known in self.names.items() if known[1] is not None}
