"""The first page in words, its charts, the history and links that can be shared."""

import json
import math
import re
from html import unescape
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from discreet.design.outcome import Loss, Reward
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget, Participation
from discreet.releases.lift import Lift, LiftLine
from discreet.releases.quality import Quality
from discreet.service.dashboard import experiment_summary, overview, page_data
from discreet.service.dashboard.experiment_summary import answer
from service.dashboard.visitor import Visitor

HERE = [0.3, -0.2]
CONTROL = {"control": {"share": 0.25, "action": "none"}}
NAMED = {
    "n_actions": None,
    "actions": ["none", "mail", "call"],
    "outcome": {"kind": "Reward", "low": 0, "high": 50},
    "budget": {"epsilon": 20.0, "delta": 1e-6},
}


@pytest.fixture
def database():
    return "discreet.db"


def lift_of(policy, control, wide, outcome):
    line = LiftLine(1, 100, policy, control, wide / 2, wide)
    return Lift((line,), (line,), 0.95, outcome)


@pytest.mark.parametrize(
    ("policy", "control", "wide", "outcome", "short", "interval"),
    [
        (0.2, 0.3, 0.05, Loss(), "Yes", "between 0.050 and 0.150 lower"),
        (0.3, 0.2, 0.05, Loss(), "No", "between 0.050 and 0.150 higher"),
        (0.2, 0.3, 0.2, Loss(), "Too early to say", "between 0.300 lower and 0.100 higher"),
        (0.2, 0.3, 0.05, Reward(0, 50), "Yes", "between 2.50 and 7.50 higher"),
        (0.2, 0.3, 0.2, Reward(0, 50), "Too early to say", "between 5.00 lower and 15.00 higher"),
        (0.2, 0.3, 1.5, Loss(), "Too early to say", "the noise is still larger"),
    ],
)
def test_did_it_help(policy, control, wide, outcome, short, interval):
    reported = answer(lift_of(policy, control, wide, outcome))
    assert reported.short == short
    assert f"of the control: {interval}" in reported.text


def test_a_lift_that_is_not_known_yet():
    """Neither NaN nor infinity reaches a page or a chart."""
    unknown = LiftLine(1, 100, math.nan, math.nan, math.inf, math.inf)
    known = LiftLine(2, 100, 0.2, 0.3, 0.1, 0.2)
    reported = answer(Lift((unknown,), (unknown,), 0.95, Loss()))
    assert (reported.short, reported.policy, reported.control) == ("Too early to say", "–", "–")
    assert reported.text.startswith("Lift is not known yet")
    assert overview.lift_so_far(Lift((unknown,), (unknown,), 0.95)) is None
    drawn = overview.lift_so_far(Lift((unknown, known), (unknown, known), 0.95))
    assert drawn["x"] == [2]
    json.dumps(drawn, allow_nan=False)


def batch(state, **changes):
    facts = {"taken": 30, "slots": 40, "opened": 100.0, "due": None, "ticks": None}
    return facts | {"state": state} | changes


@pytest.mark.parametrize(
    ("changes", "short", "text"),
    [
        ({}, "after 64 decisions", "awaited for 15 min, then release 3"),
        ({"batches": [batch("open")]}, "after 10 more decisions", "in about 2 minutes."),
        (
            {"batches": [batch("open", ticks=4000.0)]},
            "after 10 more decisions",
            "At this pace that is in about 2 minutes.",
        ),
        (
            {"batches": [batch("open", ticks=500.0)]},
            "after 10 more decisions",
            "The clock ends the batch in about 1 minute, full or not.",
        ),
        (
            {"batches": [batch("sealed", due=520.0), batch("open")]},
            "release 3 in 1 min 20 s",
            "learns from 30 decisions",
        ),
        ({"batches": [batch("sealed", due=440.0)]}, "release 3 now", "however many people answer"),
        ({"mode": "frozen", "batches": [batch("open")]}, "nothing", "paused"),
        ({"ended": True}, "nothing", "no further release"),
        (
            {"ended": True, "mode": "ended", "batches": [batch("open")]},
            "nothing",
            "no further release",
        ),
        (
            {"mode": "frozen", "batches": [batch("open", ticks=500.0)]},
            "release 3 by the clock",
            "ends in about 1 minute",
        ),
    ],
)
def test_what_comes_next(changes, short, text):
    status = {"batches": [], "now": 440.0, "releases": 2, "mode": "online", "ended": False}
    reported = experiment_summary.coming(status | {"window": 900} | changes, 64)
    assert reported.short == short
    assert text in reported.text


