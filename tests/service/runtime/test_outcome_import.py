"""Late outcomes from tables, by the rules of observe; decisions as a private file."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import duckdb
import numpy as np
import pytest

from discreet.cli.main import main
from discreet.client.reported_outcomes import (
    AGAIN,
    CONFLICT,
    EMPTY,
    LATE,
    STORED,
    UNKNOWN,
    UNSTORED,
)
from discreet.data import warehouse
from discreet.errors import InvalidInput, StateClaimed
from discreet.service.runtime.bulk import (
    WITHOUT_CONTEXT,
    OutcomeSealer,
    import_outcomes,
)
from discreet.service.secrets.sealing import DecisionIds
from discreet.service.secrets.vault import Vault
from service.conftest import running, time_passes

REWARD = {"outcome": {"kind": "Reward", "low": 0, "high": 10}, "first_batch": 8}


@pytest.fixture
def decided(settings):
    """``decided(…)``: settings, and ids of decisions that a service made before it stopped."""

    def made(count=8, **changes):
        given = settings(**({"plan": REWARD} | changes))

        async def scenario():
            async with running(given) as service:
                replies = [await service.decisions.decide("k", [0.1, 0.2]) for _ in range(count)]
                return [reply.decision for reply in replies]

        return given, asyncio.run(scenario())

    return made


def stored(settings, rows, **options):
    """Results of rows by number, in chunks of three."""
    chunks = [rows[start : start + 3] for start in range(0, len(rows), 3)]
    results = [*import_outcomes(settings, chunks, **options)]
    counts = sum((each.counts for each in results), start=results[0].counts.__class__())
    return counts, dict(row for each in results for row in each.refused)


def rewards(settings):
    """What the batch of the decisions would be fitted to: rewards by slot."""
    from discreet.service.runtime.bulk import decision_columns

    columns = decision_columns(settings)
    return dict(zip(columns["slot"].tolist(), columns["reward"].tolist(), strict=True))


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_each_row_has_its_result(decided, journal):
    given, ids = decided(journal=journal)
    first = [(1, ids[0], 3.0), (2, ids[1], None), (3, "AQAB", 1.0), (4, ids[2], 10.5), (5, 7, 1.0)]
    counts, refused = stored(given, first)
    assert counts == {STORED: 1, EMPTY: 1, UNKNOWN: 2, refused[4]: 1}
    assert {*refused} == {3, 4, 5}
    assert "10.5" not in refused[4]
    again = [(1, ids[0], 3.0), (2, ids[0], 4.0), (3, ids[1], 0.0), (4, ids[1], 0.0)]
    counts, refused = stored(given, again)
    assert counts == {STORED: 1, AGAIN: 2, CONFLICT: 1}
    assert refused == {2: CONFLICT}
    found = {slot: reward for slot, reward in rewards(given).items() if reward == reward}
    assert sorted(found.values()) == [0.0, 3.0]


def test_rows_together_have_the_results_of_rows_alone(decided):
    """Chunks in which all rows are usual, some are, and a value is wrong: the same by each way."""
    given, ids = decided(count=9)
    forged = DecisionIds(b"x" * 32).write(
        DecisionIds(Vault(given.place(given.vault)).mac).read(ids[0])
    )
    rows = [(1, ids[0], 0.1), (2, ids[1], 10.0), (3, ids[2], 3.3), (4, forged, 1.0),
            (5, ids[8], 1.0), (6, ids[3], 0.7), (7, ids[4], 2.0), (8, ids[0][:-1] + "!", 1.0),
            (9, ids[5], 2.0),
            (10, ids[6], float("nan")), (11, ids[7], 1), (12, ids[7], None)]  # fmt: skip
    sealer = OutcomeSealer(given)
    for chunk in (rows[:3], rows[3:6], rows[6:9], rows[9:], rows, []):
        items, results = sealer.seal(chunk)
        alone = [sealer.seal([row]) for row in chunk]
        assert sorted(results) == sorted(each for one in alone for each in one[1])
        kept = {row: item for one in alone for row, item in one[0]}
        assert {row for row, _ in items} == {*kept}
        for row, item in items:
            assert item._replace(payload=b"") == kept[row]._replace(payload=b"")
            cipher = sealer.cipher(item.epoch, item.batch)
            opened = [cipher.open(item.kind, item.slot, x.payload) for x in (item, kept[row])]
            assert opened[0] == opened[1] is not None
    counts, refused = stored(given, rows)
    assert (counts[STORED], counts[UNKNOWN], counts[UNSTORED], counts[EMPTY]) == (7, 2, 1, 1)
    assert {*refused} == {4, 8, 10}


def test_late_rows_and_decisions_without_a_slot(decided):
    given, ids = decided(count=9)  # eight slots, and the ninth waits in the gap
    assert stored(given, [(1, ids[8], 1.0)])[0] == {UNSTORED: 1}
    time_passes(given, given.window)
    assert stored(given, [(1, ids[0], 1.0)])[1] == {1: LATE}
    Vault(given.place(given.vault)).destroy(1, 1)
    assert stored(given, [(1, ids[0], 1.0)])[1] == {1: LATE}


def test_tickets_and_forged_ids(settings):
    given = settings(plan=REWARD)

    async def scenario():
        async with running(given) as service:
            return (await service.decisions.ticket()).ticket

    rows = [(1, asyncio.run(scenario()), 1.0), (2, DecisionIds(b"x" * 32).unstored(1), 1.0)]
    assert stored(given, rows)[1] == {1: WITHOUT_CONTEXT, 2: UNKNOWN}


def test_a_served_sqlite_file_is_refused(decided):
    given, ids = decided()

    async def scenario():
        async with running(given):
            return stored(given, [(1, ids[0], 1.0)])

    if given.postgres:
        assert asyncio.run(scenario())[0] == {STORED: 1}
    else:
        with pytest.raises(StateClaimed, match="one process"):
            asyncio.run(scenario())


def written(tmp_path, ids, values, name="outcomes.parquet"):
    """A table of outcomes, as DuckDB writes it."""
    table = {"id": np.asarray(ids, dtype=object), "reward": np.asarray(values)}
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(f"COPY (SELECT * FROM rows) TO '{tmp_path / name}'")
    return str(tmp_path / name)


@pytest.fixture
def experiment(tmp_path):
    """A folder with an experiment file, and ids of its decisions; on SQLite."""
    from discreet.service.runtime import lifecycle
    from discreet.service.settings import Settings
    from service.conftest import toml

    text = toml(anchor="anchor.jsonl").replace("first_batch = 4", "first_batch = 40")
    reward = '[plan]\noutcome = { kind = "Reward", low = 0, high = 10 }'
    (tmp_path / "experiment.toml").write_text(text.replace("[plan]", reward, 1))
    given = Settings.read(tmp_path / "experiment.toml")
    key = lifecycle.begin(given)

    async def scenario():
        async with running(given) as service:
            return [(await service.decisions.decide("k", [0.1, 0.2])).decision for _ in range(40)]

    return given, asyncio.run(scenario()), key


def observe(capsys, *words):
    code = main(["observe", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["outcomes.parquet", "outcomes.csv"])
def test_a_file_is_stored_once(tmp_path, experiment, capsys, name):
    given, ids, _ = experiment
    file = written(tmp_path, [*ids, "nothing"], [*range(10)] * 4 + [1], name)
    config = ("--config", str(tmp_path / "experiment.toml"), "--from", file)
    code, answer = observe(capsys, *config)
    assert (code, answer["results"]) == (1, {STORED: 40, UNKNOWN: 1})
    assert answer["refused"] == [[41, UNKNOWN]]  # the row of the file, from 1
    assert observe(capsys, *config)[1]["results"] == {AGAIN: 40, UNKNOWN: 1}
    assert [*rewards(given).values()] == pytest.approx([*range(10)] * 4)


def test_a_killed_run_is_continued(tmp_path, experiment, monkeypatch, capsys):
    given, ids, _ = experiment
    file = written(tmp_path, ids, [*range(10)] * 4)
    progress = tmp_path / "rows.progress"
    words = ["observe", "--config", str(tmp_path / "experiment.toml"), "--from", file,
             "--progress", str(progress), "--json"]  # fmt: skip
    code = "import sys; from discreet.data import warehouse; warehouse.CHUNK = 7; "
    code += f"from discreet.cli.main import main; main({words!r})"
    steps = {"outcomes:before-commit@4": 21, "outcomes:committed@2": 28}
    for number, (step, done) in enumerate(steps.items()):
        killed = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"DISCREET_STEP": step}
        )
        assert killed.returncode == -signal.SIGKILL
        assert json.loads(progress.read_text())["done"] == done
        received = sum(value == value for value in rewards(given).values())
        assert (
            received == done + 7 * number
        )  # after the commit a chunk is stored and not counted yet
    monkeypatch.setattr(warehouse, "CHUNK", 7)
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["rows"], answer["read"]) == (40, 12)
    assert answer["results"] == {AGAIN: 7, STORED: 5}
    assert [*rewards(given).values()] == pytest.approx([*range(10)] * 4)
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["read"] == 0
    written(tmp_path, ids[::-1], [*range(10)] * 4)  # another table of the same name and length
    assert main(words) == 2
    assert "same table" in capsys.readouterr().out


def test_a_helper_process_seals(experiment):
    given, ids, _ = experiment
    rows = [(row, id, 1.0) for row, id in enumerate([*ids, "nothing"])]
    counts, refused = stored(given, rows, helpers=1)
    assert (counts, refused) == ({STORED: 40, UNKNOWN: 1}, {40: UNKNOWN})


def test_a_helper_ends_with_the_process_that_was_killed(tmp_path, experiment):
    _, ids, _ = experiment
    file = written(tmp_path, ids, [*range(10)] * 4)
    words = ["observe", "--config", str(tmp_path / "experiment.toml"), "--from", file]
    code = "from discreet.cli import observe_command; observe_command.LARGE = 0; "
    code += f"from discreet.cli.main import main; main({words!r})"
    reading, writing = os.pipe()  # whoever lives holds the other end
    killed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"DISCREET_STEP": "outcomes:before-commit"},
        pass_fds=[writing],
        stdout=writing,
    )
    os.close(writing)
    assert killed.returncode == -signal.SIGKILL
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b""  # returns when no process holds it


def test_a_running_service_takes_rows(tmp_path, experiment, server, capsys):
    _, ids, key = experiment
    running = server(tmp_path)
    file = written(tmp_path, [*ids, "nothing", ids[0], ids[1]], [*range(10)] * 4 + [1, 9, 11])
    words = ("--from", file, "--url", f"http://127.0.0.1:{running.port}", "--key", key)
    code, answer = observe(capsys, *words)
    reasons = dict(answer["refused"])
    assert (code, {*reasons}) == (1, {41, 42, 43})
    assert (reasons[41], reasons[42]) == (UNKNOWN, CONFLICT)
    assert "reward must be" in reasons[43]
    assert answer["results"][STORED] == 40


def test_queries_of_duckdb(tmp_path, experiment, capsys):
    _, ids, _ = experiment
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.register("rows", {"id": np.asarray(ids[:4], dtype=object)})
        connection.execute("CREATE TABLE orders AS SELECT id AS decision, 2.5 AS spent FROM rows")
        connection.execute(
            "UPDATE orders SET spent = NULL WHERE decision = (SELECT min(decision) FROM orders)"
        )
    words = ["--config", str(tmp_path / "experiment.toml"), "--from", str(tmp_path / "shop.duckdb")]
    query = [*words, "--query", "SELECT * FROM orders", "--id", "decision", "--value", "spent"]
    assert observe(capsys, *query)[1]["results"] == {STORED: 3, EMPTY: 1}
    for wrong in (words, [*words, "--query", "SELECT 1"], [*words[:3], "x.txt"],
                  [*words[:3], str(tmp_path / "no.parquet")]):  # fmt: skip
        code, answer = observe(capsys, *wrong)
        assert (code, [*answer]) == (2, ["error"])


def test_a_query_of_postgresql(postgres, tmp_path, experiment, capsys):
    _, ids, _ = experiment
    values = ", ".join(f"('{id}', {place % 10})" for place, id in enumerate(ids))
    query = f"SELECT * FROM (VALUES {values}) AS outcomes (id, reward)"
    words = ("--config", str(tmp_path / "experiment.toml"), "--from", postgres, "--query", query)
    assert observe(capsys, *words)[1]["results"] == {STORED: 40}
    code, answer = observe(capsys, *words[:-1], "SELECT 1 AS id")
    assert (code, "reward" in answer["error"]) == (2, True)
    code, answer = observe(capsys, *words[:-1], "SELECT 'x' AS id, 'marker' AS reward")
    assert (code, "marker" in answer["error"]) == (2, False)  # rows are private


def test_values_that_are_no_numbers_are_refused_with_their_rows(tmp_path, experiment, capsys):
    _, ids, _ = experiment
    file = tmp_path / "outcomes.csv"
    lines = [f"{id},{value}" for id, value in zip(ids[:3], ("1", "x", ""), strict=True)]
    file.write_text("\n".join(["id,reward", *lines]))
    words = ("--config", str(tmp_path / "experiment.toml"), "--from", str(file))
    code, answer = observe(capsys, *words)
    assert code == 1
    assert [row for row, _ in answer["refused"]] == [2]
    assert (answer["results"][STORED], answer["results"][EMPTY]) == (1, 1)


def test_decisions_are_exported_as_private(tmp_path, experiment, capsys):
    given, ids, _ = experiment
    file = written(tmp_path, ids[:10], range(10))
    config = ("--config", str(tmp_path / "experiment.toml"))
    observe(capsys, *config, "--from", file)
    target = tmp_path / "decisions.parquet"
    assert main(["export", "decisions", *config, "--to", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 40
    assert os.stat(target).st_mode & 0o777 == 0o600
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT reward FROM '{target}' ORDER BY slot").fetchall()
        marks = dict(connection.execute(
            f"SELECT key::varchar, value::varchar FROM parquet_kv_metadata('{target}')"
        ).fetchall())  # fmt: skip
        names = [row[0] for row in connection.execute(f"DESCRIBE FROM '{target}'").fetchall()]
    assert [row[0] for row in rows[:11]] == pytest.approx([*range(10), None])
    assert marks["private"].startswith("PRIVATE")
    assert names[:7] == ["epoch", "batch", "slot", "release", "action", "deferred", "reward"]
    assert len(names) == 7 + 3

    async def scenario():
        async with running(given) as service:
            return [change.what for change in await service.changes()]

    assert asyncio.run(scenario())[0] == "decisions exported"
    assert main(["export", "decisions", *config, "--to", str(target)]) == 2
    with pytest.raises(InvalidInput, match="new"):
        warehouse.write_private_table(target, {}, "note")


def test_items_of_a_catalogue_have_features_and_no_names(settings):
    from discreet.service.runtime.bulk import decision_columns

    schema = {"kind": "Schema", "fields": [{"kind": "Number", "name": "year", "low": 0, "high": 9}]}
    items = [{"id": "marker", "year": 3}, {"id": "b", "year": 4}]
    given = settings(plan={"n_actions": None, "actions": {"items": items, "schema": schema}})

    async def scenario():
        async with running(given) as service:
            await service.decisions.decide("k", [0.1, 0.2])

    asyncio.run(scenario())
    columns = decision_columns(given)
    assert len(columns["slot"]) == 1
    assert "action" not in columns
