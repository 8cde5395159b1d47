"""Guardrails of a service: sealed with the loss, released per part, verified, shown and deleted."""

import asyncio
import json
import math
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from discreet.cli.main import main
from discreet.client import Billboard
from discreet.client.recomputation import recompute
from discreet.client.reported_outcomes import AGAIN, CONFLICT, EMPTY, STORED, send_outcomes
from discreet.design.outcome import UNIT_LOSS, Guardrail
from discreet.errors import InvalidInput, LossConflict
from discreet.releases.guardrails import guardrails
from discreet.service.runtime import fit_process, lifecycle
from discreet.service.runtime.bulk import decision_columns, import_outcomes
from discreet.service.settings import Settings
from discreet.service.storage import document_table
from service.conftest import dump, rows_of, running, toml, windows_end
from service.dashboard.visitor import Visitor

HERE, NAN = [0.3, -0.2], math.nan
RAILS = {
    "control": {"share": 0.3, "action": 2},
    "first_batch": 10,
    "guardrails": [{"name": "complaints"}, {"name": "latency", "high": 10, "worse": "lower"}],
}
CLEAR = RAILS | {"first_batch": 200, "budget": {"epsilon": 20.0, "delta": 1e-6}}
"""Counts of 140 and 60 with a noise of about 2: guardrails are told in all but one of 10⁹⁹ runs."""


@pytest.fixture
def database(request):
    """A file, where a test does not ask for both kinds."""
    on_server = getattr(request, "param", "sqlite") == "postgresql"
    return request.getfixturevalue("fresh_schema") if on_server else "discreet.db"


BOTH = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


async def decide(service, count, **words):
    return [await service.decisions.decide("caller", HERE, **words) for _ in range(count)]


@BOTH
@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_guardrails_are_sealed_with_the_loss_and_leave_with_the_release(
    settings, play, released, journal
):
    chosen = settings(plan=RAILS, journal=journal)

    async def scenario(service):
        observe = service.decisions.observe
        made = [each.decision for each in await decide(service, 8)]
        ticket = (await service.decisions.ticket()).ticket
        silent = (await decide(service, 1))[0].decision
        assert await observe(made[0], 0.5, guardrails={"complaints": 1, "latency": 2.5})
        assert await observe(made[1], 0.25, guardrails={"latency": None})
        assert await observe(made[2], 0.75)
        assert await observe(ticket, 0.1, context=HERE, action=2, guardrails={"complaints": 0.5})
        assert silent
        rows = await rows_of(service)
        expected = np.full((10, 2), NAN)
        expected[0], expected[8, 0] = [1.0, 0.75], 0.5
        assert np.array_equal(rows.guardrails, expected, equal_nan=True)
        assert rows.losses[rows.observed].tolist() == [0.5, 0.25, 0.75, 0.1]

        before = await asyncio.to_thread(dump, chosen)
        sizes = {len(bytes(row[-1])) for row in before["answers"] if row[2] in (0, 1, 2)}
        assert len(sizes) == 1  # how many guardrails came does not show
        made_release = (await released(service)).latest
        assert made_release.guardrails.sums.shape == (2, 2, 2)
        ledger = await service.state.ledger()
        assert ledger.entries[0].event == chosen.plan.event
        assert ledger.spent().epsilon == pytest.approx(1.0, abs=1e-5)
        chain = await service.state.read(lambda c: document_table.after(c, -1))
        board = Billboard(chain, service.state.serving.chain.key)
        assert recompute(board.released)
        assert [each.text for each in guardrails(board.released)] == [
            each.text for each in service.guardrails()
        ]

    play(chosen, scenario)
    left = dump(chosen)
    assert not left["answers"]
    assert not left["records"]


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_the_first_report_stays_as_a_whole(settings, play, journal):
    async def scenario(service):
        (made,) = await decide(service, 1)
        observe = service.decisions.observe
        first = {"complaints": 1.0}
        assert await observe(made.decision, 0.5, guardrails=first)
        assert await observe(made.decision, 0.5, guardrails={"latency": None, **first})
        for value, other in ((0.5, None), (0.5, {"complaints": 0}), (0.25, first)):
            with pytest.raises(LossConflict):
                await observe(made.decision, value, guardrails=other)
        for wrong in ({"complaint": 1}, {"complaints": 2}, {"latency": "slow"}):
            with pytest.raises(InvalidInput, match="must be"):
                await observe(made.decision, 0.5, guardrails=wrong)
        assert (await rows_of(service)).guardrails[0].tolist()[0] == 1.0

    play(settings(plan=RAILS, journal=journal), scenario)