def test_privacy_in_words():
    def reported(spent, epsilon, often):
        return experiment_summary.privacy(
            SimpleNamespace(epsilon=spent), Budget(epsilon, 1e-6), often
        )

    once = reported(1.0, 1.0, None)
    assert (once.short, "spent once" in once.text, "not growing" in once.text) == (
        "ε = 1 of 1",
        True,
        True,
    )
    assert "none is yet" in reported(0.0, 1.0, None).text
    assert (
        "at most 10 releases; further releases do not add"
        in reported(0.5, 1.0, Participation(10, 1)).text
    )
    assert reported(1.0, float("inf"), None).short == "none"


def test_what_is_tried_in_words():
    plan = Plan.from_config(
        {
            "actions": ["none", "mail", "call"],
            "outcome": {"kind": "Reward", "low": 0, "high": 50},
            "features": {"kind": "UnitBall", "dimension": 2},
            "budget": {"epsilon": 1.0, "delta": 1e-6},
            **CONTROL,
        }
    )
    stated = experiment_summary.tried(plan, [*plan.actions], 3)
    assert "one of “none”, “mail” or “call”" in stated
    assert "0 to 50: larger is better" in stated
    assert stated.endswith("25\N{NO-BREAK SPACE}% of the decisions get “none”, to compare.")
    assert "one of 900 actions" in experiment_summary.tried(plan, None, 900)


def test_charts_leave_out_unknown_values():
    found = overview.outcomes(
        [Quality(1, 4, 0.5, 0.9), Quality(2, 9, 0.5, 0.1), Quality(3, 9, 0.99, 0.1)]
    )
    assert found["x"] == [2, 3], "noise that exceeds the whole range says nothing"
    _, low, high = (line["values"] for line in found["lines"])
    assert low[0] == pytest.approx(0.304)
    assert high == [pytest.approx(0.696), 1.0]
    assert overview.outcomes([Quality(1, 4, 0.5, 0.9)]) is None
    hours = overview.traffic({0: 5, 3 * 3600: 7}, 3 * 3600 + 59.0)
    assert dict(zip(hours["x"], hours["lines"][0]["values"], strict=True))[3 * 3600] == 7
    assert len(hours["x"]) == 12
    assert sum(hours["lines"][0]["values"]) == 12
    assert len(overview.traffic({0: 5}, 1e7)["x"]) == overview.HOURS
    assert overview.traffic({}, 5.0) is None


def test_documents_have_names():
    def link(number, kind, release=None):
        reported = release and SimpleNamespace(number=release)
        return SimpleNamespace(number=number, kind=kind, release=reported)

    links = [link(0, "genesis"), link(1, "release", 1), link(2, "burn"), link(3, "release", 2)]
    assert [*page_data.document_names(links).values()] == [
        "start",
        "release 1",
        "batch given up after release 1",
        "release 2",
    ]
    assert page_data.release_counts(links) == {0: 0, 1: 1, 2: 1, 3: 2}


async def entered(service, key):
    visitor = Visitor(service)
    assert (await visitor.log_in(key)).status == 303
    return visitor


def test_the_first_page_has_state_lift_and_next_release(settings, play, released):
    async def scenario(service):
        visitor = await entered(service, settings.key())
        first = unescape((await visitor.get("/ui")).text)
        assert "Too early to say" in first
        assert "after 4 decisions" in first
        for _ in range(2):
            while (made := await service.decisions.decide("caller", HERE)).stored:
                await service.decisions.observe(made.decision, 0 if made.action == "none" else 50)
            await released(service)
        await service.state.store_traffic()
        page = unescape((await visitor.get("/ui")).text)
        drawn = [json.loads(each) for each in re.findall(r'data-chart="(\{.*?\})"', page)]
        # So few people may be within their noise: then there is no chart of the lift.
        charted = overview.lift_so_far(service.lift()) is not None
        assert [each["label"] for each in drawn] == ["release"] * (1 + charted) + ["hour"]
        assert sum(drawn[-1]["lines"][0]["values"]) == 14
        for stated in ("14", "“none”", "Mean reward of each release", "2 releases so far", "of 20"):
            assert stated in page, stated
        for jargon in ("genesis", "epoch", "document", "slot"):
            assert jargon not in page, jargon
        assert "<progress" not in page, "no bar that looks like exhaustion"
        part = await visitor.get("/ui", hx_request="true")
        assert "<html" not in part.text
        assert "data-chart" not in part.text
        assert json.loads((await visitor.get("/ui/newest")).text) == {"newest": 2}

    play(settings(plan={**NAMED, **CONTROL}), scenario)


