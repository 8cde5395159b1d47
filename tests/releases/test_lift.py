"""Policy and control: means, intervals that cover sampling and privacy noise, and words."""

import json
import math
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.client.recomputation import recompute
from discreet.design.schedule import Schedule
from discreet.privacy.budget import ONCE, Participation
from discreet.releases.lift import Lift, LiftLine, lift_of
from discreet.releases.lift_intervals import (
    CONTROL,
    DIFFERENCE,
    POLICY,
    PooledSums,
    batch_factors,
    boundary,
    error_of_release,
    largest_variance,
    more_decisions,
)
from discreet.releases.release import Predictor, Release
from discreet.releases.statistics import PartLosses
from libraries import NO_TORCH
from small_plans import small_plan
from wording import refused

SHARE, LOSSES = 0.2, (0.3, 0.35)
LENGTHS = Schedule(16, 30_000, 1.5).lengths()[:-1]


def drawn(runs, sigma, seed=0, lengths=LENGTHS, losses=LOSSES, share=SHARE, answers=(1.0, 1.0)):
    """Noisy sums (runs, B, 2, 2) of 0/1 losses, their variances, slots, and counts."""
    rng, lengths = np.random.default_rng(seed), np.asarray(lengths)
    slots = np.stack([lengths - np.rint(lengths * share), np.rint(lengths * share)], -1)
    counts = rng.binomial(slots.astype(int), answers, size=(runs, *slots.shape))
    lost = rng.binomial(counts, losses)
    noise = sigma * rng.standard_normal((runs, *slots.shape, 2)) * [1.0, np.sqrt(4 / 3)]
    sums = np.stack([lost - counts / 2, counts], -1) + noise
    return sums, np.full((runs, len(lengths)), sigma**2), slots, counts


def pooled(sums, variance, slots, often=ONCE):
    """Mean losses up to each batch, their difference and half-widths of 95 % intervals."""
    found = PooledSums(sums, variance, slots, often)
    return SimpleNamespace(
        means=0.5 + found.excess,
        difference=found.excess @ DIFFERENCE,
        fixed=found.fixed(DIFFERENCE, 0.05),
        anytime=found.anytime(DIFFERENCE, 0.05),
    )


def coverage(found, true):
    """How often the interval for one look holds at the end, and that for any time ever fails."""
    finite = np.isfinite(found.anytime)
    away = np.where(finite, np.abs(found.difference - true), 0.0)
    return (away[:, -1] <= found.fixed[:, -1]).mean(), (away > found.anytime).any(axis=-1).mean()


@pytest.mark.parametrize("sigma", [0.0, 4.0, 20.0])
def test_intervals_cover_as_often_as_they_say(sigma):
    sums, variance, slots, _ = drawn(2000, sigma)
    found = pooled(sums, variance, slots)
    once, ever = coverage(found, LOSSES[0] - LOSSES[1])
    assert 0.93 <= once <= 0.97
    assert ever <= 0.05
    finite = np.isfinite(found.fixed)
    assert (found.anytime > found.fixed)[finite].all()
    away = np.abs(found.difference - (LOSSES[0] - LOSSES[1]))
    looked_often = (finite & (away > found.fixed)).any(axis=-1).mean()
    assert looked_often > 0.1  # why the other interval is needed


def test_the_interval_is_not_wider_than_it_must_be():
    for sigma, answers in ((4.0, 1.0), (4.0, 0.1), (20.0, 1.0)):
        sums, variance, slots, _ = drawn(1000, sigma, answers=(answers, answers))
        found = pooled(sums, variance, slots)
        spread = found.difference[:, -1].std()
        assert found.fixed[:, -1].mean() == pytest.approx(1.96 * spread, rel=0.1)


