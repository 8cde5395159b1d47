"""The noise that ridge oracles actually add: its scale, shape, independence and support.

Draws are the difference between the statistics before and after ``noisy_gram`` and ``noisy_sums``
inside a fit. The fixtures ``draws`` and ``many`` have
OpenDP's own sampler where their source is exact, so their tests have a false-alarm rate of at most
1e-10 together. All other draws are seeded, and are judged at 1e-6.
"""

import itertools
import math
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.stats import chi2, norm, poisson

from discreet.audit.noise_law import (
    fourth_moment_limits,
    magnitudes,
    no_gaps,
    no_value_twice,
    uncorrelated,
    uniform_bits,
    unrelated,
)
from discreet.audit.noise_sources import Trials
from discreet.batch import Batch
from discreet.features.unit_ball import with_bias
from discreet.oracles import PooledRidge, Problem, Ridge
from discreet.oracles.mechanisms import perturb
from discreet.privacy import noise as noise_module
from discreet.privacy.budget import Budget
from discreet.privacy.noise import SecureNoise, SeededNoise
from seeded_sources import SOURCES as SEEDED

FALSE_ALARM = 1e-6
"""Of a statement about seeded draws: it holds or fails for good."""
SECRET = 1e-12
"""Of each of fewer than a hundred statements about draws that nobody can repeat."""
A, P = 3, 8
FITS = 24
ORACLES = {
    "ridge": (Ridge(), 1.0),
    "plain": (PooledRidge(response_weight=2.0, geometry="plain"), 2.0),
    "pooled": (PooledRidge(response_weight=2.0), 2.0),
}
"""Each with its weight ω: responses carry σ/ω."""
SOURCES = {"exact": SecureNoise(), "fast": SecureNoise(fast=True), "seeded": SeededNoise(seed=7)}


def batch_of(n=40, seed=0):
    rng = np.random.default_rng(seed)
    observed = np.eye(A, dtype=bool)[rng.integers(A, size=n)]
    return Batch(with_bias(rng.normal(size=(n, P - 1))), rng.random((n, A)), observed)


def calibrated(oracle):
    return oracle.calibrate(Problem(A, P), Budget(1.0, 1e-5))


@contextmanager
def statistics():
    """Statistics of each fit before and after their noise, by part, and their unit."""
    kept = {"gram": [], "response": [], "told": []}
    noisy_gram, noisy_sums = perturb.noisy_gram, perturb.noisy_sums

    def spy_gram(moments, *rest):
        noisy, unit = noisy_gram(moments, *rest), moments.gram_unit
        kept["gram"].append((moments.gram * unit, noisy, unit))
        return noisy

    def spy_sums(name, sums, axes, sigma, unit, noise):
        noisy = noisy_sums(name, sums, axes, sigma, unit, noise)
        kept[name].append((sums * unit, noisy, unit))
        return noisy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perturb, "noisy_gram", spy_gram)
        patch.setattr(perturb, "noisy_sums", spy_sums)
        yield kept


def added(oracle, source, batch):
    """Noise of several fits in natural units: gram (fits, A, P, P), response (fits, A, P), sums."""
    oracle = calibrated(oracle)
    with statistics() as kept:
        for number in range(1, FITS + 1):
            oracle.fit(batch, source.for_batch(number))
    noise = {part: [noisy - sums for sums, noisy, _ in each] for part, each in kept.items()}
    return {part: np.stack(values) for part, values in noise.items() if values}, oracle.gram


@pytest.fixture(scope="module", params=itertools.product(ORACLES, SOURCES), ids="-".join)
def draws(request):
    """Standardised draws by kind: in svec coordinates everything has standard deviation σ.

    σ is that of the Gram and of what is told, and responses are taken times ω: one joint release.
    """
    name, source = request.param
    oracle, weight = ORACLES[name]
    with SEEDED.begun(f"{name} {source}", secret=source == "exact"):
        noise, sigma = added(oracle, SOURCES[source], batch_of())
    rows, columns = np.triu_indices(P)
    packed = noise["gram"][..., rows, columns]
    off = rows != columns
    assert ("told" in noise) == (name == "pooled")
    return {
        "diagonal": packed[..., ~off] / sigma,
        "off-diagonal": packed[..., off] * math.sqrt(2.0) / sigma,
        "response": weight * noise["response"] / sigma,
        **({"told": noise["told"] / sigma} if "told" in noise else {}),
    }


def scale_accepted(values, scale=1.0):
    """Chi-square test of the variance, two-sided at SECRET."""
    square = float((values**2).sum()) / scale**2
    return chi2.ppf(SECRET / 2, values.size) <= square <= chi2.isf(SECRET / 2, values.size)


@pytest.mark.parametrize("kind", ["diagonal", "off-diagonal", "response"])
def test_scale_is_accepted_and_two_thirds_and_three_halves_are_rejected(draws, kind):
    assert scale_accepted(draws[kind])
    assert not scale_accepted(draws[kind], 2 / 3)
    assert not scale_accepted(draws[kind], 3 / 2)


