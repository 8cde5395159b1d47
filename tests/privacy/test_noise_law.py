"""The noise that ridge oracles actually add: its scale, shape, independence and support.

Noise is what is left of a release without the statistics of its batch. The fixture ``draws`` has
OpenDP's own sampler where its source is exact, so its tests have a false-alarm rate of at most
1e-9 together. All other draws are seeded, and are judged at 1e-6.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2, norm, poisson

from discreet.audit import HOLDS
from discreet.audit.gaussian import releases_of
from discreet.audit.noise_law import (
    fourth_moment_limits,
    grid,
    magnitudes,
    no_gaps,
    no_value_twice,
    standard_draws,
    uncorrelated,
    uniform_bits,
    unrelated,
)
from discreet.audit.noise_sources import Trials
from discreet.audit.subjects import Subject
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.privacy import noise as noise_module
from discreet.privacy.noise import SecureNoise, SeededNoise
from seeded_sources import SOURCES as SEEDED

FALSE_ALARM = 1e-6
"""Of a statement about seeded draws: it holds or fails for good."""
SECRET = 1e-12
"""Of each of fewer than five hundred statements about draws that no one can repeat."""
RELEASES = 600
SUBJECTS = {
    name: Subject(name, "bandit", "general", 1.0)
    for name in ("ridge-structured", "ridge-pooled", "default-plan")
}
SOURCES = {"exact": SecureNoise(), "fast": SecureNoise(fast=True), "seeded": SeededNoise(seed=7)}


@pytest.fixture(scope="module", params=itertools.product(SUBJECTS, SOURCES), ids="-".join)
def draws(request):
    """Noise of many releases (600, k) in declared standard deviations: Gram, responses, sums."""
    name, source = request.param
    with SEEDED.begun(f"{name} {source}", secret=source == "exact"):
        drawn = standard_draws(SUBJECTS[name], SOURCES[source], RELEASES)
    assert drawn.shape[1] == 12 + 6 + 6 * (name == "default-plan")
    return drawn


def scale_accepted(values, scale=1.0):
    """Chi-square test of the variance, two-sided at SECRET."""
    square = float((values**2).sum()) / scale**2
    return chi2.ppf(SECRET / 2, values.size) <= square <= chi2.isf(SECRET / 2, values.size)


def test_scale_is_accepted_and_two_thirds_and_three_halves_are_rejected(draws):
    """Of each number: entries on and off the diagonal, responses, loss sums and counts."""
    for values in draws.T:
        assert scale_accepted(values)
        assert not scale_accepted(values, 2 / 3)
        assert not scale_accepted(values, 3 / 2)


def test_fourth_moment_is_that_of_a_gaussian(draws):
    """3, short of Laplace (6) or uniform (1.8) noise of the same variance."""
    low, high = fourth_moment_limits(draws.size, SECRET)
    assert low <= (draws**4).mean() <= high
    assert 1.8 < low < high < 6.0


def test_all_pairs_of_coordinates_are_independent_in_size_too(draws):
    """Correlations of draws and of magnitudes over all pairs, and of releases."""
    for values in (draws, magnitudes(draws)):
        assert uncorrelated(values, SECRET)
        assert unrelated(values[:-2:2] + values[2::2], values[1:-1:2], SECRET)


def test_limits_are_exceeded_as_rarely_as_stated():
    """Of 20,000 samples at 1 %, 200 within five deviations; few numbers, where no mean is normal.

    A bound of Chernoff keeps its rate with something to spare.
    """
    draws = np.random.default_rng(0).normal(size=(20_000, 2, 3))
    assert 130 < sum(not unrelated(*each, 0.01) for each in draws) < 270
    low, high = fourth_moment_limits(60, 0.01)
    fourth = (draws.reshape(2000, 60) ** 4).mean(axis=1)
    assert 0 < ((fourth < low) | (fourth > high)).sum() <= 20


def far(draw, count):
    """Draws beyond 3.5 deviations, in deviations of the scale of a Gram at ε = 1."""
    parts = [draw(GRAM_SCALE, min(100_000, count - n)) / GRAM_SCALE for n in range(0, count, 10**5)]
    drawn = np.concatenate(parts)
    assert drawn.size == count
    return np.abs(drawn[np.abs(drawn) > 3.5])


GRAM_SCALE = 5.936 * 2.0**41
GAUSSIAN = {
    "fast": lambda scale, n: SecureNoise(fast=True).gaussian("any", (n,), scale),
    "exact": lambda scale, n: SecureNoise().gaussian("any", (n,), scale),
}


def tail_accepted(sizes, deviations, count, alarm):
    """Counts of rare draws by Poisson's law, two-sided at ``alarm``."""
    expected, seen = 2 * count * norm.sf(deviations), int((sizes > deviations).sum())
    return poisson.cdf(seen, expected) > alarm / 2 and poisson.sf(seen - 1, expected) > alarm / 2


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("fast", 1_000_000),
        ("exact", 1_000_000),
        pytest.param("secret", 500_000, marks=[pytest.mark.long, pytest.mark.entropy]),
    ],
)
def test_tails_are_those_of_a_gaussian_and_have_no_gaps(source, count):
    """Beyond 4σ, 63 of a million draws are expected; beyond 5σ, 0.6.

    Secret draws of OpenDP: three statements with a false-alarm rate of 3e-11 together; draws that
    were cut off or stretched would pass with a lower one.
    """
    sizes = far(GAUSSIAN["fast" if source == "fast" else "exact"], count)
    alarm = 1e-11 if source == "secret" else FALSE_ALARM
    assert tail_accepted(sizes, 4.0, count, alarm)
    assert tail_accepted(sizes, 5.0, count, alarm)
    assert no_gaps(sizes, alarm)
    # What the same draws would show if they were cut off, or stretched by a quarter.
    assert not tail_accepted(np.minimum(sizes, 4.0), 4.0, count, alarm)
    assert not tail_accepted(1.25 * sizes, 4.0, count, alarm)


