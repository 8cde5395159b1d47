"""The noise that is actually added, by the shipped sampler: its scale, shape and independence.

Noise is what is left of a release when the statistics of its batch are taken away, in units of
the declared scale. Every limit is exceeded with probability at most ``alpha`` a statement: limits
come from exact laws or from inequalities that hold for every ``alpha``, not from approximations.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincc, gammainccinv, ndtr, ndtri
from scipy.stats import binom, chi2, poisson, t

from discreet.audit.finding import Finding, clopper_pearson, computed
from discreet.audit.gaussian import releases_of
from discreet.audit.noise_sources import EXACT, Trials, choice_of, in_fresh_process, sampler
from discreet.audit.objective import Objective
from discreet.audit.subjects import Subject
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.privacy.noise import SecureNoise
from discreet.types import Floats

RELEASES = 1000
TAILS = (4.0, 4.25, 5.0)
"""Deviations beyond which draws are counted."""
FAR = 3.5
"""Deviations beyond which a float made of 52 random bits shows its gaps."""
STATEMENTS = {"scale_and_shape": 3, "independence": 8, "grid": 4, "choice": 2, "tails": 7}
"""The number of statements of each question, for the error budget of a suite."""


def standard_draws(subject: Subject, noise: SecureNoise, releases: int = 0) -> Floats:
    """Noise of many releases (T, k), in declared standard deviations.

    A release with a number that is not finite is an error, for any question.
    """
    first, _ = subject.worst_pair()
    releases = releases or RELEASES * (1 if subject.ridge else 4)  # a few numbers per release
    release = subject.fit(first, Trials(noise, releases))
    if subject.ridge:
        seen = releases_of(subject)
        draws = (seen.read(release) - seen.mean(first)) / seen.sigma
    else:
        objective = Objective(subject, 1)
        b, _ = objective.noise_and_volume(release.predictor.weights, first)
        draws = b.reshape(releases, -1) / objective.scale
    if not np.isfinite(draws).all():
        raise FloatingPointError("a release holds numbers that are not finite")
    return np.asarray(draws)


def normal_scores(subject: Subject, draws: Floats) -> Floats:
    """Draws that must be standard normal: as they are, or vectors with another length.

    A vector of density ∝ exp(−‖v‖) has a Gamma length in a uniform direction. The same direction
    with the length that a normal vector has at that quantile is a standard normal vector.
    """
    if subject.mechanism not in ("logistic-gamma", "logistic-paper"):
        return draws
    size = draws.shape[-1] if subject.mechanism == "logistic-paper" else subject.dimension + 1
    vectors = draws.reshape(len(draws), -1, size)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normal = np.sqrt(2.0 * gammainccinv(size / 2, gammaincc(size, length)))
    return np.asarray((vectors * (normal / length)).reshape(draws.shape))


def scale_and_shape(subject: Subject, alpha: float, noise: SecureNoise = EXACT) -> Finding:
    """Variance by the chi-square law, fourth moment, and the whole law by the DKW inequality."""
    values = normal_scores(subject, standard_draws(subject, noise)).reshape(-1)
    n, square = values.size, float((values**2).sum())
    low, high = chi2.ppf(alpha / 2, n), chi2.isf(alpha / 2, n)
    fourth, (least, most) = float((values**4).mean()), fourth_moment_limits(n, alpha)
    ordered, steps = np.sort(ndtr(values)), np.arange(n + 1) / n
    gap = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    holds = low <= square <= high and least <= fourth <= most
    holds &= gap <= math.sqrt(math.log(2.0 / alpha) / (2 * n))
    text = (
        f"{n:,} draws: variance {square / n:.3f} of the declared one (accepted within "
        f"{low / n:.3f} and {high / n:.3f}), fourth moment {fourth:.2f} of 3"
    )
    return _finding(subject, f"scale and shape of the noise{sampler(noise)}", holds, text, alpha)


def fourth_moment_limits(n: int, alpha: float) -> tuple[float, float]:
    """Limits of the mean of x⁴ of ``n`` standard normals, wrong with probability ``alpha`` at most.

    Chernoff's bound, with α/2 for either side. x⁴ has no exponential moment, so the upper limit
    spends half of its share on draws so large that none is expected.
    """
    largest = -float(ndtri(alpha / 8 / n))
    x = np.linspace(0.0, largest, 4001)
    density = math.sqrt(2.0 / math.pi) * np.exp(-(x**2) / 2)
    rates = np.geomspace(0.01, 100.0, 300) / largest**4
    grown, shrunk = (
        np.log(np.trapezoid(density * np.exp(sign * rates[:, None] * x**4), x)) for sign in (1, -1)
    )
    low = -((n * shrunk + math.log(2 / alpha)) / rates).min() / n
    return float(low), float(((n * grown + math.log(4 / alpha)) / rates).min() / n)


def independence(subject: Subject, alpha: float, noise: SecureNoise = EXACT) -> Finding:
    """No correlation between entries, between releases, between fits or between processes.

    Neither of the draws nor of their magnitudes: noise with an independent sign and the size of
    another's is uncorrelated, and has that size.
    """
    # Two fits in one process, and one in another that begins in the same state.
    fits = [draws for n in (2, 1) for draws in in_fresh_process(_draws_of, subject, noise, n)]
    seen, failed = [normal_scores(subject, each) for each in fits], []
    for what, change in (("", np.asarray), ("magnitudes of ", magnitudes)):
        one, two, there = map(change, seen)
        checks = {
            "entries": uncorrelated(one, alpha),
            "releases": unrelated(one[:-2:2] + one[2::2], one[1:-1:2], alpha),
            "fits": unrelated(one, two, alpha),
            "processes": unrelated(one, there, alpha),
        }
        failed += [what + name for name, holds in checks.items() if not holds]
    text = "entries, releases, fits and processes are uncorrelated, and so are their magnitudes"
    text = f"not independent: {', '.join(failed)}" if failed else text
    return _finding(subject, f"independence of the noise{sampler(noise)}", not failed, text, alpha)


def magnitudes(draws: Floats) -> Floats:
    """Standard normals that are functions of |x| alone, for standard normal x."""
    scores = -ndtri(2.0 * ndtr(-np.abs(draws)))
    return np.asarray(np.clip(scores, -9.0, 9.0))  # finite where there is no noise at all


def unrelated(given: Floats, draws: Floats, alpha: float) -> bool:
    """Return whether standard normal ``draws`` look independent of ``given`` numbers.

    If they are, Σ given·draws is exactly normal with standard deviation ‖given‖. Neighbouring
    releases are judged by every second one, given the sum of the two next to it.
    """
    limit = -float(ndtri(alpha / 2)) * float(np.linalg.norm(given))
    return bool(abs(float((given * draws).sum())) <= limit)


def uncorrelated(draws: Floats, alpha: float) -> bool:
    """Every pair of columns by the law of a sample correlation, shared by all pairs."""
    n, width = draws.shape
    pairs = width * (width - 1) // 2
    if pairs == 0:
        return True
    if not draws.std(axis=0).all():  # a number that never varies is no noise
        return False
    found = np.corrcoef(draws, rowvar=False)[np.triu_indices(width, 1)]
    quantile = t.isf(alpha / 2 / pairs, n - 2)
    return bool(np.abs(found).max() <= quantile / math.sqrt(n - 2 + quantile**2))


def tails(subject: Subject, alpha: float, count: int, noise: SecureNoise = EXACT) -> Finding:
    """The number of ``count`` draws beyond four to five deviations: neither too few nor too many.

    With 300,000 draws 19 are expected beyond four; one or none, as where noise is cut off there,
    has probability 1e-7. Beyond five 0.2 are expected: that count sees tails that are too heavy.
    On a grid the far draws must also lie anywhere on it.
    """
    drawn, found = 0, []
    while drawn < count:
        sizes = np.abs(normal_scores(subject, standard_draws(subject, noise, 5 * RELEASES)))
        found.append(sizes[sizes > FAR])
        drawn += sizes.size
    large = np.concatenate(found)
    far = np.array([int((large > beyond).sum()) for beyond in TAILS])
    expected = 2.0 * drawn * ndtr(-np.asarray(TAILS))
    # Counts of rare events are below Poisson's law in both tails, entries being independent.
    holds = (poisson.cdf(far, expected) > alpha) & (poisson.sf(far - 1, expected) > alpha)
    gaps = subject.pooled and not no_gaps(large, alpha)
    counted = zip(TAILS, far, expected, strict=True)
    counts = ", ".join(f"{n} beyond {at:g}σ ({mean:.1f} expected)" for at, n, mean in counted)
    text = f"{drawn:,} draws: {counts}{', with gaps between them' * gaps}"
    question = f"tails of the noise{sampler(noise)}"
    return _finding(subject, question, bool(holds.all()) and not gaps, text, alpha)


def _draws_of(subject: Subject, noise: SecureNoise, fits: int) -> list[Floats]:
    return [standard_draws(subject, noise) for _ in range(fits)]


def grid(subject: Subject, alpha: float, noise: SecureNoise = EXACT) -> Finding:
    """Noisy sums are whole numbers, and no bit below their noise depends on the batch."""
    holds = True
    first, _ = subject.worst_pair()
    rows, columns = np.triu_indices(subject.dimension + 1)
    steps_in_one = GRID**2 * (1.0 if subject.stretched else 2.0)
    least = subject.calibrated.gram * math.sqrt(0.5) * steps_in_one
    for batch in (releases_of(subject).batch(), first):
        release = subject.fit(batch, Trials(noise, RELEASES))
        gram = release.statistics.gram if subject.stretched else release.gram.values
        steps = (gram * steps_in_one)[..., rows, columns]
        holds &= bool((steps == np.rint(steps)).all())
        holds &= uniform_bits(steps, least, alpha)
        holds &= no_value_twice(steps.reshape(RELEASES, -1), least, alpha)
    text = "noisy sums repeat, or their low bits depend on the batch"
    if holds:
        text = "noisy sums are whole numbers of steps; their low bits say nothing of the batch"
    return _finding(subject, f"noise on the grid of the sums{sampler(noise)}", holds, text, alpha)


def uniform_bits(steps: Floats, scale: float, alpha: float) -> bool:
    """Four bits at a time, from the lowest up to the size of the noise, are uniform.

    The count of each of the 16 values is binomial; all tails share ``alpha``.
    """
    whole = steps.astype(np.int64).reshape(-1)
    shifts = range(0, max(1, int(math.log2(scale)) - 4), 4)
    tail = alpha / (2 * 16 * len(shifts))
    low, high = binom.ppf(tail, whole.size, 1 / 16), binom.isf(tail, whole.size, 1 / 16)
    counts = np.array([np.bincount((whole >> shift) % 16, minlength=16) for shift in shifts])
    return bool(((low <= counts) & (counts <= high)).all())


def no_value_twice(steps: Floats, scale: float, alpha: float) -> bool:
    """Return whether no number of a column (T, k) repeats: noise that leaps over values soon does.

    Two draws agree with probability 1/(2√π·scale) at most; so many columns are read that one of
    their pairs agrees with probability α at most.
    """
    trials, width = steps.shape
    columns = int(alpha * 2 * math.sqrt(math.pi) * scale / (trials * (trials - 1) / 2))
    ordered = np.sort(steps[:, : min(columns, width)], axis=0)
    return bool(np.diff(ordered, axis=0).all())


def no_gaps(sizes: Floats, alpha: float) -> bool:
    """Return whether far draws also lie where no normal number made of 52 random bits can be.

    There 2^52·Φ(−|x|) is a whole number and a half; on all integers its fraction is uniform, and
    the mean of n cosines exceeds √(log(2/α)/n) with probability α at most.
    """
    cosines = np.cos(2.0 * math.pi * ((ndtr(-sizes) * 2.0**52) % 1.0))
    limit = math.sqrt(math.log(2.0 / alpha) / max(1, sizes.size))
    return bool(abs(cosines.mean()) <= limit) if sizes.size else True


def choice(subject: Subject, alpha: float, noise: SecureNoise = EXACT) -> Finding:
    """The first function is chosen as often as its probability requires, in two worlds."""
    holds, rates = [], []
    for world in subject.worst_pair():
        fitted = choice_of(subject.calibrated, world)
        drawn = Trials(noise, 2 * RELEASES).choose(
            "finite class", fitted.scores, np.asarray(fitted.scale)
        )
        rate, hits = math.exp(fitted.log_law()[0]), int((drawn == 0).sum())
        low, high = clopper_pearson(hits, drawn.size, alpha / 2)
        holds.append(low <= rate <= high)
        rates.append(f"{hits:,} times of {drawn.size:,}, expected {rate * drawn.size:,.0f}")
    text = f"the first function: {'; '.join(rates)}"
    return _finding(subject, "how often a function is chosen", all(holds), text, alpha)


def _finding(subject: Subject, question: str, holds: bool, text: str, alpha: float) -> Finding:
    return computed(subject, question, holds, text, part="noise", trials=RELEASES, alpha=alpha)
