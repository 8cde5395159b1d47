"""Policy and control, checked without the code that tells them apart.

Experiments in one process are served with a policy that plays action 0 alone, so whoever plays
``ALONE`` is in the control.
"""

import hashlib
import json
import math
from collections import Counter, defaultdict

from discreet.service.secrets.sealing import DecisionIds, Sealer
from discreet.service.storage.sealed_batch import read_batch

SHARE, ALONE = 0.25, 2
CONTROL = {"share": SHARE, "action": ALONE}
SERVED = {"sabotage": "one_action"}
"""How such an experiment is started."""


def in_control(epoch, batch, slot):
    """One slot of each stretch of 1/share, by a hash of batch and stretch. [docs/lift.md]"""
    number, stretch = (epoch - 1) * 2**32 + batch, slot * SHARE // 1
    first, after = math.ceil(stretch / SHARE), math.ceil((stretch + 1) / SHARE)
    digest = hashlib.sha256(f"discreet control {number} {int(stretch // 4)}".encode()).digest()
    word = int.from_bytes(digest[8 * int(stretch % 4) :][:8], "big")
    return slot == first + word % (after - first)


def check_parts(place, account):
    """No slot and nobody changed its part, fits read the same parts, and each part paid once.

    Returns how many acknowledged slots played the action of the control, and how many there were.
    """
    ids, slots, actions = DecisionIds(place.vault.mac), {}, defaultdict(set)
    for each in account.sent:
        if each.answer is None or "decision" not in each.answer:
            continue
        actions[each.user].add(each.answer["action"])
        if each.answer["stored"]:
            id = ids.read(each.answer["decision"])
            slots[id.epoch, id.batch, id.slot] = each
    with place.opened() as connection:
        _paid(connection)
        control = _read(place, connection)
    if not account.people:
        for slot, read in control.items():
            assert read == in_control(*slot), "a fit reads a slot in the other part"
        control = {slot: in_control(*slot) for slot in slots}
    # Several workers are processes of their own with the policy of the plan, which may play the
    # action of the control too.
    plain = not place.settings.postgres
    parts = defaultdict(set)
    for slot in slots.keys() & control.keys():
        alone = slots[slot].answer["action"] == ALONE
        parts[slots[slot].user].add(control[slot])
        moved = control[slot] != alone if plain else control[slot] and not alone
        assert not moved, "a position of the control moved"
    if account.people:
        for user, played in actions.items():
            both = len(parts[user]) > 1 or (plain and len(played) > 1)
            assert not both, "a person is in both parts"
            assert True not in parts[user] or played == {ALONE}, "a person is in both parts"
    played = [each.answer["action"] for each in slots.values()]
    assert not plain or set(played) <= {0, ALONE}, "somebody else decided"
    return played.count(ALONE), len(played)


def _read(place, connection):
    """The part of every slot of a batch under way, as a fit would read it."""
    found = {}
    rows = connection.execute(
        "SELECT epoch, id, size FROM batches WHERE state IN ('open', 'sealed')"
    ).fetchall()
    for epoch, batch, size in rows:
        sealer = Sealer(place.vault.batch(epoch, batch), epoch, batch)
        control = read_batch(connection, place.settings.plan, sealer, epoch, batch, size).control
        found |= {(epoch, batch, slot): bool(each) for slot, each in enumerate(control)}
    return found


def _paid(connection):
    """Each released batch is charged to its two parts, once; nothing else is."""
    released = connection.execute("SELECT epoch, id FROM batches WHERE state = 'released'")
    due = {
        f"batch {batch} of epoch {epoch}, {part}"
        for epoch, batch in released.fetchall()
        for part in ("policy", "control")
    }
    entries = [
        json.loads(row[0]) for row in connection.execute("SELECT entry FROM charges").fetchall()
    ]
    charged = Counter(each["partition"] for entry in entries for each in entry["charges"])
    assert set(charged) == due, "a part of a batch did not pay, or paid for nothing"
    assert set(charged.values()) <= {1}, "a part of a batch paid twice"
