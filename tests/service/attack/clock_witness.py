"""Triggers note every change of a batch; what the clock did is judged by these notes alone."""

import json
import math

from discreet.service.secrets.sealing import DecisionIds
from service.attack import witness

COLUMNS = "epoch, id, taken, size, state, opened, sealed"


def install(place):
    """From now on each change of a batch is noted for good."""
    witness.install(place, {"batches": COLUMNS}, "UPDATE")


def gave_back(place):
    """Whether a batch was noted with fewer slots than before, while the service runs."""
    fewer = """SELECT 1 FROM noted_batches AS before JOIN noted_batches AS after
               ON before.epoch = after.epoch AND before.id = after.id
               AND before.rowid < after.rowid AND before.taken > after.taken"""
    with place.opened() as connection:
        return connection.execute(fewer).fetchone()


def check_batches(place, account):
    """No batch opens again, closes early or empty, or counts other slots than were taken.

    Returns how many the clock has ended, and how many their count.
    """
    every, last, ended = place.settings.plan.schedule.seconds, {}, {}
    with place.opened() as connection:
        order = "noted" if place.settings.postgres else "rowid"
        notes = connection.execute(
            f"SELECT {COLUMNS} FROM noted_batches ORDER BY {order}"
        ).fetchall()
        found = connection.execute(
            "SELECT epoch, batch, body FROM documents WHERE kind = 'release'"
        ).fetchall()
    for epoch, id, taken, size, state, opened, sealed in notes:
        batch = (epoch, id)
        assert taken >= last.get(batch, 0), "slots were given back"
        last[batch] = taken
        if state == "open":
            assert batch not in ended, "a batch opened again"
            continue
        assert ended.setdefault(batch, (taken, size))[0] == taken, "a slot after the end of a batch"
        assert taken > 0, "an empty batch was closed"
        assert taken == size or sealed - opened >= every, "the clock closed early"
    for epoch, batch, body in found:
        records = json.loads(bytes(body))["release"]["records"]
        assert records == ended[epoch, batch][0], "a release counts other slots than were taken"
    ids = DecisionIds(place.vault.mac)
    for each in account.sent:
        if each.answer is not None and each.answer["stored"]:
            id = ids.read(each.answer["decision"])
            most = ended.get((id.epoch, id.batch), (math.inf,))[0]
            assert id.slot < most, "a slot beyond the end of its batch"
    by_clock = sum(taken < size for taken, size in ended.values())
    return by_clock, len(ended) - by_clock
