"""Several processes on one PostgreSQL database."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from discreet.service.storage.locations import open_database
from waiting import until


def test_two_workers_share_one_experiment(written, server, fresh_schema):
    folder, key = written(database=fresh_schema)
    running = server(folder, "--workers", "2")

    def decide(_):
        return running.call("POST", "/v1/decide", {"context": [0.1, 0.2]}, key)[1]

    with ThreadPoolExecutor(8) as pool:
        decisions = list(pool.map(decide, range(40)))
    reported = running.call("GET", "/metrics", key=key)[1].decode()  # by one worker, of both
    counted = 'discreet_request_seconds_count{route="/v1/decide"} 40.0'
    assert (counted in reported, "internal" in reported) == (True, False)
    stored = [each["decision"] for each in decisions if each["stored"]]
    assert len(stored) == len(set(stored)) == 4  # the first batch has four slots
    for each in stored:
        body = {"decision": each, "loss": 0.5}
        assert running.call("POST", "/v1/observe", body, key)[0] == 200
    running.windows_end()

    def document():
        status, reported, _ = running.call("GET", "/v1/releases/1", key=key)
        return status == 200 and json.dumps(reported)  # a worker may hear of it later than another

    assert len({until(document) for _ in range(20)}) == 1
    assert running.stop()[0] == 0


def test_sqlite_has_one_worker(written, server):
    folder, _ = written()
    with pytest.raises(AssertionError, match="workers must be 1 with SQLite"):
        server(folder, "--workers", "2")


def test_a_worker_that_has_not_read_a_release_serves_the_right_policy(settings, play, released):
    """The lease carries the policy: a stale view is brought up to date before a slot is used."""
    chosen = settings()
    if not chosen.postgres:
        return

    async def scenario(stale):
        async def other(service):
            for _ in range(4):
                await service.decisions.decide("caller", [0.1, 0.2])
            await released(service)

        await asyncio.to_thread(play, chosen, other)
        assert stale.state.serving.newest == 0
        decision = await stale.decisions.decide("caller", [0.1, 0.2])
        assert (decision.stored, decision.release) == (True, 1)

    play(chosen, scenario)


END_ALL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
             AND application_name = current_setting('application_name')"""


def test_a_connection_that_breaks_is_replaced_unnoticed(settings, play):
    chosen = settings(window=60)
    if not chosen.postgres:
        return

    async def scenario(service):
        first = await service.decisions.decide("caller", [0.1, 0.2])
        for requested in (1, 2):
            with closing(open_database(chosen).connect()) as other:
                other.execute(END_ALL).fetchall()
            together = [service.decisions.observe(first.decision, 0.5) for _ in range(requested)]
            assert all(await asyncio.gather(*together))
            assert (await service.status())["mode"] == "online"
        assert (await service.decisions.decide("caller", [0.1, 0.2])).stored

    play(chosen, scenario)
