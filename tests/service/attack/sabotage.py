"""Ways to break the service, so that the attacks can be seen to notice."""

import itertools


def forget_decisions():
    """Every third group of decisions is acknowledged and not written."""
    from discreet.service.storage.journal import KEPT, Journal

    honest, count = Journal.decide, itertools.count(1)

    def decide(self, connection, items):
        forgotten = next(count) % 3 == 0
        return [KEPT] * len(items) if forgotten else honest(self, connection, items)

    Journal.decide = decide


def no_idempotency():
    """A request that comes again is a new one."""
    from discreet.service.storage.journal import Journal

    Journal._replies = lambda *_: {}


def no_erasure():
    """Deleted rows stay in the pages and in the log."""
    from discreet.service.storage.sqlite import Sqlite

    honest = Sqlite.connect

    def connect(self):
        connection = honest(self)
        connection.execute("PRAGMA secure_delete=OFF")
        return connection

    Sqlite.connect, Sqlite.erase = connect, lambda *_: True


def keep_keys():
    """The key of a batch outlives it."""
    from discreet.service.secrets.vault import Vault

    Vault.destroy = lambda *_: None


def no_sealing():
    """Rows are written as they are."""
    from discreet.service.secrets.sealing import Sealer

    Sealer.seal = lambda *given: bytes(12) + given[-1]
    Sealer.open = lambda *given: given[-1][12:]


def chatty_log():
    """A loss is told to the log."""
    from discreet.service.runtime import decisions

    honest = decisions.WorkerDecisions.observe

    async def observe(self, decision, loss, **rest):
        print("heard", loss, flush=True)
        return await honest(self, decision, loss, **rest)

    decisions.WorkerDecisions.observe = observe


def chatty_errors():
    """A refusal repeats what was sent."""
    from discreet.errors import InvalidInput
    from discreet.service.runtime import decisions, requests

    def chatty(plan, context):
        try:
            return plan.features.map(context)[0]
        except InvalidInput as error:
            raise InvalidInput(f"{error} It was {context!r}.") from None

    requests.features_of = decisions.features_of = chatty


def no_state_check():
    """Nothing locks a batch, asks for its state or verifies: only the keys of the table remain."""
    from discreet.privacy.ledger import Ledger
    from discreet.service.runtime import release_transaction
    from discreet.service.storage.postgres import Postgres

    def paid(_connection, settings, batch):
        """As if nothing had been charged before."""
        part = release_transaction.document_table.part(batch.epoch, batch.id)
        return Ledger(settings.plan.budget).charge(part, settings.plan.mechanism.event)

    Postgres.claim = Postgres.lock = ""
    release_transaction.paid, release_transaction.verify = paid, lambda *_: None

    class Blind:
        """A connection on which every batch can be released."""

        def __init__(self, connection):
            self._execute = connection.execute

        def execute(self, sql, parameters=()):
            return self._execute(sql.replace("state = 'sealed'", "1 = 1"), parameters)

    honest = release_transaction.Publisher._write
    release_transaction.Publisher._write = lambda self, connection, *rest: honest(
        self, Blind(connection), *rest
    )


def no_state_check_nor_anchor():
    """The same, and no intent orders the documents."""
    no_state_check()
    no_anchor()


def careless_leases():
    """Slots are read, and only later marked as taken."""
    from discreet.service.storage.batches import Slots

    honest, count = Slots.lease, itertools.count(1)

    def lease(self, connection, requested):
        leases = honest(self, connection, requested)
        if next(count) % 3 == 0 and leases[0]:
            connection.execute("UPDATE batches SET taken = taken - 1 WHERE state = 'open'")
        return leases

    Slots.lease = lease


def clock_counts_rows():
    """The clock counts rows that are written, and forgets slots that are leased."""
    from discreet.service.storage.batches import Slots

    honest = Slots._seal

    def seal(self, connection, batch):
        honest(self, connection, batch)
        place = (batch.epoch, batch.id)
        connection.execute(
            """UPDATE batches SET taken = (SELECT count(*) FROM answers WHERE epoch = ?
               AND batch = ?) WHERE epoch = ? AND id = ?""",
            place * 2,
        )

    Slots._seal = seal


def no_anchor():
    """Whatever the database holds is believed."""
    from discreet.service.runtime import lifecycle
    from discreet.service.storage.anchor import Anchor

    lifecycle.compare = lambda *_: None
    Anchor.intend = Anchor.confirm = lambda *_: None


def open_doors():
    """A key that is valid may do anything."""
    from discreet.service.storage import api_keys

    api_keys.permit = lambda *_: None


def lax_parsing():
    """A number may come as text, and what is too large is made smaller."""
    from discreet.features import number

    honest = number.Number.write

    def write(self, value, out, at):
        try:
            honest(self, value, out, at)
        except number.InvalidInput:
            out[at] = 0.0

    number.Number.write = write


def forget_people():
    """With every start everybody is new."""
    import os

    from discreet.service.secrets.vault import Vault

    Vault.people = os.urandom(32)


def one_action():
    """No fault: the policy plays action 0 alone, so that whoever plays another is known."""
    import numpy as np

    from discreet.policies import AdaptivePO
    from discreet.policies.one_row import by_arrays

    AdaptivePO.sample = lambda *given: np.zeros(len(given[2]), dtype=np.int64)
    AdaptivePO.for_one_row = by_arrays  # a single request too


def control_by_request():
    """A coin is thrown for each request, so the part of a slot depends on who asks for it."""
    import random

    from discreet.service.runtime.decisions import WorkerDecisions

    one_action()
    WorkerDecisions._in_control = lambda *_: random.random() < 0.25