@pytest.mark.parametrize("rate", [0.1, 0.05, 0.02])
@pytest.mark.parametrize("losses", [(0.3, 0.5), (0.01, 0.01), (0.998, 0.998)])
def test_intervals_hold_where_few_people_answer(rate, losses):
    """A floor under the count would draw both means toward one half."""
    sums, variance, slots, _ = drawn(2000, 4.0, losses=losses, share=0.5, answers=(rate, rate))
    found = pooled(sums, variance, slots)
    once, ever = coverage(found, losses[0] - losses[1])
    assert once >= 0.93
    assert ever <= 0.05
    assert np.isfinite(found.fixed[:, -1]).mean() > 0.9
    assert np.nanmean(found.difference[:, -1]) == pytest.approx(losses[0] - losses[1], abs=0.02)


@pytest.mark.parametrize("longest", [None, 1_000])
def test_batches_that_differ_are_compared_each_with_itself(longest):
    """Simpson's paradox: equal parts in every batch, whose means fall while answers cross."""
    lengths = Schedule(16, 30_000, 1.5, longest).lengths()[:-1]
    steps = np.linspace(0.0, 1.0, len(lengths))[:, None]
    answers = np.concatenate([0.9 - 0.4 * steps, 0.5 + 0.4 * steps], -1)
    means = np.repeat(0.9 - 0.8 * steps, 2, axis=-1)
    sums, variance, slots, _ = drawn(1000, 4.0, 0, lengths, means, 0.5, answers)
    found = pooled(sums, variance, slots)
    once, ever = coverage(found, 0.0)
    assert once >= 0.93
    assert ever <= 0.05
    assert abs(found.difference[:, -1].mean()) < 0.002


def test_the_estimate_is_the_mean_of_the_differences_within_batches():
    """Without noise: weights a·c₀·c₁, and both means have the same weights."""
    sums, variance, slots, counts = drawn(3, 0.0, answers=(0.5, 0.7))
    found = pooled(sums, variance, slots)
    each = 0.5 + sums[..., 0] / np.where(counts, counts, 1)
    weight = batch_factors(sums, variance, slots, 1) * counts.prod(-1)
    for last in range(3, len(LENGTHS)):
        upto = slice(None, last + 1)
        mean = np.average(each[:, upto, 0] - each[:, upto, 1], axis=1, weights=weight[:, upto])
        np.testing.assert_allclose(found.difference[:, last], mean, rtol=1e-12)
        np.testing.assert_allclose(
            found.means[:, last, 1], np.average(each[:, upto, 1], axis=1, weights=weight[:, upto])
        )


def test_a_batch_has_no_say_in_its_own_factor():
    sums, variance, slots, _ = drawn(1, 4.0)
    before = batch_factors(sums, variance, slots, 1)
    sums[:, -3] *= 0.1
    after = batch_factors(sums, variance, slots, 1)
    np.testing.assert_array_equal(after[:, :-2], before[:, :-2])
    assert (after[:, -2:] != before[:, -2:]).all()


@pytest.mark.parametrize("delta", [0.0, -0.3, 0.7])
def test_the_variance_of_the_noise_is_the_one_derived(delta):
    """X − δY over every outcome of 2 and 3 losses and of noise with two values, exactly.

    The derivation uses second moments alone, which ±σ has as a Gaussian does.
    """
    counts, means, sigma = (2, 3), (0.25, 0.6), 1.5
    tau2, excess = 4 / 3 * sigma**2, np.array(means) - 0.5
    total = square = estimated = 0.0
    losses = list(product((0.0, 1.0), repeat=sum(counts)))
    signs = list(product((-1.0, 1.0), repeat=4))
    for lost in losses:
        chance = math.prod(
            m if y else 1 - m for y, m in zip(lost, (means[0],) * 2 + (means[1],) * 3, strict=True)
        )
        for one, two, three, four in signs:
            q0 = sum(lost[:2]) - 1.0 + one * sigma
            q1 = sum(lost[2:]) - 1.5 + two * sigma
            n0, n1 = counts[0] + three * math.sqrt(tau2), counts[1] + four * math.sqrt(tau2)
            value = q0 * n1 - q1 * n0 - delta * n0 * n1
            weight = chance / len(signs)
            total, square = total + weight * value, square + weight * value**2
            noise = sigma**2 * (n0**2 + n1**2)
            noise += tau2 * ((q0 - delta * n0) ** 2 + (q1 + delta * n1) ** 2)
            spread = [m * (1 - m) for m in means]
            estimated += weight * (noise + n0 * spread[0] * n1**2 + n1 * spread[1] * n0**2)
    c0, c1 = counts
    assert total == pytest.approx(c0 * c1 * (means[0] - means[1] - delta))  # unbiased
    v0, v1 = (m * (1 - m) for m in means)
    variance = c0 * v0 * (c1**2 + tau2) + c1 * v1 * (c0**2 + tau2) + sigma**2 * (c0**2 + c1**2)
    variance += tau2 * (c0**2 * (excess[0] - delta) ** 2 + c1**2 * (excess[1] + delta) ** 2)
    variance += 2 * sigma**2 * tau2 + delta**2 * tau2**2
    assert square - total**2 == pytest.approx(variance)
    # The estimate exceeds it by terms of second order: never below, and not by much.
    above = tau2 * (c0 * v0 + c1 * v1) + 2 * sigma**2 * tau2 + delta**2 * tau2**2
    assert estimated == pytest.approx(variance + above)


