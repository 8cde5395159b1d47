"""Logs in dsjson: what is read, what is left out, and estimates from their propensities."""

import json

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.data.decision_logs import read_dsjson
from discreet.data.files import feature_columns, flat_features
from discreet.errors import InvalidInput

ITEMS = {"pasta": {"taste": "salty", "level": 5}, "salad": {"taste": "fresh", "level": 8}}
CONTEXT = dc.Schema([dc.Category("time", ["am", "pm"]), dc.Number("user.age", 0, 100)])
ACTION = dc.Schema([dc.Category("taste", ["salty", "fresh"]), dc.Number("level", 0, 10)])


def event(time="am", age=30, played="pasta", reward=0.0, probability=0.5, items=ITEMS, **more):
    """A line as Personalizer exports it."""
    place = [*items].index(played)
    multi = [
        {"_tag": name, "i": {"constant": 1, "id": name}, "j": [{key: each[key]} for key in each]}
        for name, each in items.items()
    ]
    others = [number for number in range(1, len(items) + 1) if number != place + 1]
    return {
        "_label_cost": -reward,
        "_label_probability": probability,
        "_label_Action": place + 1,
        "_labelIndex": place,
        "o": [{"v": reward, "EventId": "e"}],
        "EventId": "e",
        "a": [place + 1, *others],
        "c": {"FromUrl": [{"time": time}, {"user": {"age": age}}], "_multi": multi},
        "p": [probability, *([(1 - probability) / max(1, len(others))] * len(others))],
        "pdrop": 0.0,
    } | more


def written(tmp_path, events):
    lines = [each if isinstance(each, str) else json.dumps(each) for each in events]
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(lines) + "\n")
    return path


def play(rows=4000, seed=1):
    """Events of a logging policy with known propensities: salad is right in the morning."""
    rng = np.random.default_rng(seed)
    made = []
    for u, coin, age in zip(rng.random(rows), rng.random(rows), rng.uniform(0, 100, rows)):  # noqa: B905
        time, salad = ("am" if coin < 0.5 else "pm"), bool(u < 0.25)
        reward = float(salad == (time == "am"))
        chance = 0.25 if salad else 0.75
        made.append(event(time, age, "salad" if salad else "pasta", reward, chance))
    return made


def test_an_event(tmp_path):
    read = read_dsjson(written(tmp_path, [event(reward=1.0), event("pm", 41, "salad", 0.5, 0.2)]))
    assert read.contexts == ({"time": "am", "user.age": 30}, {"time": "pm", "user.age": 41})
    assert read.actions == ["pasta", "salad"]
    assert read.offers == (("pasta", "salad"),) * 2
    assert read.items == ITEMS
    np.testing.assert_array_equal(read.costs, [-1.0, -0.5])
    np.testing.assert_array_equal(read.propensities, [0.5, 0.2])
    assert read.observed.all()
    assert "am" not in repr(read)


def test_label_fields_may_be_missing_where_a_and_p_have_them(tmp_path):
    line = event(played="salad", probability=0.3)
    for name in ("_labelIndex", "_label_Action", "_label_probability"):
        del line[name]
        read = read_dsjson(written(tmp_path, [line]))
        assert (read.actions, read.propensities.tolist()) == (["salad"], [0.3])


def test_lines_that_are_no_decisions_are_left_out_and_counted(tmp_path):
    lines = [
        event(),
        event(o=[]),  # no reward came: the default of the service
        {"RewardValue": 1.0, "EventId": "lost"},
        event(_skipLearn=True),
        event(DeferredAction=True, o=[]),
        event(DeferredAction=True, o=[{"ActionTaken": True}, {"v": 1.0}]),
        event(_label_cost=None),
        event(_outcomes=[]),
        "",
    ]
    read = read_dsjson(written(tmp_path, lines))
    assert read.observed.tolist() == [True, False, True]
    reasons = ("reward without a decision", "not activated", "no label", "several slots")
    assert read.left_out == dict(zip(reasons, (1, 2, 1, 1), strict=True))


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        event(_labelIndex=7),
        event(_label_probability=0.0),
        event(pdrop=1.0),
        event(c={"_multi": 3}),
        event(c={"a": 1, "x": [{"a": 1}, {"a": 2}], "_multi": [{}]}),
    ],
)
def test_a_broken_line_is_named_by_its_number_alone(tmp_path, line):
    path = written(tmp_path, [event(), line])
    with pytest.raises(InvalidInput, match=r"^line 2: ") as error:
        read_dsjson(path)
    assert "pasta" not in str(error.value)
    with pytest.raises(InvalidInput, match="holds none"):
        read_dsjson(written(tmp_path, [{"RewardValue": 1}]))


