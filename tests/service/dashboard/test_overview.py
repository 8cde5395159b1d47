"""The first page in words, its charts, the history and links that can be shared."""

import json
import math
import re
from html import unescape
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from discreet.actions.decisions import Effect, Explanation
from discreet.design.outcome import Loss, Reward
from discreet.releases.lift import Lift, LiftLine
from discreet.releases.quality import Quality
from discreet.service.dashboard import experiment_summary, explorer, overview
from discreet.service.dashboard.experiment_summary import Pace, answer, pace
from discreet.service.dashboard.explorer import example_shares
from discreet.service.dashboard.overview import Chart, Line, short
from discreet.service.dashboard.page_frame import templates
from service.dashboard.visitor import EVERY_KIND, HERE, fill, visiting

NAMED = {
    "n_actions": None,
    "actions": ["none", "mail", "call"],
    "outcome": {"kind": "Reward", "low": 0, "high": 50},
    "budget": {"epsilon": 20.0, "delta": 1e-6},
    "control": {"share": 0.25, "action": "none"},
}


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
        (0.2, 0.3, 1.5, Loss(), "Too early to say", "the noise is still larger"),
    ],
)
def test_did_it_help(policy, control, wide, outcome, short, interval):
    reported = answer(lift_of(policy, control, wide, outcome))
    assert reported.short == short
    assert f"of the control group: {interval}" in reported.text
    ended = answer(lift_of(policy, control, wide, outcome), ended=True)
    assert ended.short == ("Unclear" if short == "Too early to say" else short)


def test_the_figures_have_units_signs_and_intervals():
    line = LiftLine(1, 100, 0.7, 0.8, 0.01, 0.02, 0.01, 0.02, 0.021, 0.025, 1000.0, 30.0)
    found = Lift((line,), (line,), 0.95, Reward(0, 50))
    facts = {name: (value, interval) for name, value, interval in answer(found, "“none”").facts}
    assert facts == {
        "Policy": ("15.00", "14.50 to 15.50"),
        "Control, “none”": ("10.00", "9.00 to 11.00"),
        "Difference": ("+5.00", "+4.00 to +6.00"),
        "Relative": (
            "+50.0\N{NO-BREAK SPACE}%",
            "+35.1\N{NO-BREAK SPACE}% to +69.1\N{NO-BREAK SPACE}%",
        ),
        "Gained so far": ("5,000", "3,832 to 6,232"),
    }
    lost = answer(Lift((line,), (line,), 0.95, Loss())).facts
    assert [name for name, *_ in lost][-1] == "Saved so far"
    assert lost[2][1:] == ("−0.100", "−0.120 to −0.080")


def test_when_it_is_too_early_a_forecast_counts_decisions():
    line = LiftLine(1, 100, 0.2, 0.3, 0.1, 0.2)
    unsure = Lift((line,), (line,), 0.95, Loss(), more_decisions=12_345)
    assert "About 12,000 more decisions until the interval is half as wide" in answer(unsure).more
    assert "About 11,000 more" in answer(unsure, taken=1_000).more, "those made since the release"
    assert answer(unsure, ended=True).more == ""
    sure = LiftLine(1, 100, 0.2, 0.3, 0.05, 0.06)
    assert answer(Lift((sure,), (sure,), 0.95, Loss(), more_decisions=9)).more == ""
    nothing = LiftLine(1, 100, math.nan, math.nan, math.inf, math.inf)
    more = answer(Lift((nothing,), (nothing,), 0.95, Loss(), more_decisions=700)).more
    assert more == "About 700 more decisions until there are figures, if all people answer."