def test_fourth_moment_is_that_of_a_gaussian(draws):
    """3, short of Laplace (6) or uniform (1.8) noise of the same variance."""
    values = np.concatenate([part.reshape(-1) for part in draws.values()])
    low, high = fourth_moment_limits(values.size, SECRET)
    assert low <= (values**4).mean() <= high
    assert 1.8 < low < high < 6.0


def test_limits_are_exceeded_as_rarely_as_stated():
    """Of 20,000 samples at 1 %, 200 within five deviations; few numbers, where no mean is normal.

    A bound of Chernoff keeps its rate with something to spare.
    """
    draws = np.random.default_rng(0).normal(size=(20_000, 2, 3))
    assert 130 < sum(not unrelated(*each, 0.01) for each in draws) < 270
    low, high = fourth_moment_limits(60, 0.01)
    fourth = (draws.reshape(2000, 60) ** 4).mean(axis=1)
    assert 0 < ((fourth < low) | (fourth > high)).sum() <= 20


def chained(chains, length, alarm):
    """Limit of Σ x_i·x_{i+1} over chains of independent normals, two-sided, by Chernoff's bound.

    The sum is a quadratic form with eigenvalues cos(k·π/(length + 1)).
    """
    eigenvalues = np.cos(np.pi * np.arange(1, length + 1) / (length + 1))
    t = np.linspace(0.001, 0.499, 499)
    moments = -0.5 * chains * np.log1p(-2.0 * t[:, None] * eigenvalues).sum(axis=-1)
    return float(((moments + math.log(2.0 / alarm)) / t).min())


def test_entries_and_calls_are_independent(draws):
    """Products of neighbouring entries, and of the same entry in two fits, average to zero."""
    for values in draws.values():
        flat = values.reshape(FITS, -1)
        entries, calls = flat[:, :-1] * flat[:, 1:], flat[:-1] * flat[1:]
        assert abs(entries.sum()) < chained(FITS, flat.shape[1], SECRET)
        assert abs(calls.sum()) < chained(flat.shape[1], FITS, SECRET)
        if flat.size > 500:  # what copies would show
            assert (flat**2).sum() > 1.5 * chained(FITS, flat.shape[1], SECRET)


@pytest.fixture(scope="module", params=["exact", "fast"])
def many(request):
    """Noise of 600 releases of two actions and three features (600, 24), in σ."""
    n, problem = 600, Problem(2, 3, "bandit", "general", radii=False)
    mechanism = PooledRidge(response_weight=2.0).calibrate(problem, Budget(1.0, 1e-5))
    empty = Batch(np.zeros((1, 3)), np.zeros((1, 2)), np.zeros((1, 2), dtype=bool))
    with SEEDED.begun(request.param, secret=request.param == "exact"):
        pool = mechanism.fit(empty, Trials(SOURCES[request.param], n)).statistics
    rows, columns = np.triu_indices(3)
    law = np.where(rows == columns, 1.0, math.sqrt(0.5))
    gram = (pool.gram[..., rows, columns] / law / mechanism.gram).reshape(n, -1)
    response = (pool.response / mechanism.response).reshape(n, -1)
    return np.concatenate([gram, response, pool.outcome_sums / mechanism.gram], axis=1)


def test_what_is_told_has_as_much_noise_as_the_gram(many):
    """The count, squares, half sums and half counts, each with deviation σ; nobody was heard."""
    assert many.shape[1] == 12 + 6 + 6
    for values in many[:, -6:].T:
        assert scale_accepted(values)
        assert not scale_accepted(values, 2 / 3)
        assert not scale_accepted(values, 3 / 2)


def test_all_pairs_of_coordinates_are_independent_in_size_too(many):
    """Correlations of draws and of magnitudes over all 276 pairs, at SECRET for each kind."""
    assert uncorrelated(many, SECRET)
    assert uncorrelated(magnitudes(many), SECRET)


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


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("source", ["exact", "fast"])
def test_noisy_statistics_lie_on_the_grid_and_their_low_bits_say_nothing(source, name):
    """Noise is whole numbers of grid steps; what is left modulo 16 is uniform for any data."""
    oracle = calibrated(ORACLES[name][0])
    nobody = Batch(np.zeros((4, P)), np.zeros((4, A)), np.zeros((4, A), dtype=bool))
    rows, columns = np.triu_indices(P)
    for batch in (nobody, batch_of()):
        with statistics() as kept:
            for _ in range(12):
                oracle.fit(batch, SOURCES[source])
        steps, told = (
            np.array([noisy / unit for _, noisy, unit in kept[part]]) for part in ("gram", "told")
        )
        np.testing.assert_array_equal(steps, np.rint(steps))
        np.testing.assert_array_equal(told, np.rint(told))
        assert (told.size > 0) == (name == "pooled")
        assert name != "pooled" or (told % 2 != 0).any()  # a coarser grid would tell the count
        free = np.concatenate([steps[..., rows, columns].reshape(-1), told.reshape(-1)])
        counts = np.bincount(free.astype(np.int64) % 16, minlength=16)
        expected = free.size / 16
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM / 4, 15)


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
    """The scales of its parts add up, in squares, to at least the scale asked for."""
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
