"""Everything of a learner's memory that an error must leave alone."""

from discreet.batches.saved_state import private_rows, waiting_facts


def state_of(store):
    rows = {name: value.tobytes() for name, value in private_rows(store).items()}
    batches = [
        (each.number, each.start, each.size, each.taken, each.unobserved, each.sealed, each.closed)
        for each in store.batches
    ]
    digests = [item.digest for item in store.released.items]
    return rows, batches, waiting_facts(store), store.ledger.to_json(), digests
