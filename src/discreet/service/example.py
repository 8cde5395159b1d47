"""The settings that ``serve --init`` and ``experiment new`` write: they run as they are."""

_START = "# Start it with   discreet serve --config experiment.toml\n"
_LISTEN = """\
host = "127.0.0.1"
port = 8000

"""

EXAMPLE = f"""\
# An experiment: which of three greetings suits whom. Everything in this file is public.
{_START}
experiment = "welcome"
database = "discreet.db"    # or postgresql://user@host/name, for several workers
vault = "vault"             # secrets: never in a backup together with the database
# anchor = "/mnt/other/welcome.jsonl"    # notices restored backups; --init says where it lies

window = 60                 # seconds that losses are awaited after a batch is full; or "6h", "7d"
settle = 1                  # seconds after that in which the fit is made
waiting = "pipeline"        # meanwhile the next batch opens; with "gap" nothing is stored
journal = "decide"          # write at decide; "observe" writes once, when the loss comes
unit = "decision"           # what is protected; or "user", all that one person contributes, with
# batches_per_user = 10     # so many batches in which a person's records count, and
# records_per_batch = 1     # so many records in each; beyond that people are served alike
mode = "online"             # at the start; or "shadow", "frozen"
default_action = 0          # number, or name, of the action of shadow mode
public_releases = false     # whether releases can be read without a key

{_LISTEN}[plan]
n_actions = 3               # or actions = ["plain", "friendly", "brief"]: then answers have names
# outcome = {{ kind = "Reward", low = 0, high = 50 }}    # people send rewards, not losses in [0, 1]
first_batch = 64            # slots of the first batch; each next one is half as long again
# missing_loss = 1.0        # stands in for a loss that never comes; left out, the slot is void
# control = {{ share = 0.1, action = 0 }}    # a tenth plays action 0, to compare: docs/lift.md
# policy and oracle are chosen from public numbers; [plan.policy] and [plan.oracle] choose others

[plan.budget]
epsilon = 1.0
delta = 1e-6

[plan.features]
kind = "Schema"

[[plan.features.fields]]
kind = "Number"
name = "hour"
low = 0
high = 24

[[plan.features.fields]]
kind = "Category"
name = "device"
values = ["phone", "tablet", "desk"]
other = true
"""

IN_A_FOLDER = EXAMPLE.replace(_START, "").replace(_LISTEN, "")
"""The same for one of a server's experiments: the server starts it, and listens for it."""
