"""Policy beside control: means, intervals that cover sampling and privacy noise, and words."""

import json
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.billboard.recomputation import recompute
from discreet.cli.main import main
from discreet.privacy.participation import Participation
from discreet.releases.lift import lift_of
from discreet.releases.lift_intervals import boundary, pooled, weights
from discreet.releases.part_losses import PartLosses
from discreet.releases.release import Predictor, Release
from discreet.schedule import Schedule
from libraries import NO_TORCH
from wording import refused

SHARE, LOSSES = 0.2, (0.3, 0.35)
LENGTHS = Schedule(16, 30_000, 1.5).lengths()[:-1]
ONCE = (1, 1)


def told(runs, sigma, seed=0, lengths=LENGTHS, losses=LOSSES, share=SHARE):
    """Noisy sums (runs, B, 2, 2) of 0/1 losses, their variances and slots."""
    rng, lengths = np.random.default_rng(seed), np.asarray(lengths)
    slots = np.stack([lengths - np.rint(lengths * share), np.rint(lengths * share)], -1)
    lost = rng.binomial(slots.astype(int), losses, size=(runs, *slots.shape))
    noise = sigma * rng.standard_normal((runs, *slots.shape, 2)) * [1.0, np.sqrt(4 / 3)]
    sums = np.stack([lost - slots / 2, np.broadcast_to(slots, lost.shape)], -1) + noise
    return sums, np.full((runs, len(lengths)), sigma**2), slots


@pytest.mark.parametrize("sigma", [0.0, 4.0, 20.0])
def test_intervals_cover_as_often_as_they_say(sigma):
    """2,000 runs: a coverage of 95 % is found within 2 % up to one time in 10⁴."""
    sums, variance, slots = told(2000, sigma)
    found = pooled(sums, variance, slots, ONCE, 0.95)
    away = np.abs(found.difference - (LOSSES[0] - LOSSES[1]))
    once = (away[:, -1] <= found.fixed[:, -1]).mean()
    assert 0.93 <= once <= 0.97
    assert ((away > found.anytime).any(axis=-1)).mean() <= 0.05
    assert (found.anytime > found.fixed).all()
    looked_often = (away > found.fixed).any(axis=-1).mean()
    assert looked_often > 0.1  # why the other interval is needed


def test_the_interval_is_not_wider_than_it_must_be():
    sums, variance, slots = told(500, 4.0)
    found = pooled(sums, variance, slots, ONCE, 0.95)
    spread = found.difference[:, -1].std()
    assert found.fixed[:, -1].mean() == pytest.approx(1.96 * spread, rel=0.1)


def test_losses_that_are_alike_within_a_person_are_covered():
    """Everybody has the same loss twice in each of three batches, which is the worst case."""
    rng, people, batches, records, share = np.random.default_rng(0), 600, 3, 2, 0.5
    lost = rng.random((1000, 2, people)) < np.array(LOSSES)[:, None]
    each = (lost.sum(-1) - people / 2.0) * records
    sums = np.stack([each, np.full_like(each, people * records)], -1)[:, None]
    sums = np.repeat(sums, batches, axis=1)
    slots = np.full((batches, 2), people * records * 2 * share)
    variance = np.zeros((1000, batches))
    careless = pooled(sums, variance, slots, ONCE, 0.95)
    careful = pooled(sums, variance, slots, (batches, records), 0.95)
    away = np.abs(careful.difference - (LOSSES[0] - LOSSES[1]))
    assert (away[:, -1] <= careless.fixed[:, -1]).mean() < 0.7
    assert 0.92 <= (away[:, -1] <= careful.fixed[:, -1]).mean() <= 0.98
    assert (away > careful.anytime).any(axis=-1).mean() <= 0.05


def test_void_slots_do_not_count_as_losses():
    slots = np.array([[8000.0, 2000.0]])
    sums = np.array([[[-0.2 * 4000, 4000.0], [0.1 * 500, 500.0]]])
    found = pooled(sums, np.zeros(1), slots, ONCE, 0.95)
    assert found.means[0].tolist() == pytest.approx([0.3, 0.6])
    full = pooled(sums * (slots / sums[..., 1])[..., None], np.zeros(1), slots, ONCE, 0.95)
    assert found.fixed[0] > 1.8 * full.fixed[0]


def test_small_batches_count_for_little_where_noise_is_large():
    slots = np.array([[80.0, 20.0], [8000.0, 2000.0]])
    plain, noisy = (weights(np.full(2, v), slots, 1) for v in (0.0, 400.0))
    assert plain[1] / plain[0] == pytest.approx(100.0)
    assert noisy[1] / noisy[0] > 1000.0