def test_a_lift_that_is_not_known_yet():
    """Neither NaN nor infinity reaches a page or a chart."""
    unknown = LiftLine(1, 100, math.nan, math.nan, math.inf, math.inf)
    known = LiftLine(2, 100, 0.2, 0.3, 0.1, 0.2, 0.1, 0.2)
    reported = answer(Lift((unknown,), (unknown,), 0.95, Loss()))
    assert (reported.short, reported.facts) == ("Too early to say", ())
    assert "the noise exceeds every difference" in reported.text
    times = {1: 100.0, 2: 200.0}
    for draw in (overview.lift_so_far, overview.means_so_far):
        assert draw(Lift((unknown,), (unknown,), 0.95), times) is None
        drawn = draw(Lift((unknown, known), (unknown, known), 0.95), times)
        assert drawn.x == [200.0]
        assert "nan" not in drawn_text(drawn)


def drawn_text(chart):
    """The figure as the page has it."""
    return templates().get_template("macros.html").module.chart(chart)


def charted(low, high):
    middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    x = [86_400.0 * k for k in range(len(low))]
    marks = tuple((at, k + 1) for k, at in enumerate(x))
    return Chart("words", "", x, (Line("lift", middle, low, high),), releases=marks)


def test_early_wide_intervals_do_not_flatten_the_rest():
    chart = charted([-50, -10, -1, -0.5, -0.25, -0.2], [50, 10, 1, 0.5, 0.25, 0.2])
    assert chart.scale == pytest.approx((-0.58, 0.58))
    (line,) = chart.lines
    assert chart.arrows(line) == [
        (chart.position(x), up) for up in (True, False) for x in chart.x[:3]
    ]
    heights = [float(each.split(",")[1]) for each in chart.band(line).split()]
    assert min(heights) >= 18, "what is outside of the scale is cut off"
    assert max(heights) <= 192
    assert chart.rows[0][0] == "release 1, 1 Jan 1970, 00:00"
    assert chart.rows[0][1] == ["0 (−50 to 50)"], "the table has all of it"


def test_a_chart_has_dates_and_the_numbers_of_releases():
    chart = charted([0.0] * 9, [1.0] * 9)
    assert [text for _, text in chart.across] == ["1 Jan", "3 Jan", "5 Jan", "7 Jan", "9 Jan"]
    assert [text for _, text in chart.marks] == [*map(str, range(9, 0, -1))]
    x = [0.0, 1.0, 2.0, 900.0]
    marks = tuple(zip(x, (1, 2, 3, 4), strict=True))
    close = Chart("", "", x, (Line("", [1, 2, 3, 4]),), releases=marks)
    assert [text for _, text in close.marks] == ["4", "3", "", ""], "those that would overlap"
    assert [text for _, text in close.across] == ["1 Jan", "00:05", "00:10", "00:15"]
    hours = Chart("", "", [0.0, 7200.0], (Line("", [1, 2]),))
    assert [text for _, text in hours.across] == ["1 Jan", "01:00", "02:00"]
    alone = Chart("", "", [5.0], (Line("", [0.5]),))
    assert (alone.position(5.0), alone.across[0][1]) == (53.5, "1 Jan")
    assert [short(x) for x in (0, -0.0, -0.12345, 1234.5, 1e6, 12.0)] == [
        *("0", "0", "−0.123", "1,234", "1,000,000", "12")
    ]


def test_the_pace_ends_with_the_traffic():
    """A rate per hour says nothing of the time after the last decision."""
    now, hour = 100 * 3600.0 + 1800.0, 100 * 3600
    running = pace({hour - 3600: 3600, hour: 1800}, now - 5, 0.0, now)
    assert running == Pace(1.0)
    assert pace({hour - 3600: 3600, hour: 60}, now - 1700, 0.0, now) == Pace(0.0, now - 1700)
    assert pace({hour: 2}, now - 900, 0.0, now).per_second > 0, "two in an hour may be so far apart"
    long_ago = hour - 8.5 * 3600
    assert pace({hour - 9 * 3600: 5000}, long_ago, 0.0, now) == Pace(0.0, long_ago)
    assert pace({}, None, 0.0, now) == Pace()