def test_the_half_width_for_one_look_is_that_of_the_formula():
    """One batch: z·√V/(N₀·N₁), V at the end of the interval where it is larger."""
    sums = np.array([[[-900.0, 4000.0], [-150.0, 1000.0]]])
    sigma2, (q, n) = 100.0, sums[0].T
    found = pooled(sums, np.array([sigma2]), np.array([[4000.0, 1000.0]]))
    z, tau2 = 1.959963984540054, 4 / 3 * sigma2
    difference = q[0] / n[0] - q[1] / n[1]
    assert found.difference[0] == pytest.approx(difference)
    other = n[::-1]
    known = (other**2 * n) ** 2 / (other**4 * n + 4 * tau2 * other**4)
    spread = 0.25 - (q / n * known / (known + z**2)) ** 2
    sampling = (n * other**2 * spread).sum()

    def noise(delta):
        moved = (q[0] - delta * n[0]) ** 2 + (q[1] + delta * n[1]) ** 2
        return sigma2 * (n**2).sum() + tau2 * moved

    half = found.fixed[0]
    ends = max(noise(difference - half), noise(difference + half))
    assert half == pytest.approx(z * math.sqrt(sampling + ends) / n.prod(), rel=1e-6)


def test_a_count_within_three_deviations_of_its_noise_tells_nothing():
    deviation = math.sqrt(4 / 3) * 10.0
    for count, finite in ((2.9, False), (3.1, True), (-5.0, False)):
        sums = np.array([[[0.0, 1e6], [0.0, count * deviation]]])
        found = pooled(sums, np.array([100.0]), np.array([[1e6, 1e3]]))
        assert bool(np.isfinite(found.fixed[0])) is finite
        assert bool(np.isfinite(found.anytime[0])) is finite
        assert bool(np.isfinite(found.means).all()) is finite
    silent = np.array([[[0.0, 100.0], [0.0, 0.0]]])  # no privacy, and nobody of the control answers
    assert np.isinf(pooled(silent, np.zeros(1), np.full((1, 2), 100.0)).fixed[0])


def test_rare_losses_are_not_taken_for_certain_ones():
    """No loss among 60 people: the mean is drawn toward ½ before its variance is taken."""
    assert largest_variance(-0.5, 20.0, 4.0) == 0.25 - (0.5 * 20 / 24) ** 2
    lengths = [120]
    sums, variance, slots, _ = drawn(4000, 0.0, lengths=lengths, losses=(0.0, 0.03), share=0.5)
    assert (sums[:, 0, 1, 0] == -30).mean() > 0.1  # nothing happened in the control
    found = pooled(sums, variance, slots)
    once, ever = coverage(found, -0.03)
    assert once >= 0.93
    assert ever <= 0.05


def people(runs, lengths, repeats, losses=LOSSES, seed=0):
    """The people of a smaller batch are in all larger ones, and have one loss: the worst case."""
    rng, sizes = np.random.default_rng(seed), np.asarray(lengths) // (2 * repeats)
    joining = np.diff(sizes, prepend=0)[:, None]
    ones = np.cumsum(rng.binomial(joining, losses, size=(runs, len(sizes), 2)), axis=1)
    counts = np.broadcast_to((sizes * repeats)[:, None], ones.shape)
    sums = np.stack([repeats * ones - counts / 2, counts], -1)
    return sums, np.zeros((runs, len(sizes))), 1.0 * counts[0]