def test_rows_are_thinned_to_the_largest_drop(tmp_path):
    """Unequal drops would weigh some decisions more; an even drop changes nothing."""
    kinds = [event("am", pdrop=0.0), event("pm", pdrop=0.5)]
    read = read_dsjson(written(tmp_path, kinds * 2000))
    counts = {time: sum(each["time"] == time for each in read.contexts) for time in ("am", "pm")}
    assert counts["pm"] == 2000  # all of those that were dropped most are kept
    assert abs(counts["am"] - 1000) < 6.2 * (2000 * 0.25) ** 0.5  # 1e-9 for a binomial
    assert read.left_out == {"thinned": 2000 - counts["am"]}
    even = read_dsjson(written(tmp_path, [event(pdrop=0.5)] * 10))
    assert len(even.actions) == 10


def test_one_id_with_other_features_is_another_item(tmp_path):
    other = {**ITEMS, "pasta": {"taste": "fresh", "level": 1}}
    read = read_dsjson(written(tmp_path, [event(), event(items=other)]))
    assert read.actions == ["pasta", "pasta (2)"]
    assert {read.ids[name] for name in read.actions} == {"pasta"}


def test_nested_features_have_names_with_dots():
    given = {"a": {"b": [1, 2.5], "c": None, "_hidden": 3}, "t": ["x", "y"], "m": [[1], [2]]}
    expected = {"a.b.0": 1, "a.b.1": 2.5, "t.x": True, "t.y": True, "m.0.0": 1, "m.1.0": 2}
    assert flat_features(given) == expected
    columns = feature_columns([{"n": 1, "w": "x"}, {"n": True, "w": 2}, {}])
    np.testing.assert_array_equal(columns["n"], [1.0, 1.0, np.nan])
    assert columns["w"].tolist() == ["x", "2", None]


def test_off_policy_estimates_agree_with_the_rewards_that_a_policy_would_have_had(tmp_path):
    read = read_dsjson(written(tmp_path, play()))
    plan = dc.Plan(
        actions=dc.Catalogue(ACTION, read.items_for(ACTION)),
        features=CONTEXT,
        budget=dc.Budget(8.0, delta=1e-5),
        outcome=dc.Reward(0, 1),
        imported=len(read.actions),
    )
    contexts = read.contexts_for(CONTEXT)
    learner = dc.Learner(plan, noise=dc.SeededNoise(3))
    learner.import_log(contexts, read.actions, reward=-read.costs)
    logged = plan, contexts, read.actions, 1 + read.costs, read.propensities
    for offers in (read.offers, None):
        found = dc.evaluate_offline(dc.Logs.of(*logged, offers=offers), learner)
        assert abs(found.ips.value - found.dr.value) < 0.05
        assert found.dr.high < 0.1  # the logging policy loses 0.5


PLAN = """\
outcome = { kind = "Reward", low = 0, high = 1 }
features = { kind = "Schema", fields = [
  { kind = "Category", name = "time", values = ["am", "pm"] },
  { kind = "Number", name = "user.age", low = 0, high = 100 }] }
budget = { epsilon = 4, delta = 1e-5 }
"""
NAMES = 'actions = ["salad", "pasta"]\n'
EMPTY = """\
[actions]
kind = "Catalogue"
ids = []
rows = []
schema = { kind = "Schema", fields = [{ kind = "Number", name = "level", low = 0, high = 10 }] }
"""


@pytest.mark.parametrize("actions", [NAMES, EMPTY], ids=["names", "items of the log"])
def test_a_log_is_imported(tmp_path, capsys, actions):
    written(tmp_path, play(300))
    (tmp_path / "plan.toml").write_text(PLAN + actions)
    words = [str(tmp_path / "plan.toml"), "--log", str(tmp_path / "log.dsjson")]
    assert main(["import", *words, "--out", str(tmp_path / "w"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 300
    assert dc.Released.load(tmp_path / "w.released.json").items[-1].records > 0