def batch(state, **changes):
    facts = {"taken": 30, "slots": 40, "opened": 100.0, "due": None, "ticks": None}
    return facts | {"state": state} | changes


@pytest.mark.parametrize(
    ("batches", "changes", "short", "text"),
    [
        ([], {}, "after 64 decisions", "awaited for 15 min, then release 3"),
        ([batch("open")], {}, "after 10 more decisions", "in about 2 minutes."),
        ([batch("open", ticks=500.0)], {}, "after 10 more decisions", "1 minute, full or not."),
        ([batch("sealed", due=520.0), batch("open")], {}, "release 3 in 1 min 20 s", "from 30"),
        ([batch("sealed", due=440.0)], {}, "release 3 now", "however many people answer"),
        ([batch("open")], {"mode": "frozen"}, "nothing", "paused"),
        ([batch("open")], {"ended": True, "mode": "ended"}, "nothing", "no further release"),
        ([batch("open", ticks=500.0)], {"mode": "frozen"}, "release 3 at a fixed time", "1 minute"),
    ],
)
def test_what_comes_next(batches, changes, short, text):
    status = {"now": 440.0, "releases": 2, "mode": "online", "ended": False, "window": 900}
    reported = experiment_summary.coming(status | {"batches": batches} | changes, 64, Pace(0.0885))
    assert reported.short == short
    assert text in reported.text


def test_charts_leave_out_unknown_values():
    times = {1: 10.0, 2: 20.0, 3: 30.0}
    known = [Quality(1, 4, 0.5, 0.9), Quality(2, 9, 0.5, 0.1), Quality(3, 9, 0.99, 0.1)]
    found = overview.outcomes(known, times)
    assert found.x == [20.0, 30.0], "noise that exceeds the whole range says nothing"
    assert found.lines[0].low[0] == pytest.approx(0.304)
    assert found.lines[0].high == [pytest.approx(0.696), 1.0]
    assert overview.outcomes([Quality(1, 4, 0.5, 0.9)], times) is None
    hours = overview.traffic({0: 5, 3 * 3600: 7}, 3 * 3600 + 59.0, {})
    assert dict(zip(hours.x, hours.lines[0].values, strict=True))[3 * 3600] == 7
    assert len(hours.x) == len(hours.columns) == 12
    assert sum(hours.lines[0].values) == 12
    assert len(overview.traffic({0: 5}, 1e7, {}).x) == overview.HOURS
    assert overview.traffic({}, 5.0, {}) is None


async def test_shares_are_means_over_made_up_people(settings, released):
    """By the same policy as decisions, for every kind of column, and without rows of people."""
    async with visiting(settings, plan={"features": EVERY_KIND}) as (visitor, service):
        await fill(service, {"n": 9, "f": True, "c": 1, "h": "x", "t": "2026-03-29T14:05"})
        await released(service)
        plan, chain = service.settings.plan, service.state.serving.chain
        found = example_shares(plan, chain, 1)
        assert found.people == 400
        assert sum(found.shares) == pytest.approx(1.0)
        assert found == example_shares(plan, chain, 1), "the same people at every look"
        grouped = [each.value for each in found.segments if each.column == "n"]
        assert grouped == ["low (1 to 4.64)", "middle (4.64 to 21.5)", "high (21.5 to 100)"]
        chosen = [each.value for each in found.segments if each.column == "c"]
        assert chosen == ["1", "2", "any other"]
        assert {each.column for each in found.segments} == {"n", "f", "c"}
        for each in found.segments:
            assert sum(each.shares) == pytest.approx(1.0)
        for column in ("f", "c"):  # values that are equally frequent
            parts = [each.shares[0] for each in found.segments if each.column == column]
            assert sum(parts) / len(parts) == pytest.approx(found.shares[0], abs=0.05)
        start = example_shares(plan, chain, 0)
        assert start.shares == pytest.approx([1 / len(start.actions)] * len(start.actions))
        page = (await visitor.get("/ui/explorer")).text
        assert "Outcomes of groups are not published" in page