@pytest.mark.parametrize("weights", [POLICY, CONTROL])
@pytest.mark.parametrize("sigma", [0.0, 4.0, 20.0])
def test_the_mean_of_one_part_is_within_its_interval(weights, sigma):
    sums, variance, slots, _ = drawn(1000, sigma, losses=(0.1, 0.15))
    found = PooledSums(sums, variance, slots, ONCE)
    true = np.array([0.1, 0.15]) @ weights - 0.5
    away = np.abs(found.excess @ weights - true)
    assert (away > found.fixed(weights, 0.05))[:, -1].mean() <= 0.07
    assert (away > found.anytime(weights, 0.05)).any(axis=-1).mean() <= 0.05


@pytest.mark.parametrize("outcome", [dc.Loss(), dc.Reward(0, 50), dc.Reward(10, 20)])
@pytest.mark.parametrize(("losses", "share"), [((0.3, 0.35), 0.2), ((0.8, 0.9), 0.5)])
def test_the_relative_lift_and_the_gain_are_within_their_intervals(outcome, losses, share):
    """After every release of every run together, in at least 95 % of the runs."""
    runs = 300
    sums, _, _, counts = drawn(runs, 4.0, losses=losses, share=share)
    policy, control = (outcome.value_of(each) for each in losses)
    true = (policy - control) / control
    missed = {"relative": 0, "gained": 0}
    for run in range(runs):
        table = lift_of(releases(sums[run], 16.0), share, outcome=outcome).table
        better = outcome.error_of(losses[1] - losses[0]) * counts[run, :, 0].cumsum()
        for name, value in (("relative", np.full(len(better), true)), ("gained", better)):
            low, high = table[f"{name}_low"], table[f"{name}_high"]
            missed[name] += bool(((value < low) | (value > high)).any())
    assert max(missed.values()) <= 0.05 * runs
    assert np.isfinite(table["relative_so_far"][-1])
    assert table["relative_so_far"][-1] == pytest.approx(true, abs=0.25)


def test_the_relative_lift_is_no_claim_beyond_the_verdict():
    """Its difference has a smaller share of the error, so that its interval is the wider one."""
    sums = drawn(200, 4.0, losses=(0.3, 0.33))[0]
    claims = 0
    for run in sums:
        found = lift_of(releases(run, 16.0), SHARE)
        for line in found.so_far:
            low, high = found.relative(line)[1:]
            claims += bool(low > 0 or high < 0)
            assert not (low > 0 or high < 0) or line.helps is not None
            assert line.known is False or line.joint > line.anytime
    assert claims > 100


def test_a_control_that_may_be_zero_has_no_per_cent():
    sums = np.array([[[900.0, 2000.0], [998.0, 2000.0]]])
    found = lift_of(releases(sums, 100.0), 0.5, outcome=dc.Reward(0, 50))
    assert math.isnan(found.relative(found.pooled).value)
    assert "relative lift not known yet (the control's mean" in found.relative_text
    assert (
        json.loads(json.dumps(found.to_json(), allow_nan=False))["batches"][0]["relative_low"]
        is None
    )
    assert lift_of(releases(sums, 100.0), 0.5).relative_text.startswith(
        "relative lift −4.9\N{NO-BREAK SPACE}% ("
    )


def test_the_gain_counts_answers_and_has_one_sign_for_better():
    sums = np.array([[[-800.0, 8000.0], [-50.0, 1000.0]]])  # losses of 0.4 and 0.45
    for outcome, word in ((dc.Loss(), "saved"), (dc.Reward(0, 50), "gained")):
        found = lift_of(releases(sums, 0.0), 0.1, outcome=outcome)
        span = outcome.high - outcome.low
        assert found.gained(found.pooled).value == pytest.approx(0.05 * 8000 * span)
        assert f"; {word} so far {400 * span:,.0f} (" in found.relative_text


