"""Planted markers: what people sent is found nowhere, before the release and after it."""

import json
import struct
from contextlib import closing

import pytest

from service.attack.harness import call
from waiting import until

DEVICE, USER, NAME = "marker-device-7f3a", "marker-user-91c2", "marker-request-58d0"
NUMBER, TOO_LARGE = 271_828.182_845_9, 314_159_265.25
LOSS, OTHER = 0.577_215_664_901_532_9, 0.618_033_988_75
FORGED = "marker-decision-4b6e"
SLOTS = 4
PATHS = ("/v1/status", "/v1/ledger", "/v1/schema", "/v1/releases", "/v1/releases/current",
         "/v1/changes", "/metrics", "/internal/metrics", "/openapi.json", "/v1/admin/keys",
         "/readyz")  # fmt: skip


def markers(settings):
    """Everything private, in the ways in which it could be written."""
    sent = {"n": NUMBER, "device": DEVICE}
    mapped = float(settings.plan.features.map(sent)[0, 0])
    texts = [DEVICE, USER, NAME, FORGED, *map(repr, (NUMBER, TOO_LARGE, LOSS, OTHER, mapped))]
    packed = [struct.pack(order + "d", each) for each in (mapped, LOSS) for order in "<>"]
    return [text.encode() for text in texts] + packed


def plant(place):
    """Fill a batch with markers, and try every mistake with them; the bodies of all refusals."""
    refusals = []
    with closing(place.connection()) as connection:

        def post(path, body, **headers):
            text = body if isinstance(body, bytes) else json.dumps(body)
            return call(connection, "POST", path, text, headers, place.admin, raw=True)

        sent = {"context": {"n": NUMBER, "device": DEVICE}, "user": USER}
        for slot in range(SLOTS):
            status, answer = post("/v1/decide", sent, **{"Idempotency-Key": f"{NAME}-{slot}"})
            assert status == 200, answer
            id = json.loads(answer)["decision"]
            received = {"decision": id, "loss": LOSS}
            assert post("/v1/observe", received)[0] == 200
            wrong = [
                ("/v1/observe", received | {"loss": OTHER}, 409),
                ("/v1/observe", received | {"loss": TOO_LARGE}, 422),
                ("/v1/observe", received | {"loss": DEVICE}, 422),
                ("/v1/observe", received | {"decision": FORGED}, 404),
                ("/v1/observe", received | {"user": USER, "context": sent["context"]}, 422),
                ("/v1/activate", {"decision": FORGED}, 404),
                ("/v1/decide", sent | {"context": {"n": TOO_LARGE, "device": DEVICE}}, 422),
                ("/v1/decide", sent | {"context": {"n": DEVICE, "device": DEVICE}}, 422),
                ("/v1/decide", sent | {"context": {"n": NUMBER, "device": NUMBER}}, 422),
                ("/v1/decide", sent | {"context": [NUMBER, DEVICE]}, 422),
                ("/v1/decide", sent | {"user": USER * 100}, 422),
                ("/v1/decide", sent | {"deferred": DEVICE}, 422),
                ("/v1/decide", {"context": sent["context"]}, 422),
                ("/v1/decide", json.dumps(sent).encode()[:-1] + b"\xff", 422),
            ]
            for path, body, expected in wrong:
                status, answer = post(path, body)
                assert status == expected, (path, expected, answer)
                refusals.append(answer)
    return refusals


def shown(place):
    """The bodies of everything that can be read."""
    return [place.get(path, raw=True)[1] for path in PATHS]


def written(place):
    """The bytes of every file: settings, database, its log, the vault, what was printed."""
    files = [path for path in place.folder.rglob("*") if path.is_file()]
    return [path.read_bytes() for path in [*files, place.log]]


def times_found(contents, marks):
    return sum(content.count(mark) for mark in marks for content in contents)


def assert_clean(contents, marks, where):
    found = times_found(contents, marks)
    assert not found, f"a marker is in {where}, {found} times"


def sealed_rows(place):
    """What the database holds of people, as it is stored."""
    with place.opened() as connection:
        tables = [
            connection.execute(f"SELECT payload FROM {table}").fetchall()
            for table in ("records", "answers", "replies")
        ]
    return [bytes(row[0]) for table in tables for row in table]


def leak_free(place, **options):
    """Plant, look, release, look again."""
    marks = markers(place.settings)
    with place.served(**options):
        refusals = plant(place)
        assert_clean(refusals, marks, "a refusal")
        assert_clean(shown(place), marks, "an answer before the release")
        assert_clean(written(place), marks, "a file before the release")
        rows, keys = sealed_rows(place), key_files(place)
        # A row a slot where decide writes, an answer and a repeatable reply for each.
        assert len(rows) == SLOTS * (3 if place.settings.journal == "decide" else 2)
        assert len(keys) == 1
        place.windows_end()
        until(lambda: place.get("/v1/status")[1]["releases"] == 1, "no release was made")
        until(lambda: not place.get("/v1/status")[1]["batches"])
        if not options:
            until(lambda: not key_files(place), "the key of the batch was not destroyed")
        assert_clean(shown(place), marks, "an answer after the release")
        if not place.settings.postgres:  # of a server's own log only the destroyed key takes care
            # The log is emptied once; what is written to it afterwards is about no row.
            until(lambda: options or not times_found(written(place), rows), "rows were kept")
            assert_clean(written(place), rows, "a file after the release, sealed")
        assert_clean(written(place), [*marks, *keys], "a file after the release")
    assert_clean(written(place), [*marks, *keys], "a file after the end")


def key_files(place):
    return [path.read_bytes() for path in sorted((place.folder / "vault").glob("batch-*"))]


USERS = {"unit": "user", "batches_per_user": 2, "records_per_batch": 1}
WORDS = USERS | {"internal_metrics": True}


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_no_marker_is_left(places, database, journal):
    leak_free(places(database, journal=journal, **WORDS))


@pytest.mark.parametrize(
    ("harm", "where"),
    [
        ("no_erasure", "a file after the release, sealed"),
        ("keep_keys", "a file after the release"),
        ("no_sealing", "a file before the release"),
        ("chatty_log", "a file before the release"),
        ("chatty_errors", "a refusal"),
    ],
)
def test_the_search_finds_what_leaks(place_on_sqlite, harm, where):
    place = place_on_sqlite(**WORDS)
    with pytest.raises(AssertionError, match=f"marker is in {where}"):
        leak_free(place, sabotage=harm)