def test_the_boundary_is_that_of_a_normal_mixture():
    """E exp(λS − λ²V/2) over λ ~ N(0, 1/ρ²) crosses 1/α just at the boundary."""
    found, grid = boundary(500.0, 0.0, 1, 0.05), np.linspace(-6, 6, 200_001)
    rho2 = 1 / (0.02**2 * (2 * np.log(20) + np.log(1 + 2 * np.log(20))))
    scaled = grid / np.sqrt(rho2)
    mixture = np.exp(scaled * found - scaled**2 * 500.0 / 2 - grid**2 / 2) / np.sqrt(2 * np.pi)
    assert np.trapezoid(mixture, grid) == pytest.approx(20.0, rel=1e-6)


def releases(sums, variance=1.0):
    blank = Predictor(np.zeros((2, 3)), "clip")
    made = [
        Release(i, length, blank, part_losses=PartLosses(each, variance))
        for i, (each, length) in enumerate(zip(sums, LENGTHS, strict=False), start=1)
    ]
    return tuple(made)


def test_words_are_in_the_units_of_what_people_report():
    items = releases(told(1, 1.0)[0][0])
    lost = lift_of(items, SHARE)
    paid = lift_of(items, SHARE, outcome=dc.Reward(0, 100))
    assert lost.pooled.difference == pytest.approx(-0.05, abs=0.03)
    assert lost.text.startswith("policy 0.298, control 0.349, lift −0.050 ± 0.0")
    assert "lift +" in paid.text
    assert paid.table["lift_so_far"][-1] == pytest.approx(-100 * lost.pooled.difference)
    assert paid.table["policy"][-1] == pytest.approx(100 * (1 - lost.batches[-1].policy))
    assert lost.text.endswith("; valid at any time")
    assert "for one look at a time fixed before" in repr(lost)
    assert lost.verdict in repr(lost)
    assert "any time" in lost._repr_html_()
    assert len(lost.to_frame()) == len(LENGTHS)
    wider = lift_of(items, SHARE, Participation(3, 2))
    assert wider.pooled.anytime > lost.pooled.anytime


@pytest.mark.parametrize(("losses", "word"), [((0.1, 0.6), "helps"), ((0.6, 0.1), "worse")])
def test_the_verdict_names_the_better_part(losses, word):
    assert word in lift_of(releases(told(1, 1.0, losses=losses)[0][0]), SHARE).verdict
    assert "do not tell yet" in lift_of(releases(told(1, 50.0)[0][0], 2500.0)[:3], SHARE).verdict


def learned(tmp_path, **changes):
    rng = np.random.default_rng(0)
    parts = {"n_actions": 2, "features": dc.UnitBall(2), "budget": dc.Budget(4.0, 1e-5)}
    plan = dc.Plan(**{**parts, "control": dc.Control(0.25), **changes})
    learner = dc.Learner(plan, noise=dc.SecureNoise(fast=True))
    for _ in range(60):
        contexts = rng.uniform(-0.7, 0.7, size=(50, 2))
        made = learner.decide(contexts)
        learner.observe(made.id, (made.action_index != (contexts[:, 0] > 0)).astype(float))
    path = tmp_path / "released.json"
    learner.released.save(path)
    return learner, path


