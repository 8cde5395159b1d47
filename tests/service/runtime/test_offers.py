"""Offered actions, and actions that join and leave, in a running service."""

import asyncio
import json
import tomllib
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.client import Billboard
from discreet.errors import CorruptRelease, InvalidInput, NotReady
from discreet.service.runtime import lifecycle
from discreet.service.secrets.sealing import ROW, DecisionRow, Sealer
from discreet.service.settings import Settings
from service.conftest import PLAN, dump, running, set_back
from service.dashboard.visitor import Visitor

HERE = [0.3, -0.2]
FILMS = {
    "kind": "Catalogue",
    "schema": {
        "kind": "Schema",
        "fields": [{"kind": "Number", "name": "year", "low": 1900, "high": 2000}],
    },
    "items": [
        {"id": "M", "year": 1931},
        {"id": "Persona", "year": 1966},
        {"id": "Heat", "year": 1995},
    ],
}
CATALOGUE = {"n_actions": None, "actions": FILMS, "floor": 0.05}
NAMED = {"n_actions": None, "actions": ["none", "mail", "call"]}
NEW = {"id": "Metropolis", "year": 1927}


def rows_of(service, settings):
    """The sealed rows of the open batch, opened: what is really stored."""
    vault, found = service.state.vault, []
    for epoch, batch, slot, payload in dump(settings)["records"]:
        sealer = Sealer(vault.batch(epoch, batch), epoch, batch)
        found.append((slot, DecisionRow.unpack(sealer.open(ROW, slot, bytes(payload)))))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def test_joint_features_of_the_chosen_pair_are_stored_and_released(
    settings, play, released, capsys
):
    chosen = settings(plan=CATALOGUE)

    async def scenario(service):
        offered = ["Heat", "M"]
        made = await service.decisions.decide("caller", HERE, actions=offered, ranking=True)
        assert made.action in offered
        assert made.ranking[0] == made.action
        assert sorted(made.ranking) == sorted(offered)
        own = await service.decisions.decide("caller", HERE, actions=[NEW])
        assert (own.action, own.stored) == ("Metropolis", True)
        plan = chosen.plan
        first, second = rows_of(service, chosen)
        x = plan.features.map(HERE)[0]
        item = plan.catalogue.rows[plan.catalogue.places[made.action]]
        np.testing.assert_array_equal(first.features, plan.features.rows(x, item))
        brought = plan.catalogue.schema.map({"year": 1927})[0]
        np.testing.assert_array_equal(second.features, plan.features.rows(x, brought))
        assert (first.action, second.action) == (0, 0)
        rest = [await service.decisions.decide("caller", HERE) for _ in range(2)]
        assert {each.action for each in rest} <= {"M", "Persona", "Heat"}
        for each in (made, own, *rest):
            await service.decisions.observe(each.decision, 0.25)
        seen = await released(service)
        assert seen.latest.predictor.weights.shape == (1, plan.features.p)
        later = await service.decisions.decide("caller", HERE, actions=["M", NEW], idempotency="a")
        assert later == await service.decisions.decide("caller", HERE, idempotency="a")
        reported = await service.status(), service.list_actions()
        return [bytes(row[5]) for row in dump(chosen)["documents"]], str(reported)

    documents, stated = play(chosen, scenario)
    reported = b"".join(documents).decode() + stated + "".join(capsys.readouterr())
    assert "Metropolis" not in reported  # what one request brought along is content of its record
    Billboard(documents, json.loads(documents[0])["key"]).recompute()


def test_a_ranking_moves_no_draw_of_anybody_else(settings, play):
    """The size of an offer is private: later draws of actions must not depend on it."""

    async def scenario(service):
        source = service.decisions._offered._draws
        followed = []
        for offered in (["Heat", "M"], ["Heat", "M", "Persona"], None):
            source.bit_generator.state = np.random.default_rng(5).bit_generator.state
            await service.decisions.decide("caller", HERE, actions=offered, ranking=True)
            followed.append(source.random(4).tolist())
        assert followed[0] == followed[1] == followed[2]

    play(settings(plan=CATALOGUE), scenario)


@pytest.mark.parametrize(
    "actions",
    [
        [],
        ["M", "M"],
        ["Metropolis"],
        [{"id": "M", "year": 1931}],
        [{"id": "secret", "year": 3000}],
        [{"id": "secret", "yeer": 1931}],
        [{"id": "secret"}],
        [{"id": " secret", "year": 1931}],
        [{"id": "secret", "year": 1931}, {"id": "secret", "year": 1932}],
        [{"year": 1931}],
    ],
)
def test_a_bad_offer_is_refused_without_its_values_and_stores_nothing(settings, play, actions):
    chosen = settings(plan=CATALOGUE)

    async def scenario(service):
        before = dump(chosen)
        with pytest.raises(InvalidInput) as refusal:
            await service.decisions.decide("caller", HERE, actions=actions)
        assert refusal.value.field == "actions"
        assert not any(word in str(refusal.value) for word in ("secret", "3000", "Metropolis"))
        assert dump(chosen) == before

    play(chosen, scenario)


