"""Triggers in the database note whose every slot was; nothing of the registry is believed."""

import hmac
from collections import Counter, defaultdict
from contextlib import closing

from discreet.service.storage.locations import open_database

NOTED = {"handed": "epoch, batch, slot, counts", "replies": "name, epoch, batch, slot"}
"""Whether a slot counts, and the request that it was given to."""
OFTEN = {"batches_per_user": 2, "records_per_batch": 2}


def install(place, noted=NOTED, event="INSERT"):
    """From now on each row that is committed to these tables is noted for good."""
    with closing(open_database(place.settings).connect()) as connection:
        for table, columns in noted.items():
            values = ", ".join(f"NEW.{name}" for name in columns.split(", "))
            note = f"INSERT INTO noted_{table} VALUES ({values});"
            connection.execute(
                f"CREATE TABLE noted_{table} AS SELECT {columns} FROM {table} WHERE 1 = 0"
            )
            after = f"CREATE TRIGGER note_{table} AFTER {event} ON {table}"
            if not place.settings.postgres:
                connection.execute(f"{after} BEGIN {note} END")
                continue
            # Several processes fill several pages: only a sequence tells what came first.
            connection.execute(f"ALTER TABLE noted_{table} ADD COLUMN noted BIGSERIAL")
            body = f"BEGIN {note} RETURN NULL; END"
            connection.execute(
                f"CREATE FUNCTION note_{table}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"
            )
            connection.execute(f"{after} FOR EACH ROW EXECUTE FUNCTION note_{table}()")


def check_people(place, account):
    """No person is in more batches, or with more records of one, than the plan says.

    Returns how many slots were handed out, and how many of them count.
    """
    often = place.settings.plan.participation
    with place.opened() as connection:
        rows = {
            table: connection.execute(f"SELECT {columns} FROM noted_{table}").fetchall()
            for table, columns in NOTED.items()
        }
    caller = place.admin.split("_")[1]
    owners = {_name(place, caller, each): each.user for each in account.sent}
    requested = {tuple(row[1:]): owners[bytes(row[0])] for row in rows["replies"]}
    records, slots = defaultdict(Counter), set()
    for *slot, counts in map(tuple, rows["handed"]):
        assert tuple(slot) not in slots, "a slot was handed out twice"
        slots.add(tuple(slot))
        if counts:
            records[requested[tuple(slot)]][tuple(slot[:2])] += 1
    for batches in records.values():
        assert len(batches) <= often.batches, "a person is in too many batches"
        assert max(batches.values()) <= often.records, "a person has too many records in a batch"
    return len(slots), sum(sum(each.values()) for each in records.values())


def _name(place, caller, each):
    request = f"{caller}\0request {each.number}".encode()
    return hmac.digest(place.vault.mac, request, "sha256")