@pytest.mark.parametrize("source", GAUSSIAN)
def test_every_bit_below_the_noise_is_uniform(source):
    """Four bits at a time up to the size of the noise: single precision has zeros there."""
    drawn = GAUSSIAN[source](GRAM_SCALE, 20_000)
    assert uniform_bits(drawn, GRAM_SCALE, FALSE_ALARM)
    assert not uniform_bits(np.float32(drawn), GRAM_SCALE, FALSE_ALARM)
    assert not uniform_bits((drawn >> 30 << 30) + drawn % 1024, GRAM_SCALE, FALSE_ALARM)


@pytest.mark.parametrize("source", GAUSSIAN)
def test_no_noise_on_sums_occurs_twice(source):
    """Sums of two tables far apart have 2e5 likely values: 5,000 draws then agree 60 times."""
    drawn = GAUSSIAN[source](GRAM_SCALE, 5_000)[:, None]
    assert no_value_twice(drawn, GRAM_SCALE, FALSE_ALARM)
    assert not no_value_twice(drawn >> 25, GRAM_SCALE, FALSE_ALARM)


def test_no_normal_occurs_twice():
    """52 random bits each: two of 100,000 agree with probability 1e-6, of 24 bits for certain."""
    drawn = SecureNoise().normal("any", (100_000,))
    assert np.unique(drawn).size == drawn.size


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("source", ["exact", "fast"])
def test_noisy_statistics_lie_on_the_grid_and_their_low_bits_say_nothing(source, name):
    """Noise is whole numbers of grid steps; their lowest bits are uniform for any data."""
    assert grid(SUBJECTS[name], FALSE_ALARM, SOURCES[source]).verdict == HOLDS


@pytest.mark.parametrize("source", ["exact", "fast"])
def test_loss_sums_lie_on_the_grid_of_the_gram(source):
    """On a coarser one they would reveal the count."""
    subject = SUBJECTS["default-plan"]
    empty = releases_of(subject).batch()
    seen = subject.fit(empty, Trials(SOURCES[source], RELEASES)).statistics
    steps, scale = seen.outcome_sums * GRID**2, subject.calibrated.gram * GRID**2
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert uniform_bits(steps, scale, FALSE_ALARM)


def test_the_table_holds_the_discrete_gaussian():
    """Each probability of the table is within 2^−64 of the law, up to double precision."""
    thresholds = noise_module._table()
    top = len(thresholds) // 2
    assert (np.diff(thresholds.astype(object)) >= 0).all()
    k = np.arange(-top, top + 1)
    law = np.exp(-(k**2) / (2.0 * noise_module._TABLE_SCALE**2))
    cumulative = np.cumsum(law / law.sum())[:-1]
    np.testing.assert_allclose(thresholds.astype(float) * 2.0**-64, cumulative, atol=1e-14)


def test_sums_of_table_draws_are_discrete_gaussians():
    """The lemma of the fast sampler, by exact convolution on a small case: x + z·x'."""
    s = 6.0
    z = int(0.66 * s)
    k = np.arange(-400, 401)
    law = np.exp(-(k**2) / (2 * s**2))
    law /= law.sum()
    stretched = np.zeros(z * (len(k) - 1) + 1)
    stretched[::z] = law
    summed = np.convolve(law, stretched)
    centre = len(summed) // 2
    y = np.arange(-60, 61)
    total = math.hypot(s, z * s)
    target = np.exp(-(y**2) / (2 * total**2))
    target /= np.exp(-(np.arange(-2000, 2001) ** 2) / (2 * total**2)).sum()
    np.testing.assert_allclose(summed[centre - 60 : centre + 61], target, rtol=1e-12)


def test_fast_sampler_never_asks_for_less_noise(monkeypatch):
    """The scales of its parts add up, in squares, to at least the requested scale."""
    for scale in (2.0**20, 3.3e11, 5.936 * 2.0**41, 2.0**50):
        used = []

        class Weighed(int):
            """One draw that remembers by which multiplier it entered the sum."""

            def __rmul__(self, z):
                used.append(z)  # noqa: B023
                return self

        monkeypatch.setattr(noise_module, "_table_draws", lambda _: Weighed(1))
        noise_module._fast_gaussian(scale, 1)
        reached = noise_module._TABLE_SCALE
        for z in used:
            assert 1 <= z <= 0.66 * reached
            reached = math.hypot(reached, z * noise_module._TABLE_SCALE)
        assert scale <= reached <= scale * 1.01


@pytest.mark.parametrize("source", ["exact", "seeded"])
def test_ball_has_gamma_radius_and_no_direction(source):
    """‖v‖ ~ Gamma(p): sum of 4000 radii at FALSE_ALARM; each mean coordinate vanishes."""
    drawn = SOURCES[source].ball("any", (4000, 5))
    radii = np.linalg.norm(drawn, axis=-1)
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 2 * 5 * 4000) / 2
    assert low <= radii.sum() <= high
    # Coordinates of v: variance E[r²]/p = p(p+1)/p = p + 1.
    limit = norm.isf(FALSE_ALARM / 2 / 5) * math.sqrt(6 / 4000)
    assert np.abs(drawn.mean(axis=0)).max() < limit * 1.05
