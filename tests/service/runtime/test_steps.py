"""A process that is killed at a step goes on from there without losing or doubling anything."""

import json

import pytest

from waiting import until

RELEASE = (
    "release:claimed",
    "release:fitted",
    "release:after-insert",
    "release:after-charge",
    "release:intended",
    "release:committed",
    "release:anchored@2",
    "release:key-destroyed",
    "release:some-deleted",
)


def fill(running, key):
    ids = []
    for place in range(4):
        headers = {"Idempotency-Key": str(place)}
        body = {"context": [0.1, 0.2]}
        ids.append(running.call("POST", "/v1/decide", body, key, headers)[1]["decision"])
    for each in ids:
        body = {"decision": each, "loss": 0.5}
        assert running.call("POST", "/v1/observe", body, key)[0] == 200
    running.windows_end()


def first_release(running, key):
    def document():
        status, reported, _ = running.call("GET", "/v1/releases/1", key=key)
        return reported if status == 200 else None

    return until(document, "no release was made")


@pytest.mark.parametrize(
    "step",
    [
        "release:fitted",
        "release:committed",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in RELEASE
            if each not in ("release:fitted", "release:committed")
        ),
    ],
)
def test_a_release_that_is_cut_short_is_made_once(written, server, step):
    folder, key = written()
    cut = server(folder, environment={"DISCREET_STEP": step})
    fill(cut, key)
    assert cut.ended() == -9
    running = server(folder)
    made = first_release(running, key)
    running.stop()
    again = server(folder)
    assert first_release(again, key) == made
    repeated = {"Idempotency-Key": "0"}
    requested = again.call("POST", "/v1/decide", {"context": [0.1, 0.2]}, key, repeated)
    assert (requested[0], requested[1]["error"]["code"]) == (409, "idempotency_key_used")
    listed = again.call("GET", "/v1/releases", key=key)[1]["releases"]
    assert [each["number"] for each in listed] == [0, 1]
    assert list((folder / "vault").glob("batch-1-1.key")) == []


@pytest.mark.parametrize("step", ["write:before-commit@2", "decide:before-answer@1"])
def test_a_decision_that_was_not_answered_takes_no_second_slot(written, server, step):
    folder, key = written(window=60)
    cut = server(folder, environment={"DISCREET_STEP": step})
    headers, body = {"Idempotency-Key": "same"}, {"context": [0.1, 0.2]}
    with pytest.raises((OSError, json.JSONDecodeError)):
        cut.call("POST", "/v1/decide", body, key, headers)
    assert cut.ended() == -9
    running = server(folder)
    first = running.call("POST", "/v1/decide", body, key, headers)[1]
    assert running.call("POST", "/v1/decide", body, key, headers)[1] == first
    assert first["stored"]


def test_a_killed_fit_is_made_again(written, server):
    folder, key = written()
    running = server(folder, environment={"DISCREET_STEP": "fit:read"})
    fill(running, key)
    assert first_release(running, key)["number"] == 1
    _, _, reported = running.stop()
    assert "upkeep failed" in reported