@pytest.fixture
def database():
    return "discreet.db"


class TestBothDatabases:
    """Changes are transactions, so both databases must make them."""

    @pytest.fixture(params=["sqlite", "postgresql"])
    def database(self, request):
        return (
            "discreet.db" if request.param == "sqlite" else request.getfixturevalue("fresh_schema")
        )

    def test_items_join_and_leave_at_once_and_other_workers_and_starts_see_it(self, settings, play):
        chosen = settings(plan=CATALOGUE, window=60)

        async def scenario(service):
            async with AsyncExitStack() as stack:
                workers = [service]
                if chosen.postgres:  # SQLite has one process
                    workers.append(await stack.enter_async_context(running(chosen)))
                await service.decisions.decide("caller", HERE)  # a batch that opened before
                await service.change_actions([NEW], ["Heat"])
                for each in workers:
                    await each.state.refresh()
                    made = await each.decisions.decide("caller", HERE, actions=["Metropolis"])
                    assert (made.action, made.stored) == ("Metropolis", True)
                    with pytest.raises(InvalidInput, match="in use"):
                        await each.decisions.decide("caller", HERE, actions=["Heat"])

        play(chosen, scenario)

        async def after(service):
            return [*service.state.serving.chain.available_actions.places]

        assert play(chosen, after) == ["M", "Persona", "Metropolis"]

    def test_changes_at_the_same_time_follow_each_other(self, settings, play):
        chosen = settings(plan=CATALOGUE)

        async def scenario(service):
            async with AsyncExitStack() as stack:
                workers = [service]
                if chosen.postgres:
                    workers.append(await stack.enter_async_context(running(chosen)))
                items = [{"id": f"film {k}", "year": 1950} for k in range(6)]
                outcomes = await asyncio.gather(
                    *(workers[k % len(workers)].change_actions([items[k]], []) for k in range(6)),
                    return_exceptions=True,
                )
                await service.state.refresh()
                # A document is confirmed before the next one; who comes too early tries again.
                wrong = [each for each in outcomes if each and not isinstance(each, NotReady)]
                assert not wrong
                made = [items[k]["id"] for k in range(6) if outcomes[k] is None]
                known = service.state.serving.chain.available_actions.places
                assert made
                assert sorted(made) == sorted(name for name in known if name.startswith("film"))

        play(chosen, scenario)

    def test_a_block_joins_with_the_next_batch(self, settings, play, released):
        chosen = settings(plan=NAMED, waiting="pipeline")

        async def scenario(service):
            for _ in range(3):
                made = await service.decisions.decide("caller", HERE)
                await service.decisions.observe(made.decision, 0.5)
            await service.change_actions(["visit"], ["none"])
            with pytest.raises(InvalidInput):  # the batch that is open has no block for it
                await service.decisions.decide("caller", HERE, actions=["visit"])
            fourth = await service.decisions.decide("caller", HERE)
            assert fourth.stored  # the refused request gave its slot back
            assert fourth.action in ("mail", "call")  # who left is gone at once
            second = [
                await service.decisions.decide("caller", HERE, actions=["visit"]) for _ in range(8)
            ]
            assert {each.action for each in second} == {"visit"}
            await service.decisions.observe(second[0].decision, 0.5)
            shapes = []
            for _ in range(2):
                shapes.append((await released(service)).latest.predictor.weights.shape)
            assert shapes == [(3, 3), (4, 3)]
            later = await service.decisions.decide("caller", HERE, actions=["visit", "mail"])
            assert later.stored
            return [bytes(row[5]) for row in sorted(dump(chosen)["documents"])]

        documents = play(chosen, scenario)
        key = json.loads(documents[0])["key"]
        board = Billboard(documents, key)
        assert board.actions == ("mail", "call", "visit")
        assert board.recompute()
        assert [json.loads(each)["kind"] for each in documents] == [
            "genesis",
            "actions",
            "release",
            "release",
        ]
        with pytest.raises(CorruptRelease):
            Billboard([documents[0], *documents[2:]], key)


