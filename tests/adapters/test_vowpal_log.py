"""Logs for Vowpal Wabbit, read by the real one: the same features, labels and estimates."""

import numpy as np
import pytest
import vowpalwabbit
from vowpalwabbit import LabelType

import discreet as dc
from discreet.adapters.vowpal_log import vw_lines, vw_log, write_vw
from discreet.data.decision_logs import read_vw
from discreet.errors import InvalidInput

SINGLE = 2e-6
"""Vowpal Wabbit computes in single precision."""
CONSTANT = 128
"""The namespace of its own constant."""
ROWS = 40
rng = np.random.default_rng(0)
CONTEXTS = [
    {"age": float(age), "device": device}
    for age, device in zip(
        rng.uniform(0, 100, ROWS), rng.choice(["phone", "desk top"], ROWS), strict=True
    )
]
SCHEMA = dc.Schema([dc.Number("age", 0, 100), dc.Category("device", ["phone", "desk top"])])
LOSSES, CHANCES = rng.uniform(size=ROWS), rng.uniform(0.2, 1.0, ROWS)
NAMED = dc.Plan(actions=["no mail", "mail", "call"], features=SCHEMA, budget=dc.Budget.none())
ITEMS = {"Brazil": [0.5, 0.1], "La jetée": [-0.5, 0.3], "M": [0.2, -0.9], "Alien": [0.3, 0.3]}
FILMS = dc.Plan(
    actions=dc.Catalogue(dc.UnitBall(2), ITEMS), features=SCHEMA, budget=dc.Budget.none()
)


def played(plan, sizes=None):
    """Logs with offers of different lengths where sizes are given."""
    names = [*plan.actions]
    if sizes is None:
        return dc.Logs.of(plan, CONTEXTS, rng.choice(names, ROWS), LOSSES, CHANCES)
    offers = [[*rng.permutation(names)[: sizes[row % len(sizes)]]] for row in range(ROWS)]
    actions = [str(rng.choice(offer)) for offer in offers]
    return dc.Logs.of(plan, CONTEXTS, actions, LOSSES, CHANCES, offers)


def parsed(text, flags):
    """Return what the real Vowpal Wabbit reads: for each example its tag, values and label."""
    workspace = vowpalwabbit.Workspace(f"--quiet {flags}")
    blocks = text.split("\n\n") if "adf" in flags else text.splitlines()
    found = []
    for block in filter(str.strip, blocks):
        made = workspace.parse(block.strip().splitlines() if "adf" in flags else block)
        examples = made if isinstance(made, list) else [made]
        found.append([(each.get_tag(), _values(each), _label(each)) for each in examples])
        workspace.finish_example(made)
    workspace.finish()
    return found


def _values(example):
    spaces = range(example.num_namespaces())
    return [
        example.feature_weight(space, place)
        for space in spaces
        if example.namespace(space) != CONSTANT
        for place in range(example.num_features_in(space))
    ]


def _label(example):
    costs = example.get_label(LabelType.CONTEXTUAL_BANDIT).costs
    known = [each for each in costs if each.probability > 0]  # −1 is on shared lines
    return [(each.action, each.cost, each.probability) for each in known]


def test_lines_of_the_kind_cb():
    logs = played(NAMED)
    text = "".join(vw_lines(vw_log(logs, NAMED)))
    for row, ((_, values, label),) in enumerate(parsed(text, "--cb 3")):
        kept = logs.features[row, 1:][logs.features[row, 1:] != 0]
        np.testing.assert_allclose(values, kept, rtol=SINGLE)
        ((action, *logged),) = label
        assert action == logs.actions[row] + 1
        np.testing.assert_allclose(logged, [LOSSES[row], CHANCES[row]], rtol=SINGLE)


@pytest.mark.parametrize("plan", [NAMED, FILMS], ids=["named", "catalogue"])
@pytest.mark.parametrize("sizes", [(2, 3), (3,)], ids=["different", "equal"])
def test_blocks_of_the_kind_cb_adf(plan, sizes):
    logs = played(plan, sizes)
    made = vw_log(logs, plan)
    found = parsed("".join(vw_lines(made, adf=True)), "--cb_adf")
    assert len(found) == ROWS
    for row, ((_, context, _), *actions) in enumerate(found):
        kept = logs.features[row, 1:][logs.features[row, 1:] != 0]
        np.testing.assert_allclose(context, kept, rtol=SINGLE)
        assert [tag for tag, _, _ in actions] == [*made.offers[row]]
        for item, (_, values, label) in zip(made.offers[row], actions, strict=True):
            np.testing.assert_allclose(values, [*made.items[item].values()], rtol=SINGLE)
            assert bool(label) == (item == made.played[row])
        ((_, *logged),) = [each for _, _, label in actions for each in label]
        np.testing.assert_allclose(logged, [LOSSES[row], CHANCES[row]], rtol=SINGLE)


def test_a_catalogue_goes_out_and_comes_back(tmp_path):
    logs = played(FILMS, (2, 3))
    write_vw(vw_log(logs, FILMS), tmp_path / "films.vw", adf=True)
    with pytest.raises(InvalidInput, match="adf must be True"):
        list(vw_lines(vw_log(logs, FILMS)))
    read = read_vw(tmp_path / "films.vw", tags=True)
    assert set(read.items) == {"Brazil", "La_jetée", "M", "Alien"}
    again = dc.Plan(
        actions=dc.Catalogue(dc.UnitBall(2), read.item_vectors()),
        features=dc.UnitBall(len(read.columns)),
        budget=dc.Budget.none(),
    )
    back = dc.Logs.of(again, read.contexts, read.played, read.costs, read.propensities, read.offers)
    np.testing.assert_array_equal(back.actions, logs.actions)
    np.testing.assert_array_equal(back.losses, logs.losses)


def test_both_estimate_the_same_policy_alike(tmp_path):
    """An untrained Vowpal Wabbit always plays its first action; its average loss is then the
    inverse-propensity estimate of that policy."""
    logs = played(NAMED)
    path = tmp_path / "log.vw"
    write_vw(vw_log(logs, NAMED), path)
    flags = f"--quiet --cb 3 --cb_type ips -t -d {path}"
    with vowpalwabbit.Workspace(flags) as workspace:
        average = workspace.get_sum_loss() / workspace.get_weighted_examples()
    expected = dc.evaluate_offline(logs, lambda x: np.tile([1.0, 0.0, 0.0], (len(x), 1)))
    assert average == pytest.approx(expected.ips.value, rel=1e-5)


def test_logs_of_another_plan_are_refused():
    with pytest.raises(InvalidInput, match="logs must have the plan's 5 features"):
        vw_log(dc.Logs(np.ones((2, 3)), np.array([0, 1]), np.ones(2), np.ones(2)), NAMED)