RULES = ("Contexts have not been shown to help clearly", "Predicted losses differ clearly")


def test_the_status_has_the_rule_that_decides(settings, play, released):
    async def scenario(service):
        visitor = await entered(service, settings.key())
        before = await service.status()
        assert before["rule"] is None
        assert not any(each in before["text"] for each in RULES)
        while (made := await service.decisions.decide("caller", HERE)).stored:
            await service.decisions.observe(made.decision, 50)
        rule = (await released(service)).rule_text
        assert rule.startswith(RULES)
        after = await service.status()
        assert after["rule"] == rule
        assert rule in after["text"]
        assert rule in unescape((await visitor.get("/ui")).text)

    play(settings(plan={**NAMED, "policy": {"kind": "AdaptivePO"}}), scenario)


def test_without_a_control_there_is_no_lift(settings, play):
    async def scenario(service):
        page = (await (await entered(service, settings.key())).get("/ui")).text
        assert "Nobody can say" in page

    play(settings(), scenario)


def test_the_history_has_time_and_key(settings, play, released):
    async def scenario(service):
        visitor = await entered(service, settings.key())
        for _ in range(4):
            await service.decisions.decide("caller", HERE)
        await released(service)
        for mode in ("frozen", "online"):
            await visitor.send("/ui/settings/mode", mode=mode)
        await visitor.send("/ui/settings/serving", release="0")
        await visitor.send("/ui/settings/serving", release="newest")
        await visitor.send("/ui/keys", scope="audit", label="<i>Ada</i>")
        await service.decisions.decide("caller", HERE)
        await visitor.send("/ui/settings/burn", batch="2", typed="2")
        page = unescape((await visitor.get("/ui/history")).text)
        rows = [
            re.sub("<[^i/].*?>|</[^i].*?>", "", each) for each in re.findall("<th scope.*", page)
        ]
        made = re.fullmatch(r"Key made: <i>Ada</i> \((\w{12})\)", rows[1])
        assert made
        assert [rows[0], *rows[2:7]] == [
            "Batch 2 given up, its rows erased",
            "The newest release decides again",
            "Went back to start",
            "Set to running",
            "Set to paused",
            "Release 1, of batch 1",
        ]
        assert page.count("first key (") == 7  # six things that it did, and that it was made
        assert "the clock" in page

    play(settings(), scenario)


def test_a_link_shows_what_its_sender_saw(settings, play, released):
    async def scenario(service):
        visitor = await entered(service, settings.key())
        for _ in range(4):
            await service.decisions.decide("caller", HERE)
        await released(service)
        link = "/ui/explorer?x0=0.75&x1=-1&release=0&vary=x1"
        page = (await visitor.get(link)).text
        assert re.search(r'id="x0"[^>]*value="0.75"', page)
        assert re.search(r'<option value="0" selected>', page)
        assert re.search(r'<option value="x1" selected>', page)
        assert (await visitor.get("/ui/explorer?x0=noon")).status == 422
        # Whoever is not logged in comes back to it.
        guest = Visitor(service, app=visitor.app)
        first = (await guest.get(link)).headers["location"]
        assert first == f"/ui/login?next={quote(link, safe='')}"
        form = (await guest.get(first)).text
        kept = unescape(re.search(r'name="next" value="([^"]*)"', form)[1])
        reply = await guest.send("/ui/login", key=settings.key(), next=kept)
        assert (reply.status, reply.headers["location"]) == (303, link)

    play(settings(), scenario)


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example/ui/", "/v1/status", "/uix", "/ui/\r\nx: y", "/ui/é"],
)
def test_a_log_in_leads_to_our_pages_only(settings, play, place):
    async def scenario(service):
        visitor = Visitor(service)
        await visitor.get("/ui/login")
        reply = await visitor.send("/ui/login", key=settings.key(), next=place)
        assert (reply.status, reply.headers["location"]) == (303, "/ui")

    play(settings(), scenario)


def test_what_somebody_tries_is_not_logged(settings, play, capfd):
    async def scenario(service):
        visitor = await entered(service, settings.key())
        await visitor.get("/ui/explorer?x0=0.123456")
        await visitor.get("/ui/explorer?x0=7.654321")

    play(settings(), scenario)
    reported = "".join(capfd.readouterr())
    assert "logged in" in reported
    assert "123456" not in reported
    assert "654321" not in reported