@pytest.mark.parametrize("sigma", [0.0, 10.0])
def test_the_forecast_is_what_more_batches_of_the_same_kind_show(sigma):
    lengths = [2000] * 40
    sums, variance, slots, _ = drawn(1, sigma, lengths=lengths, answers=(0.5, 0.5))
    sums, variance = sums[0], variance[0]
    first, width = slice(None, 8), pooled(sums, variance, slots).anytime
    forecast = more_decisions(sums[first], variance[first], slots[first], ONCE, 0.95, slots[8:])
    reached = 2000 * (1 + int(np.argmax(width <= width[7] / 2)) - 8)
    assert forecast == pytest.approx(reached, rel=0.15)
    assert forecast > 3 * 8 * 2000 * 0.8, "four times as many decisions, about"
    assert more_decisions(sums[first], variance[first], slots[first], ONCE, 0.95, slots[:2]) is None


@pytest.mark.parametrize("lengths", [[3600] * 3, LENGTHS[-12:]])
def test_losses_that_are_alike_within_a_person_are_covered(lengths):
    repeats = 2
    sums, variance, slots = people(1000, lengths, repeats)
    careless = pooled(sums, variance, slots)
    careful = pooled(sums, variance, slots, Participation(len(lengths), repeats))
    true = LOSSES[0] - LOSSES[1]
    assert coverage(careless, true)[0] < 0.7
    once, ever = coverage(careful, true)
    assert 0.93 <= once <= 0.97
    assert ever <= 0.05


def test_people_of_a_small_batch_are_few_of_a_large_one():
    """Nested people with equal losses of mean ½: the bound is their variance, exactly."""
    lengths = [400, 600, 900, 1350, 2025]
    sums, variance, slots = people(1, lengths, 1)
    sums[..., 0] = 0.0
    found = pooled(sums, variance, slots, Participation(99))
    each = (batch_factors(sums, variance, slots, 1)[..., None] * sums[..., ::-1, 1])[0]
    for last in range(len(lengths)):
        sizes = sums[0, : last + 1, 0, 1].astype(int)
        exact = 0.0
        for part in (0, 1):
            weight = np.zeros(sizes.max())
            for size, one in zip(sizes, each[: last + 1, part], strict=True):
                weight[:size] += one
            exact += 0.25 * (weight**2).sum()
        pairs = (each[: last + 1] * sums[0, : last + 1, :, 1])[:, 0].sum()
        assert found.fixed[0, last] == pytest.approx(1.95996398 * math.sqrt(exact) / pairs)
    fewer = pooled(sums, variance, slots, Participation(2))
    alone = pooled(sums, variance, slots)
    assert fewer.fixed[0, -1] == pytest.approx(math.sqrt(2.0) * alone.fixed[0, -1])


def test_the_boundary_is_that_of_a_normal_mixture():
    """E exp(λS − λ²V/2) over λ ~ N(0, 1/ρ²) crosses 1/α just at the boundary."""
    found, grid = boundary(500.0, 0.05), np.linspace(-6, 6, 200_001)
    rho2 = 1 / (0.02**2 * (2 * np.log(20) + np.log(1 + 2 * np.log(20))))
    scaled = grid / np.sqrt(rho2)
    mixture = np.exp(scaled * found - scaled**2 * 500.0 / 2 - grid**2 / 2) / np.sqrt(2 * np.pi)
    assert np.trapezoid(mixture, grid) == pytest.approx(20.0, rel=1e-6)


def test_looks_at_people_who_return_share_one_error():
    """All looks together spend α, and each interval is that of its share of α."""
    numbers = np.arange(1, 1001)
    assert error_of_release(numbers, 0.05).sum() == pytest.approx(0.05 * 1000 / 1010, rel=1e-12)
    sums, variance, slots = people(1, [1000] * 4, 1)
    sums[..., 0] = 0.0  # means of one half, so that both half-widths have one variance
    found = pooled(sums, variance, slots, Participation(4))
    from scipy.special import ndtri

    ratio = -ndtri(error_of_release(numbers[:4], 0.05) / 2) / 1.959963984540054
    np.testing.assert_allclose(found.anytime[0] / found.fixed[0], ratio, rtol=1e-9)