@BOTH
def test_slots_that_are_void_count_in_no_guardrail(settings, play, released):
    """Those of a person beyond their bound."""
    users = {"unit": "user", "batches_per_user": 1, "records_per_batch": 1}
    budget = {"epsilon": 20.0, "delta": 1e-6}
    plan = RAILS | {"first_batch": 100, "missing_loss": 0.5, "budget": budget}

    async def scenario(service):
        for number in range(100):
            (made,) = await decide(service, 1, user="one" if number < 95 else f"other {number}")
            await service.decisions.observe(made.decision, 1.0, guardrails={"complaints": 1})
        found = (await released(service)).latest.guardrails
        counts = found.sums[0, :, 1].sum()
        # Six people count; a noise of about 3 reaches 60 in none of 10⁹⁹ runs.
        assert abs(counts - 6.0) < 10.0 * math.sqrt(found.variance)
        assert 10.0 * math.sqrt(found.variance) < 60.0

    play(settings(plan=plan, **users), scenario)


@pytest.mark.parametrize("wrong", ["none", "less noise", "one of two", "not a number"])
def test_wrong_sums_of_guardrails_are_refused(settings, play, released, monkeypatch, wrong):
    honest = fit_process.release_batch

    def forged(*given):
        release, ledger = honest(*given)
        rails = release.guardrails
        changed = {
            "none": None,
            "less noise": replace(rails, variance=rails.variance / 4),
            "one of two": replace(rails, sums=rails.sums[:1]),
            "not a number": replace(rails, sums=rails.sums * NAN),
        }
        return replace(release, guardrails=changed[wrong]), ledger

    async def scenario(service):
        await decide(service, 10)
        await windows_end(service)
        with monkeypatch.context() as patch:
            patch.setattr(fit_process, "release_batch", forged)
            assert not await service.upkeep.once()
        assert (await service.status())["refused"] == "guardrails"
        assert not (await service.state.ledger()).entries
        assert (await released(service)).latest.guardrails is not None

    play(settings(plan=RAILS), scenario)


def test_guardrails_over_http_and_on_the_overview(settings, play, released):
    async def scenario(service):
        visitor, key = Visitor(service), settings.key()
        bearer = {"authorization": f"Bearer {key}", "content_type": "application/json"}

        async def ask(method, path, body=None):
            reply = await visitor.ask(method, path, raw=body, **bearer)
            return reply.status, json.loads(reply.text)

        schema = (await ask("GET", "/v1/schema"))[1]
        assert [each["name"] for each in schema["guardrails"]] == ["complaints", "latency"]
        document = (await ask("GET", "/openapi.json"))[1]["components"]["schemas"]
        assert document["Guardrails"]["properties"].keys() == {"complaints", "latency"}
        assert (await service.status())["alerts"] == []
        (first,) = await decide(service, 1)
        for wrong, words in (
            ({"complaint": 1}, "unknown field `complaint`"),
            ({"complaints": 1.5}, "<= 1"),
            ({"latency": "2"}, "Expected `float"),
            ([1], "Expected `object"),
        ):
            body = {"decision": first.decision, "loss": 0.5, "guardrails": wrong}
            status, answer = await ask("POST", "/v1/observe", body)
            assert status == 422
            assert words in answer["error"]["message"]
            assert "1.5" not in answer["error"]["message"]
        made = [first, *await decide(service, 199)]
        reports = [
            {
                "decision": each.decision,
                "loss": 0.5,
                "guardrails": {"complaints": float(each.action != 2), "latency": None},
            }
            for each in made
        ]
        assert await ask("POST", "/v1/observe", reports[0]) == (200, {"stored": True})
        assert (await ask("POST", "/v1/observe", reports[0]))[0] == 200
        other = reports[0] | {"guardrails": {}}
        assert (await ask("POST", "/v1/observe", other))[0] == 409
        status, answer = await ask("POST", "/v1/observe:batch", {"observations": reports[1:]})
        assert {each["status"] for each in answer["results"]} == {200}
        await visitor.log_in(key)
        assert "Guardrails" not in (await visitor.get("/ui")).text
        await released(service)

        lift = (await ask("GET", "/v1/lift"))[1]
        complaints, latency = lift["guardrails"]
        assert (complaints["alert"], latency["alert"]) == (True, False)
        assert "not known yet" in latency["text"]
        assert (await service.status())["alerts"] == ["complaints"]
        metrics = (await visitor.ask("GET", "/metrics", **bearer)).text
        assert "\ndiscreet_guardrail_alerts 1.0\n" in metrics
        page = (await visitor.get("/ui")).text
        assert "Guardrail complaints: the policy is worse than the control." in page
        rail, _ = service.guardrails()
        for shown in (*rail.means, rail.difference, "not known yet", "lower is worse"):
            assert shown in page

    play(settings(plan=CLEAR), scenario)


