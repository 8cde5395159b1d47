"""The experiment file is edited while the service runs: nothing it says counts before a restart."""

import json
import os
import signal
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from discreet.errors import StateClaimed
from discreet.service.http.server import preflight
from discreet.service.settings import Settings
from discreet.service.storage.locations import open_database
from service.attack.harness import context
from service.attack.processes import alive, family
from waiting import until

USERS = 'unit = "user"\nbatches_per_user = 2\nrecords_per_batch = 1'
EDITS = [
    ("epsilon = 1.0", "epsilon = 15.0", ["plan.budget.epsilon"]),
    ("n_actions = 3", "n_actions = 4", ["plan.n_actions"]),
    ("high = 1000000", "high = 500", ["plan.features.fields.0.high"]),
    ('["phone", "desk"]', '["phone", "tablet"]', ["plan.features.fields.1.values"]),
    ("first_batch = 4", "first_batch = 2", ["plan.first_batch"]),
    ("[plan]", f"{USERS}\n[plan]", ["batches_per_user", "records_per_batch", "unit"]),
]


@contextmanager
def edited(place, old, new):
    """The file says something else inside, and what it said before after that."""
    path = place.folder / "experiment.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    yield
    path.write_text(text)


def stored(place, number):
    """The id of a decision that took a slot; every request must be served."""
    person = {} if place.settings.unit == "decision" else {"user": f"user {number}"}
    status, decision = place.post("/v1/decide", {"context": context(number)} | person)
    assert status == 200, decision
    return decision["decision"] if decision["stored"] else None


def fill(place):
    """Decide and answer until the batch is full; then its window is over."""
    id, number = until(lambda: stored(place, 0), "no batch was opened"), 0
    while id:
        assert place.post("/v1/observe", {"decision": id, "loss": 0.5})[0] == 200
        number += 1
        id = stored(place, number)
    until(lambda: sealed(place), "the batch is not full")
    place.windows_end()


def sealed(place):
    """Whether the database has a full batch, whatever a worker knows."""
    with closing(open_database(place.settings).connect()) as connection:
        return connection.execute("SELECT 1 FROM batches WHERE state = 'sealed'").fetchone()


def releases(place):
    return place.get("/v1/status")[1]["releases"]


def reported(place, event):
    """The lines of the log with that event."""
    lines = [line for line in place.log.read_text().splitlines() if line.startswith("{")]
    return [each for each in map(json.loads, lines) if each["event"] == event]


def file_of(place):
    return place.get("/v1/status")[1]["file"]


def assert_sound(place, made):
    """So many releases of our own plan, paid for within the budget, and the service goes on."""

    def spent():
        return float(place.get("/v1/ledger")[1]["spent"]["epsilon"])

    for number in range(1, made + 1):  # another worker may see it half a second later
        until(lambda number=number: place.get(f"/v1/releases/{number}")[0] == 200)
        document = place.get(f"/v1/releases/{number}")[1]
        assert document["release"]["plan"] == place.settings.plan.digest
    until(lambda: spent() > 0.0, "nothing was charged")
    assert spent() <= 1.0
    assert place.get("/readyz", key=None)[0] == 200


def test_an_edit_counts_for_nothing_until_a_restart_which_refuses_it(places, database):
    place = places(database, longest=4)
    with place.served():
        for made, (old, new, keys) in enumerate(EDITS, start=1):
            with edited(place, old, new):
                until(lambda: file_of(place) == {"readable": True, "differs": keys})  # noqa: B023
                fill(place)
                until(lambda: releases(place) == made, "no release was made")  # noqa: B023
                assert_sound(place, made)
                assert all(key in place.get("/v1/status")[1]["text"] for key in keys)
            until(lambda: not file_of(place)["differs"])
    lines = reported(place, "experiment file differs")
    assert [line["keys"] for line in lines] == [keys for _, _, keys in EDITS]  # each told once
    for old, new, keys in EDITS:
        with edited(place, old, new), pytest.raises(StateClaimed) as refused:
            preflight(Settings.read(place.folder / "experiment.toml"))
        assert f"{', '.join(keys)} must stay as the experiment began" in str(refused.value)
    with place.served():
        assert_sound(place, len(EDITS))