def releases(sums, variance=1.0):
    blank = Predictor(np.zeros((2, 3)), "clip")
    made = [
        Release(i, length, blank, part_losses=PartLosses(each, variance))
        for i, (each, length) in enumerate(zip(sums, LENGTHS, strict=False), start=1)
    ]
    return tuple(made)


def test_words_are_in_the_units_of_what_people_report():
    items = releases(drawn(1, 1.0)[0][0])
    lost, paid = (lift_of(items, SHARE, outcome=each) for each in (dc.Loss(), dc.Reward(0, 100)))
    assert lost.pooled.difference == pytest.approx(-0.05, abs=0.03)
    assert lost.text.startswith("policy 0.300, control 0.356, lift −0.056 ± 0.0")
    assert "lift +" in paid.text
    assert paid.table["lift_so_far"][-1] == pytest.approx(-100 * lost.pooled.difference)
    assert paid.table["policy"][-1] == pytest.approx(100 * (1 - lost.batches[-1].policy))
    assert lost.verdict in repr(lost)
    assert len(lost.to_frame()) == len(LENGTHS)


def test_the_result_says_what_it_assumes():
    """A plan with the unit "decision" cannot know whether people return."""
    items = releases(drawn(1, 1.0)[0][0])
    decisions, people = lift_of(items, SHARE), lift_of(items, SHARE, Participation(3, 2))
    assert people.pooled.anytime > decisions.pooled.anytime
    assert "the intervals are too narrow" in decisions.assumes
    assert people.assumes.startswith("people are independent of each other")
    for found in (decisions, people):
        assert found.to_json()["assumes"] == found.assumes
        assert found.assumes in repr(found)


def test_what_cannot_be_told_yet_is_not_drawn():
    items = releases(drawn(1, 50.0)[0][0], 2500.0)[:3]
    found = lift_of(items, SHARE, outcome=dc.Reward(0, 100))
    assert math.isinf(found.pooled.anytime)
    assert math.isnan(found.pooled.policy)
    assert found.pooled.helps is None
    assert found.text.startswith("lift is not known yet")
    assert found.verdict == "it is not known yet whether the policy helps"
    assert "nan" not in repr(found)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["batches"][-1]["half_width_any_time"] is None
    assert document["batches"][-1]["policy_so_far"] is None
    assert document["batches"][-1]["records"] == LENGTHS[2]
    found.plot()


def test_a_mean_is_shown_within_its_range_and_the_difference_as_it_is():
    """Cutting off one noisy mean would move the difference out of its interval."""
    sums = np.array([[[-5100.0, 10_000.0], [-5060.0, 10_000.0]]])
    found = lift_of(releases(sums, 100.0), 0.5)
    assert found.pooled.difference == pytest.approx(-0.004)
    assert found.text.startswith("policy 0.000, control 0.000, lift −0.004")
    assert found.table["policy"].tolist() == [0.0]
    assert found.table["lift_so_far"] == pytest.approx([-0.004])


def test_the_verdict_is_that_of_the_interval_for_any_time():
    """Whoever looks after every release would be misled by the narrower one."""
    line = LiftLine(1, 100, policy=0.4, control=0.5, fixed=0.05, anytime=0.2)
    assert line.helps is None
    assert "do not tell yet" in Lift((line,), (line,), 0.95).verdict
    assert replace(line, anytime=0.09).helps


BUDGET = dc.Budget(4.0, 1e-5)


def learned(**changes):
    """The releases of a learner whose policy helps."""
    rng = np.random.default_rng(0)
    plan = small_plan(**{"budget": BUDGET, "control": dc.Control(0.25), **changes})
    learner = dc.Learner(plan, noise=dc.SecureNoise(fast=True))
    for _ in range(60):
        contexts = rng.uniform(-0.7, 0.7, size=(50, 2))
        made = learner.decide(contexts)
        learner.observe(made.id, (made.action_index != (contexts[:, 0] > 0)).astype(float))
    return learner.released


