"""Processes that all try the same thing at the same moment."""

from functools import partial

from discreet.service.runtime import fit_process
from discreet.service.runtime.release_transaction import Publisher
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.settings import Settings
from discreet.service.storage.batches import SlotRequest
from discreet.service.storage.group_commit import Writer
from service.forks import FORKS, started
from waiting import PATIENCE


def race(config, orders, answers, harm):
    """Obey until told to end: release what is due, or lease slots so many times at most."""
    from service.attack import sabotage

    if harm:
        getattr(sabotage, harm)()
    settings = Settings.read(config)
    state = WorkerState(settings, workers=4)
    database, vault, writer = state.database, state.vault, Writer(state.database)
    fit = partial(fit_process.fit, settings, database, vault)
    known = state.serving.chain
    publisher = Publisher(
        settings, database, vault, state.anchor, known, fit, writer.run, lambda _: None
    )
    answers.put("ready")
    while (order := orders.get()) is not None:
        try:
            if order == "release":
                answers.put(publisher.release_next())
            else:
                answers.put(leased(writer, state, order))
        except Exception as error:  # a racer that loses may be told so by the database
            answers.put(type(error).__name__)
    writer.close()


def leased(writer, state, most):
    """Every slot that could be had in so many leases, as (batch, slot)."""
    found, wanted = [], SlotRequest(state.settings.lease)
    for _ in range(most):
        lease = writer.run(lambda c: state.slots.lease(c, [wanted])[0])
        if lease is None:
            break
        found += [(lease.batch, slot) for slot in lease.free]
    return found


class Racers:
    """Four processes beside each other on one database."""

    def __init__(self, config, count=4, harm=""):
        self._orders = [FORKS.Queue() for _ in range(count)]
        self._answers = FORKS.Queue()
        self._processes = [
            FORKS.Process(target=race, args=(str(config), orders, self._answers, harm))
            for orders in self._orders
        ]

    def __enter__(self):
        for process in self._processes:
            started(process)
        assert self._all() == ["ready"] * len(self._processes)
        return self

    def __call__(self, order):
        """What each of them answered."""
        for orders in self._orders:
            orders.put(order)
        return self._all()

    def _all(self):
        return [self._answers.get(timeout=PATIENCE) for _ in self._processes]

    def __exit__(self, *_):
        for orders in self._orders:
            orders.put(None)
        for process in self._processes:
            process.join(10)
            process.kill()