def test_a_bad_change_is_refused_and_leaves_no_document(settings, play):
    chosen = settings(plan=CATALOGUE)

    async def scenario(service):
        before = dump(chosen)["documents"]
        for add, remove in (
            ([], []),
            ([{"id": "M", "year": 1931}], []),
            ([], ["Metropolis"]),
            ([{"id": "x", "year": 3000}], []),
            (["x"], []),
            ([NEW, NEW], []),
        ):
            with pytest.raises(InvalidInput):
                await service.change_actions(add, remove)
        assert dump(chosen)["documents"] == before

    play(chosen, scenario)


def test_a_device_with_a_ticket_plays_an_item(settings, play):
    chosen = settings(plan=CATALOGUE | {"control": {"share": 0.25}, "first_batch": 8})

    async def scenario(service):
        tickets = [await service.decisions.ticket() for _ in range(8)]
        control = [each for each in tickets if each.action is not None]
        assert control
        free = [each for each in tickets if each.action is None]
        hear = service.decisions.observe
        await service.change_actions([], ["Heat"])
        assert await hear(free[0].ticket, 0.5, context=HERE, action="M")
        assert await hear(free[1].ticket, 0.5, context=HERE, action="Heat")  # shown before it left
        assert await hear(free[2].ticket, 0.5, context=HERE, action=NEW)
        assert await hear(control[0].ticket, 0.5, context=HERE, action=control[0].action)
        for action in ("Metropolis", {"id": "secret"}, {"id": "M", "year": 1931}, {"year": 1931}):
            with pytest.raises(InvalidInput) as refusal:
                await hear(free[3].ticket, 0.5, context=HERE, action=action)
            assert "secret" not in str(refusal.value)
        with pytest.raises(InvalidInput, match="names"):
            await hear(control[-1].ticket, 0.5, context=HERE, action=NEW)

    play(chosen, scenario)


def test_a_control_and_a_shadow_stay_within_the_offer(settings, play):
    fixed = CATALOGUE | {"control": {"share": 0.5, "action": "Heat"}, "first_batch": 64}

    async def scenario(service):
        decide = service.decisions.decide
        await asyncio.gather(*(decide("caller", HERE, actions=["M"]) for _ in range(4)))
        seen = [await decide("caller", HERE, actions=["M", "Heat"]) for _ in range(40)]
        assert sum(each.action == "Heat" for each in seen) >= 10
        await service.set_mode("shadow")
        assert (await decide("caller", HERE, actions=["Heat", "Persona"])).action == "Persona"
        assert (await decide("caller", HERE, actions=["Heat", "M"])).action == "Heat"

    play(settings(plan=fixed, default_action="Persona", window=60), scenario)


def test_items_of_a_file_are_those_of_the_table(tmp_path):
    (tmp_path / "items.csv").write_text("id,year\nM,1931\nPersona,1966\nHeat,1995\n")
    document = {"experiment": "test", "plan": PLAN | CATALOGUE}
    inline = Settings.from_config(document, tmp_path)
    document["plan"] = document["plan"] | {"actions": {**FILMS, "items": "items.csv"}}
    assert Settings.from_config(document, tmp_path).plan.digest == inline.plan.digest
    assert inline.plan.floor == 0.05
    for text in ("name,year\nM,1931\n", "id,year\nM,1931\nM,1932\n", "id,year\nM,3000\n"):
        (tmp_path / "items.csv").write_text(text)
        with pytest.raises(InvalidInput):
            Settings.from_config(document, tmp_path)


def test_items_of_numbers_come_with_their_array(settings, play):
    table = {
        "kind": "Catalogue",
        "schema": {"kind": "UnitBall", "dimension": 2},
        "items": {"a": [0.5, 0.0], "b": [0.0, 0.5]},
    }

    async def scenario(service):
        own = {"id": "c", "features": [0.1, 0.2]}
        assert (await service.decisions.decide("caller", HERE, actions=[own])).action == "c"
        await service.change_actions([own], ["a"])
        assert [*service.state.serving.chain.available_actions.places] == ["b", "c"]

    play(settings(plan={"n_actions": None, "actions": table}), scenario)
    assert dc.Catalogue(dc.UnitBall(2), table["items"]).ids == ("a", "b")


def bars(page):
    """Actions of the described person; other bars are of made-up people."""
    return page.partition('<div role="status">')[2].partition("</div>")[0].count("<progress")