def test_a_saved_file_has_the_same_lift(tmp_path, capsys):
    released, path = learned(), tmp_path / "released.json"
    released.save(path)
    found = dc.lift(released)
    assert found.text == dc.lift(dc.Released.load(path)).text
    assert found.pooled.difference < -0.1
    assert main(["lift", str(path), "--plot", str(tmp_path / "lift.png")]) == 0
    printed = capsys.readouterr().out
    assert found.text in printed
    assert f"Assumed: {found.assumes}." in printed
    assert "–" in printed  # the first batches are within their noise
    assert (tmp_path / "lift.png").stat().st_size > 10_000
    assert main(["lift", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["batches"][-1]["lift_so_far"] == pytest.approx(found.pooled.difference)
    for command in (["release", "verify"], ["ledger", "verify"]):
        assert main([*command, str(path)]) == 0


def test_a_release_with_other_parts_is_refused():
    released = learned(oracle=dc.PooledRidge(geometry="plain"))
    assert len(recompute(released)) == len(released.items)
    parts = released.items[-1].part_losses
    for other in (replace(parts, variance=parts.variance * 1.01), None):
        last = replace(released.items[-1], part_losses=other)
        wrong = replace(released, items=(*released.items[:-1], last))
        with refused(dc.CorruptRelease, "part_losses of release", "ask its publisher"):
            recompute(wrong)
    with refused(dc.CorruptRelease, "must tell the losses of policy and control"):
        dc.lift(wrong)


def test_a_plan_without_a_lift_is_refused(tmp_path, capsys):
    with refused(dc.InvalidInput, "with a control share", "Plan(control=Control(share=0.1))"):
        dc.lift(learned(control=None))
    nothing = small_plan(control=dc.Control(0.25)).nothing_released()
    with refused(dc.InvalidInput, "nothing was released yet", "after the first release"):
        dc.lift(nothing)
    with refused(dc.InvalidInput, "confidence must be", "got 1.5"):
        dc.lift(nothing, confidence=1.5)
    assert main(["lift", str(tmp_path / "none.json"), "--plot", "x.gif"]) == 2
    assert "plot must be" in capsys.readouterr().err


def labelled(rows):
    """Contexts, and the better action of each."""
    contexts = np.random.default_rng(0).uniform(-0.7, 0.7, size=(rows, 2))
    return contexts, (contexts[:, 0] > 0).astype(int)


def test_evaluate_reports_the_lift_and_plays_the_control():
    run = dc.evaluate(small_plan(budget=BUDGET, control=dc.Control(0.25, 1)), *labelled(4000))
    inside = dc.design.control.slots_in_control(0.25, run.released.schedule, np.arange(4000))
    assert (run.actions[inside] == 1).all()
    assert run.losses[~inside][-500:].mean() < 0.1
    assert run.lift.pooled.control == pytest.approx(run.losses[inside].mean(), abs=0.1)
    assert run.lift.text in repr(run)
    assert dc.evaluate(small_plan(budget=BUDGET), *labelled(400)).lift is None


@pytest.mark.torch
def test_torch_plays_the_control_too():
    pytest.importorskip("torch", reason=NO_TORCH)
    from discreet.simulate.engine import Machine, run

    contexts, labels = labelled(600)
    controls = dc.Control(0.25, "uniform"), dc.Control(0.25, 1)
    plans = [small_plan(budget=BUDGET, control=each) for each in controls]
    given = plans, plans[0].features.map(contexts), labels, [3]
    np.testing.assert_allclose(run(*given, Machine("cpu")), run(*given, Machine("numpy")))


def test_people_of_a_simulation_are_in_one_part():
    people = np.random.default_rng(1).integers(0, 300, size=2000)
    often = {"unit": "user", "batches_per_user": 4, "records_per_batch": 2}
    plan = small_plan(budget=BUDGET, control=dc.Control(0.5, 1), **often)
    run = dc.evaluate(plan, *labelled(2000), users=people)
    assert run.lift.pooled.anytime > run.lift.pooled.fixed
    parts = {entry.partition for entry in run.ledger.entries[:2]}
    assert parts == {"batch 1, policy", "batch 1, control"}