def test_an_effect_below_its_error_is_not_known_yet(monkeypatch):
    effects = (Effect("a", -0.2, 0.1), Effect("b", 0.1, 0.1), Effect("c", 0.05, None))
    found = Explanation("mail", {"mail": 0.3, "none": 0.5}, {}, effects)
    monkeypatch.setattr(explorer, "explain_decision", lambda *_, **__: found)
    released = SimpleNamespace(latest=1, outcome=Reward(0, 10))
    lines = explorer.explained(released, None, ["mail", "none"])["lines"]
    assert [(each["effect"], each["error"]) for each in lines] == [
        ("+2.00", "1.00"),
        ("not known yet", "1.00"),
        ("−0.50", ""),
    ]


async def test_the_first_page_has_state_lift_and_next_release(settings, released):
    async with visiting(settings, plan=NAMED) as (visitor, service):
        first = unescape((await visitor.get("/ui")).text)
        assert "Too early to say" in first
        assert "after 4 decisions" in first
        for _ in range(2):
            while (made := await service.decisions.decide("caller", HERE)).stored:
                await service.decisions.observe(made.decision, 0 if made.action == "none" else 50)
            await released(service)
        page = unescape((await visitor.get("/ui")).text)
        # So few people may be within their noise: then there is no chart of the lift.
        charted = overview.lift_so_far(service.lift(), {1: 0.0, 2: 0.0}) is not None
        assert page.count("<figure") == 2 * charted + 1
        assert "14</p>" in page
        for stated in ("“none”", "2 releases so far", "of 20", "a coin gives 50", "made-up people"):
            assert stated in page, stated
        for jargon in ("genesis", "epoch", "document", "slot"):
            assert jargon not in page, jargon
        assert "<progress" not in page.split("Who gets what: ")[0], (
            "no bar that looks like exhaustion"
        )
        part = await visitor.get("/ui", hx_request="true")
        assert "<html" not in part.text
        assert "<figure" not in part.text
        assert json.loads((await visitor.get("/ui/newest")).text) == {"newest": 2}


async def test_the_history_has_time_and_key(settings, released):
    async with visiting(settings) as (visitor, service):
        await fill(service)
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
            "Batch 2 given up, its records erased",
            "The newest release decides again",
            "Went back to start",
            "Set to running",
            "Set to paused",
            "Release 1, of batch 1",
        ]
        assert page.count("first key (") == 7  # six things that it did, and that it was made
        assert "the service" in page


async def test_a_link_shows_what_its_sender_saw(settings, released):
    async with visiting(settings) as (visitor, service):
        await fill(service)
        await released(service)
        link = "/ui/explorer?x0=0.75&x1=-1&release=0"
        page = (await visitor.get(link)).text
        assert re.search(r'id="x0"[^>]*value="0.75"', page)
        assert re.search(r'<option value="0" selected>', page)
        assert (await visitor.get("/ui/explorer?x0=noon")).status == 422
        # Whoever is not logged in comes back to it.
        guest = visitor.other()
        first = (await guest.get(link)).headers["location"]
        assert first == f"/ui/login?next={quote(link, safe='')}"
        form = (await guest.get(first)).text
        kept = unescape(re.search(r'name="next" value="([^"]*)"', form)[1])
        reply = await guest.send("/ui/login", key=settings.key(), next=kept)
        assert (reply.status, reply.headers["location"]) == (303, link)


async def test_what_somebody_tries_is_not_logged(settings, capfd):
    async with visiting(settings) as (visitor, _):
        await visitor.get("/ui/explorer?x0=0.123456")
        await visitor.get("/ui/explorer?x0=7.654321")
    reported = "".join(capfd.readouterr())
    assert "logged in" in reported
    assert "123456" not in reported
    assert "654321" not in reported
