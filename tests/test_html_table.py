"""What objects say of themselves, in text, in notebooks, as frames: public figures, escaped."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import discreet as dc
from discreet.text import html_table
from small_plans import small_plan
from wording import refused

NAMED = {"actions": ["<none>", "mail"], "outcome": dc.Reward(0, 50)}
PLAN = small_plan(**NAMED, budget=dc.Budget(4.0, 1e-5), first_batch=20)


@pytest.fixture(scope="module")
def learner():
    one = dc.Learner(PLAN)
    for _ in range(4):
        decisions = one.decide(np.full((20, 2), 0.4))
        one.observe(decisions.id, reward=np.full(20, 41.5))
    return one


@pytest.fixture(scope="module")
def run():
    x = np.random.default_rng(0).uniform(-0.7, 0.7, size=(400, 2))
    return dc.evaluate(PLAN, x, (x[:, 0] > 0).astype(int))


def test_a_learner_tells_plan_guarantee_and_status(learner):
    text = repr(learner)
    releases = len(learner.released.items)
    for words in (PLAN.digest[:12], "ε = 4, δ = 1e-05 for one decision", f"releases {releases}"):
        assert words in text
    assert str(learner.status()) in text
    assert "41.5" not in text


def test_a_learner_says_the_same_whatever_was_heard():
    said = set()
    for rewards in ([], [0.0] * 5, [50.0] * 5):
        one = dc.Learner(PLAN)
        one.decide(np.zeros((20, 2)))
        one.observe(list(range(len(rewards))), reward=rewards)
        said.add((repr(one), one._repr_html_(), repr(one.status())))
    assert len(said) == 1


def test_a_plan_tells_what_was_chosen():
    plan = dc.Plan(n_actions=3, features=dc.UnitBall(2), budget=dc.Budget.none(), growth=2.0)
    assert eval(repr(plan), vars(dc) | {"inf": float("inf")}) == plan
    many = dc.Schema([dc.Number(f"column {place}", 0, 1) for place in range(50)])
    assert len(repr(dc.Plan(n_actions=2, features=many, budget=dc.Budget.none()))) < 300


def test_releases_and_ledger_are_tables(learner):
    released, ledger = learner.released, learner.ledger
    assert "mean reward of the newest" in repr(released)
    table = released.to_frame()
    assert table["number"].tolist() == [item.number for item in released.items]
    assert table["mean_reward"].between(0, 50).all()
    assert len(PLAN.nothing_released().to_frame()) == 0
    assert ledger.to_frame()["epsilon"].max() == ledger.spent().epsilon
    assert f"charges {len(ledger.entries)}" in repr(ledger)
    assert "spent nothing" in repr(dc.Ledger(PLAN.budget))


def test_an_evaluation_tells_means_in_the_units_of_the_outcome(run):
    mean = 50 * (1 - run.loss)
    assert f"mean reward {mean:.2f}" in repr(run)
    table = run.to_frame()
    assert table["rounds"].tolist()[-1] == 400
    assert table["reward_so_far"].tolist()[-1] == pytest.approx(mean)
    assert table["best_fixed"].tolist()[0] == pytest.approx(50 * (1 - run.best_fixed))
    assert table["uniform"].tolist() == [pytest.approx(25.0)] * len(table)


def test_notebooks_get_one_escaped_table_each(learner, run):
    shown = [learner, PLAN, run, learner.released, learner.ledger]
    for each in shown:
        text = each._repr_html_()
        assert text.startswith("<table>")
        assert text.endswith("</table>")
        assert text.count("<table>") == 1
        assert "<none>" not in text
    assert "&lt;none&gt;" in learner._repr_html_()
    assert html_table("c", [("<b>", "&")]).count("&lt;b&gt;") == 1


def test_plots_return_axes_and_render(learner, run, tmp_path):
    curve = dc.privacy_curve("twonorm:60", groups=["a", "b"] * 30, epsilons=[1, 8], seeds=2)
    for each, words in (
        (run, "mean reward so far, in [0, 50]"),
        (learner.released, "mean reward"),
        (curve, "mean loss over 60 rounds"),
        (curve.by_group(), "mean loss of the group"),
    ):
        ax = Figure(layout="constrained").subplots()
        assert each.plot(ax) is ax
        assert words in ax.get_ylabel()
        ax.figure.savefig(tmp_path / "plot.png")
        assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    ax = run.plot(Figure().subplots())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"best fixed action, {50 * (1 - run.best_fixed):.2f}" in labels
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(50 * (1 - run.loss))


def test_plotting_without_matplotlib_or_releases_says_what_to_do(run, monkeypatch):
    with refused(dc.InvalidInput, "first release"):
        PLAN.nothing_released().plot()
    monkeypatch.setattr("discreet.validate.find_spec", lambda _: None)
    with refused(dc.InvalidInput, "matplotlib", "discreet[campaign]"):
        run.plot()