def test_routes_and_pages_of_a_long_catalogue(settings, play):
    long = FILMS | {"items": {f"film {k}": {"year": 1900 + k} for k in range(60)}}
    chosen = settings(plan=CATALOGUE | {"actions": long}, window=60)
    key = settings.key()

    async def scenario(service):
        visitor = Visitor(service)

        async def call(method, path, body=None):
            reply = await visitor.ask(method, path, raw=body, authorization=f"Bearer {key}")
            return reply.status, json.loads(reply.text)

        status, reported = await call("GET", "/v1/actions?q=FILM%205&limit=3")
        assert (status, reported["count"], reported["found"]) == (200, 60, 11)
        assert reported["actions"] == ["film 5", "film 50", "film 51"]
        assert (await call("GET", "/v1/actions?limit=none"))[1]["error"]["field"] == "limit"
        change = {"add": [NEW], "remove": ["film 5"]}
        status, reported = await call("POST", "/v1/admin/actions", change)
        assert (status, reported["count"], reported["release"]) == (200, 60, 1)
        status, reported = await call("POST", "/v1/admin/actions", change)
        assert (status, reported["error"]["field"]) == (422, "remove")
        body = {"context": HERE, "actions": ["film 7", "Metropolis"], "ranking": True}
        status, made = await call("POST", "/v1/decide", body)
        assert (status, sorted(made["ranking"])) == (200, ["Metropolis", "film 7"])
        assert made["ranking"][0] == made["action"]
        assert "ranking" not in (await call("POST", "/v1/decide", {"context": HERE}))[1]
        for actions in (["film 5"], [], [7], [["M"]], "M"):
            status, reported = await call(
                "POST", "/v1/decide", {"context": HERE, "actions": actions}
            )
            assert (status, reported["error"]["field"].split("[")[0]) == (422, "actions")
        status, reported = await call("GET", "/v1/status")
        assert (reported["n_actions"], reported["actions"]) == (60, None)
        assert (await call("GET", "/v1/schema"))[1]["features"]["kind"] == "Joint"
        await visitor.log_in(key)
        page = (await visitor.get("/ui/explorer")).text
        assert bars(page) == 20
        assert 'name="find"' in page
        found = await visitor.send("/ui/explorer", find="metrop")
        assert bars(found.text) == 1
        assert "Metropolis" in found.text
        assert "No action" in (await visitor.send("/ui/explorer", find="nothing")).text
        for path in ("", "/releases/0", "/releases/1", "/settings"):
            page = await visitor.get(f"/ui{path}")
            assert page.status == 200
            assert "film 30" not in page.text  # a long catalogue is cut
        assert "Metropolis" in (await visitor.get("/ui/releases/1")).text

    play(chosen, scenario)


def test_a_burned_batch_leaves_its_number_to_a_wider_one(settings, play, released):
    chosen = settings(plan=NAMED, waiting="pipeline")

    async def scenario(service):
        await service.decisions.decide("caller", HERE)
        await service.change_actions(["visit"], [])
        await service.burn(1)
        made = [await service.decisions.decide("caller", HERE) for _ in range(4)]
        assert all(each.stored for each in made)
        seen = await released(service)
        assert (seen.latest.number, len(seen.latest.predictor.weights)) == (1, 4)
        return [bytes(row[5]) for row in sorted(dump(chosen)["documents"])]

    documents = play(chosen, scenario)
    assert Billboard(documents, json.loads(documents[0])["key"]).recompute()


def test_a_restored_backup_has_the_actions_that_it_held(settings, play):
    chosen = settings(plan=CATALOGUE)
    backup = dump(chosen)
    play(chosen, lambda service: service.change_actions([NEW], ["M"]))
    set_back(chosen, backup)
    lifecycle.restore(chosen)

    async def again(service):
        assert [*service.state.serving.chain.available_actions.places] == ["M", "Persona", "Heat"]
        await service.change_actions([], ["Heat"])
        return [bytes(row[5]) for row in sorted(dump(chosen)["documents"])]

    documents = play(chosen, again)
    board = Billboard(documents, json.loads(documents[0])["key"])
    assert board.actions == ("M", "Persona")


def test_a_catalogue_that_begins_empty_serves_what_requests_bring(settings, play):
    empty = CATALOGUE | {"actions": FILMS | {"items": []}}

    async def scenario(service):
        with pytest.raises(InvalidInput):
            await service.decisions.decide("caller", HERE)
        for mode in ("online", "shadow"):
            await service.set_mode(mode)
            made = await service.decisions.decide("caller", HERE, actions=[NEW])
            assert (made.action, made.stored) == ("Metropolis", True)
        assert "default action" in (await service.status())["text"]
        assert (await service.decisions.ticket()).action is None

    play(settings(plan=empty, window=60), scenario)


def test_the_file_of_the_guide_is_an_experiment(tmp_path):
    guide = Path(__file__).parents[3] / "docs" / "service.md"
    text = guide.read_text().split("# films.toml\n")[1].split("```")[0]
    document = tomllib.loads(text)
    document["plan"]["budget"] = PLAN["budget"]
    plan = Settings.from_config({"experiment": "films", **document}, tmp_path).plan
    assert list(plan.catalogue) == ["M", "Heat"]