def test_a_service_without_guardrails_names_none(settings, play, released):
    plain = {name: value for name, value in RAILS.items() if name != "guardrails"}

    async def scenario(service):
        (made,) = await decide(service, 1)
        visitor = Visitor(service)
        bearer = {"authorization": f"Bearer {settings.key()}", "content_type": "application/json"}
        body = {"decision": made.decision, "loss": 0.5, "guardrails": {"complaints": 1}}
        reply = await visitor.ask("POST", "/v1/observe", raw=body, **bearer)
        assert (reply.status, "unknown field" in reply.text) == (422, True)
        with pytest.raises(InvalidInput, match="declared in the plan"):
            await service.decisions.observe(made.decision, 0.5, guardrails={"complaints": 1})
        await decide(service, 9)
        await released(service)
        for path in ("/v1/lift", "/v1/schema", "/v1/releases/1"):
            assert "guardrail" not in (await visitor.ask("GET", path, **bearer)).text

    play(settings(plan=plain), scenario)


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_a_table_of_outcomes_may_have_guardrails(settings, play, journal):
    chosen = settings(plan=RAILS, journal=journal)

    async def made(service):
        return [each.decision for each in await decide(service, 4)]

    ids = play(chosen, made)
    names = ["latency", "complaints"]
    rows = [(1, ids[0], 0.5, 5.0, None), (2, ids[1], 0.5, NAN, 1.0), (3, ids[2], 0.5, 11.0, 0.0)]
    (found,) = import_outcomes(chosen, [rows], guardrails=names)
    assert found.counts[STORED] == 2
    assert "latency must be a number in [0, 10]" in found.refused[0][1]
    (found,) = import_outcomes(chosen, [[rows[0], (2, ids[1], 0.5, 3.0, 1.0)]], guardrails=names)
    assert found.counts == {AGAIN: 1, CONFLICT: 1, STORED: 0}
    columns = decision_columns(chosen)
    table = np.stack([columns["guardrail complaints"], columns["guardrail latency"]])
    known = table[:, np.isfinite(columns["loss"])]
    assert sorted(known[np.isfinite(known)].tolist()) == [1.0, 5.0]


def test_tables_are_sent_with_guardrails():
    class Sent:
        def observe_many(self, losses):
            self.losses = losses
            return [{"status": 200, "stored": True} for _ in losses]

    rows = [(1, "a", 0.5, 2.0), (2, "b", 0.5, None), (3, "c", 0.5, 11.0), (4, "d", None, 1.0)]
    client, late = Sent(), Guardrail("late", 0, 10)
    (found,) = send_outcomes(client, UNIT_LOSS, [rows], [late])
    assert client.losses == [("a", 0.5, {"late": 2.0}), ("b", 0.5, {})]
    assert (found.counts[STORED], found.counts[EMPTY]) == (2, 1)
    assert "late must be a number in [0, 10]" in found.refused[0][1]


def test_the_command_asks_which_guardrails_a_table_has(tmp_path, capsys):
    text = toml(anchor="anchor.jsonl").replace("first_batch = 4", "first_batch = 40")
    more = '[plan]\ncontrol = { share = 0.3 }\nguardrails = [{ name = "complaints" }]'
    (tmp_path / "experiment.toml").write_text(text.replace("[plan]", more, 1))
    given = Settings.read(tmp_path / "experiment.toml")
    lifecycle.begin(given)

    async def scenario():
        async with running(given) as service:
            return [each.decision for each in await decide(service, 3)]

    ids = asyncio.run(scenario())
    file = tmp_path / "outcomes.csv"
    lines = ["id,loss,complaints", f"{ids[0]},0.5,1", f"{ids[1]},0.5,", f"{ids[2]},0.5,many"]
    file.write_text("\n".join(lines) + "\n")
    with duckdb.connect() as connection:  # the reader takes the column for text
        assert connection.execute(f"SELECT * FROM read_csv('{file}')").fetchall()
    command = ["observe", "--config", str(tmp_path / "experiment.toml"), "--from", str(file)]
    for wrong in ([], ["--guardrails", "late"], ["--guardrails", "complaints,complaints"]):
        assert main([*command, *wrong]) == 2
        assert "--guardrails must name guardrails of the plan (complaints)" in (
            capsys.readouterr().err
        )
    assert main([*command, "--guardrails", "complaints", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"][STORED] == 2
    ((row, reason),) = answer["refused"]
    assert (row, "many" in reason) == (3, False)
    columns = decision_columns(given)
    assert np.nansum(columns["guardrail complaints"]) == 1.0
    assert main([*command, "--guardrails", "none", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"] == {STORED: 1, AGAIN: 1, CONFLICT: 1}