def test_a_saved_file_tells_the_same(tmp_path, capsys):
    learner, path = learned(tmp_path)
    found = dc.lift(learner.released)
    assert found.text == dc.lift(dc.Released.load(path)).text
    assert found.pooled.difference < -0.1
    assert main(["lift", str(path), "--plot", str(tmp_path / "lift.png")]) == 0
    printed = capsys.readouterr().out
    assert found.text in printed
    assert (tmp_path / "lift.png").stat().st_size > 10_000
    assert main(["lift", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["batches"][-1]["lift_so_far"] == pytest.approx(found.pooled.difference)
    for command in (["release", "verify"], ["ledger", "verify"]):
        assert main([*command, str(path)]) == 0


def test_a_release_with_other_parts_is_refused(tmp_path):
    released = learned(tmp_path, oracle=dc.PooledRidge(geometry="plain"))[0].released
    assert len(recompute(released)) == len(released.items)
    told = released.items[-1].part_losses
    for other in (None, replace(told, variance=told.variance * 1.01)):
        last = replace(released.items[-1], part_losses=other)
        with refused(dc.CorruptRelease, "part_losses of release", "ask its publisher"):
            recompute(replace(released, items=(*released.items[:-1], last)))
    with refused(dc.CorruptRelease, "must tell the losses of policy and control"):
        dc.lift(replace(released, items=(*released.items[:-1], last.__class__(1, 1, None))))
    document = released.items[-1].to_json()
    document["part_losses"]["sums"]["shape"] = [4]
    with refused(dc.CorruptRelease, "release must be a document"):
        Release.from_json(document)


def test_what_has_no_lift_is_refused(tmp_path, capsys):
    with refused(dc.InvalidInput, "with a control share", "Plan(control=Control(share=0.1))"):
        dc.lift(learned(tmp_path, control=None)[0].released)
    plan = dc.Plan(
        n_actions=2, features=dc.UnitBall(2), budget=dc.Budget.none(), control=dc.Control(0.25)
    )
    with refused(dc.InvalidInput, "nothing was released yet", "after the first release"):
        dc.lift(plan.nothing_released())
    with refused(dc.InvalidInput, "confidence must be", "got 1.5"):
        dc.lift(plan.nothing_released(), confidence=1.5)
    assert main(["lift", str(tmp_path / "none.json"), "--plot", "x.gif"]) == 2
    assert "plot must be" in capsys.readouterr().err


def test_evaluate_reports_the_lift_and_plays_the_control():
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-0.7, 0.7, size=(4000, 2))
    labels = (contexts[:, 0] > 0).astype(int)
    parts = {"n_actions": 2, "features": dc.UnitBall(2), "budget": dc.Budget(4.0, 1e-5)}
    plan = dc.Plan(**parts, control=dc.Control(0.25, 1))
    run = dc.evaluate(plan, contexts, labels)
    inside = dc.control.slots_in_control(0.25, run.released.schedule, np.arange(4000))
    assert (run.actions[inside] == 1).all()
    assert run.losses[~inside][-500:].mean() < 0.1
    assert run.lift.pooled.control == pytest.approx(run.losses[inside].mean(), abs=0.1)
    assert run.lift.text in repr(run)
    assert dc.evaluate(dc.Plan(**parts), contexts, labels).lift is None


def test_many_runs_at_once_play_the_control_as_one_run_does():
    from discreet.simulate.engine import run

    rng = np.random.default_rng(0)
    contexts = rng.uniform(-0.7, 0.7, size=(600, 2))
    labels = (contexts[:, 0] > 0).astype(int)
    parts = {"n_actions": 2, "features": dc.UnitBall(2)}
    plans = [
        dc.Plan(**parts, budget=dc.Budget(e, 1e-5), control=control)
        for e in (1.0, 8.0)
        for control in (None, dc.Control(0.25), dc.Control(0.5, 1))
    ]
    together = run(plans, plans[0].features.map(contexts), labels, [3, 4])
    for i, plan in enumerate(plans):
        for j, seed in enumerate((3, 4)):
            alone = dc.evaluate(plan, contexts, labels, seed=seed)
            assert together[i, j, -1] == pytest.approx(alone.loss, abs=1e-9)


@pytest.mark.torch
def test_torch_plays_the_control_too():
    pytest.importorskip("torch", reason=NO_TORCH)
    from discreet.simulate.engine import Machine, run

    contexts = np.random.default_rng(0).uniform(-0.7, 0.7, size=(600, 2))
    labels = (contexts[:, 0] > 0).astype(int)
    parts = {"n_actions": 2, "features": dc.UnitBall(2), "budget": dc.Budget(4.0, 1e-5)}
    plans = [dc.Plan(**parts, control=dc.Control(0.25, action)) for action in ("uniform", 1)]
    features = plans[0].features.map(contexts)
    mine, yours = (run(plans, features, labels, [3], Machine(on)) for on in ("numpy", "cpu"))
    np.testing.assert_allclose(yours, mine)


def test_releases_of_people_are_recomputed(tmp_path):
    users = {"unit": "user", "batches_per_user": 9, "records_per_batch": 1}
    plan = dc.Plan(
        n_actions=2,
        features=dc.UnitBall(2),
        budget=dc.Budget(4.0, 1e-5),
        control=dc.Control(0.25),
        **users,
    )
    learner = dc.Learner(plan, noise=dc.SecureNoise(fast=True), window=0)
    made = learner.decide(np.zeros((50, 2)), user=list(range(50)))
    learner.observe(made.id, np.ones(50))
    learner.decide(np.zeros(2), user="x")
    assert len(recompute(learner.released)) == 2
    assert len(dc.lift(learner.released).batches) == 2
    learner.released.save(tmp_path / "released.json")
    assert main(["ledger", "verify", str(tmp_path / "released.json")]) == 0


def test_people_of_a_simulation_are_in_one_part():
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-0.7, 0.7, size=(2000, 2))
    people = rng.integers(0, 300, size=2000)
    plan = dc.Plan(
        n_actions=2,
        features=dc.UnitBall(2),
        budget=dc.Budget(4.0, 1e-5),
        control=dc.Control(0.5, 1),
        **{"unit": "user", "batches_per_user": 4, "records_per_batch": 2},
    )
    run = dc.evaluate(plan, contexts, (contexts[:, 0] > 0).astype(int), users=people)
    assert run.lift.pooled.anytime > run.lift.pooled.fixed
    assert {entry.partition for entry in run.ledger.entries[:2]} == {
        "batch 1, policy",
        "batch 1, control",
    }