def test_more_batches_for_one_user_count_for_nothing(places, database):
    place = places(database, unit="user", batches_per_user=2, records_per_batch=1)
    raised = ("batches_per_user = 2", "batches_per_user = 20")
    with place.served(), edited(place, *raised):
        until(lambda: file_of(place)["differs"] == ["batches_per_user"])
        fill(place)
        until(lambda: releases(place) == 1, "no release was made")
        assert_sound(place, 1)
        assert place.get("/v1/releases/0")[1]["plan"]["batches_per_user"] == 2
    with edited(place, *raised):
        assert place.run("serve") == 2
        assert "batches_per_user must stay as the experiment began" in place.log.read_text()


SPOILT = ("epsilon =", "epsilon = -1.0", "epsilon = 1.0\nmore = 3", None)


def test_a_file_that_is_spoilt_or_gone_stops_nothing(place_on_sqlite):
    place = place_on_sqlite(longest=4)
    path = place.folder / "experiment.toml"
    text = path.read_text()
    with place.served():
        for made, spoilt in enumerate(SPOILT, start=1):
            if spoilt is None:
                path.unlink()
            else:
                path.write_text(text.replace("epsilon = 1.0", spoilt))
            until(lambda: file_of(place) == {"readable": False, "differs": []})
            fill(place)
            until(lambda: releases(place) == made, "no release was made")  # noqa: B023
            assert_sound(place, made)
            assert len(reported(place, "experiment file unreadable")) == made
            path.write_text(text)
            until(lambda: file_of(place)["readable"])


def test_settings_that_may_change_take_effect_after_a_restart(place_on_sqlite):
    place = place_on_sqlite()
    with edited(place, "window = 3600.0", "window = 700.0"):
        with place.served():
            assert place.get("/v1/status")[1]["window"] == 700.0
            with edited(place, "window = 700.0", "window = 400.0"):
                until(lambda: file_of(place)["differs"] == ["window"])
                assert place.get("/v1/status")[1]["window"] == 700.0
        assert not reported(place, "release refused")


def test_no_value_of_the_file_is_shown_and_no_process_shows_a_password(places, new_schema):
    url = new_schema()
    joint = "&" if "?" in url else "?"
    place = places(f"{url}{joint}password=marker-first")  # a server of tests asks for none
    with place.served(), edited(place, "marker-first", "marker-second"):
        until(lambda: file_of(place)["differs"] == ["database"])
        fill(place)
        until(lambda: len(family(place.pid)) > 1, "no process was started to fit")
        for pid in family(place.pid):
            assert b"marker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        until(lambda: releases(place) == 1, "no release was made")
        shown = [place.get(path, raw=True)[1] for path in ("/v1/status", "/readyz", "/metrics")]
    assert not any(b"marker" in each for each in [*shown, place.log.read_bytes()])


def test_a_worker_that_is_started_later_serves_what_the_others_serve(places, new_schema):
    place = places(new_schema())
    place.start(workers=2)
    with edited(place, "epsilon = 1.0", "epsilon = 15.0"):
        until(lambda: file_of(place)["differs"])
        before = family(place.pid)
        for pid in before - {place.pid}:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(alive(pid) for pid in before - {place.pid}))
        until(lambda: len(family(place.pid)) > 2 and ready(place), "no worker was started again")
        fill(place)
        until(lambda: releases(place) == 1, "no release was made")
        assert_sound(place, 1)
    place.stop()


def ready(place):
    try:
        return place.get("/readyz", key=None)[0] == 200
    except OSError:
        return False


def test_a_worker_that_cannot_decide_is_not_ready(places, database):
    """A document in the database that does not verify, then a version that is not there."""
    place = places(database)

    def write(sql, *values):
        with closing(open_database(place.settings).connect()) as connection:
            connection.execute(sql, values)

    def decides():
        return place.post("/v1/decide", {"context": context(1)})[0]

    with place.served():
        write("INSERT INTO documents VALUES (1, 'release', 1, 9, 'none', ?)", b"{}")
        until(lambda: not ready(place), "it is ready with a chain that does not verify")
        assert decides() == 503
        status = place.get("/v1/status")[1]
        assert not status["ready"]
        assert "do not verify" in status["text"]
        write("DELETE FROM documents WHERE number = 1")
        place.looks_twice()
        assert (decides(), ready(place)) == (503, False)  # that document decides the open batch
        assert place.post("/v1/admin/burn", {"batch": 1})[0] == 200
        until(lambda: ready(place), "it is not ready again")
        assert decides() == 200
        write("UPDATE experiment SET serving = 7")
        until(lambda: not ready(place), "it is ready without the version that decides")
        assert decides() == 503
        write("UPDATE experiment SET serving = NULL")
        until(lambda: ready(place), "it is not ready again")
        assert decides() == 200
