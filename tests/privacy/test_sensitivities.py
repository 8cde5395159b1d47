"""Declared sensitivities against the worst pair of a fine grid of records.

Statistics come from the shipped ``exact_moments``, which a private release sums, and those of the
paper from ``floating_moments``. For each mechanism the largest distance must lie in
[0.999, 1 + 1e-9] times the declared one: below, we would waste noise; above, we would break the
promise. Distances need two context dimensions to be attained.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from discreet.audit import HOLDS
from discreet.audit.proof_facts import hostile
from discreet.audit.subjects import MECHANISMS, subjects
from discreet.batch import Batch
from discreet.errors import InvalidInput
from discreet.features.unit_ball import with_bias
from discreet.oracles import PooledRidge
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import legal_rows
from discreet.oracles.mechanisms.moments import exact_moments, floating_moments
from discreet.oracles.mechanisms.perturb import block_diagonal
from discreet.privacy.sensitivities import (
    different_actions,
    paper_sensitivities,
    ridge_sensitivity,
)

DIMENSION = 2
LOW, HIGH = 0.999, 1.0 + 1e-9
VOID = None


def record(context, losses, action, n_actions):
    """A batch of one record; ``action`` is an index, ``"all"`` or VOID."""
    observed = np.zeros((1, n_actions), dtype=bool)
    if action is not VOID:
        observed[0, slice(None) if action == "all" else action] = True
    return Batch(with_bias(np.atleast_2d(context)), np.atleast_2d(losses), observed)


def half_vectors(moments, weight):
    """(svec of every block, response, outcome sums) as one vector."""
    gram = moments.gram * moments.gram_unit
    rows, columns = np.triu_indices(gram.shape[-1])
    root = np.where(rows == columns, 1.0, math.sqrt(2.0))
    response = weight * moments.response * moments.response_unit
    parts = [(gram[..., rows, columns] * root).ravel(), response.ravel()]
    if moments.outcome_sums is not None:
        parts.append(moments.outcome_sums * moments.gram_unit)
    return np.concatenate(parts)


def structured(feedback, losses, weight=1.0, *rows):
    """The statistic of one record; ``rows`` are a matrix, and the bounds (low, high)."""
    return lambda batch: half_vectors(exact_moments(batch, feedback, losses, *rows), weight)


def distance_of(statistic, first, second):
    return float(np.linalg.norm(statistic(first) - statistic(second)))


def paper_part(part, feedback):
    """The dense (Ap)² Gram of a record (0), or its uncentred response (1)."""

    def statistic(batch):
        moments = floating_moments(batch, feedback, 0.0)
        gram = block_diagonal(moments.gram, batch.n_actions)
        return (gram, moments.response)[part].ravel()

    return statistic


ANGLES = np.linspace(0.0, 2.0 * math.pi, 64, endpoint=False)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
CONTEXTS = np.concatenate([CIRCLE, 0.5 * CIRCLE[::8]])
INSIDE = (0.0, 0.25, 0.42, 0.5, 0.58, 0.75, 1.0)
"""Losses to be tried where their squares are released: then a distance is not convex in them."""


def loss_rows(feedback, losses, n_actions):
    """Equal losses of one observed action; two labels; or all numbers of ones and of zeros."""
    if feedback == "bandit":
        return [np.full(n_actions, each) for each in INSIDE]
    if losses == "one_label":
        return 1.0 - np.eye(n_actions)[:2]
    some = np.tri(n_actions + 1, n_actions, -1)
    return np.concatenate([some, 1.0 - some])


def furthest(statistic, feedback, losses, n_actions):
    """The largest distance between the statistics of neighbouring records, and the pair."""
    actions = ("all", VOID) if feedback == "full" else (0, 1, VOID)
    choices = itertools.product(CONTEXTS, loss_rows(feedback, losses, n_actions), actions)
    tried = [record(*each, n_actions) for each in choices]
    rows = np.stack([statistic(each) for each in tried])
    distances = cdist(rows, rows)
    one, two = np.unravel_index(distances.argmax(), distances.shape)
    return distances[one, two], (tried[one], tried[two])


def assert_tight(found, declared):
    assert LOW * declared <= found <= HIGH * declared


CASES = [
    ("bandit", "general", 3),
    *(("full", "one_label", A) for A in (2, 3, 4, 6)),
    *(("full", "general", A) for A in (2, 5, 8)),
]

WEIGHTED = [
    *((*case, 1.0) for case in CASES),
    *(("bandit", "general", 3, weight) for weight in (0.3, 1.7, 2.0, math.sqrt(8.0))),
    *(("full", "one_label", A, 2.0) for A in (2, 5)),  # ω² ≤ 2A: the peak is attained
    ("full", "one_label", 3, 0.5),
    *(("full", "general", A, weight) for A, weight in ((2, 0.5), (2, 2.0), (3, 2.0), (8, 0.7))),
]


@pytest.mark.parametrize("weight", [3.0, math.sqrt(8.0)])
def test_beyond_its_peak_the_one_label_sensitivity_is_still_a_bound(weight):
    """ω² > 2A: the parabola peaks at t > 1, which no pair of rows reaches."""
    found, _ = furthest(structured("full", "one_label", weight), "full", "one_label", 2)
    assert found < 0.99 * ridge_sensitivity("full", 2, True, weight)


# Stretched rows

SQUEEZED = publishable(np.diag([2.0**-6, 1.0, 1.0]))
"""Makes the constant short, so that two rows may point in any two directions."""

WEIGHTS = (0.125, 0.3, 0.54, 1.0, 1.8, 1.9, 2.0, math.sqrt(8.0))
"""Below 1.87 two actions are the worst pair, and below 0.87 losses of 1 and ½; else one action."""

STRETCHED = [
    *(("bandit", "general", 3, weight) for weight in WEIGHTS),
    *(("full", "one_label", A, 1.0) for A in (2, 3, 4, 6, 10)),
    ("full", "one_label", 3, 0.5),
    *(("full", "general", A, 1.0) for A in (2, 5, 8)),
    *(("full", "general", A, weight) for A, weight in ((2, 0.5), (2, 2.0), (8, 0.7))),
]


@pytest.mark.parametrize(
    ("feedback", "losses", "n_actions", "weight", "matrix"),
    [*((*each, None) for each in WEIGHTED), *((*each, SQUEEZED) for each in STRETCHED)],
)
def test_structured_sensitivity_is_attained_and_never_exceeded(
    feedback, losses, n_actions, weight, matrix
):
    one_label, stretched = losses == "one_label", matrix is not None
    declared = ridge_sensitivity(feedback, n_actions, one_label, weight, stretched)
    statistic = structured(feedback, losses, weight, *([matrix] if stretched else []))
    found, _ = furthest(statistic, feedback, losses, n_actions)
    assert_tight(found, declared)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (0.5, 2.0), (0.8, 1.25), (0.02, 50.0)])
@pytest.mark.parametrize(("feedback", "losses", "n_actions"), CASES)
def test_rows_between_two_lengths_stay_inside_and_attain_it(feedback, losses, n_actions, bounds):
    """Rows of any length: those of length one, with losses as they are, attain the bound."""
    weight = 2.0 if feedback == "bandit" else 1.0
    declared = ridge_sensitivity(feedback, n_actions, losses == "one_label", weight, True)
    for longest in (1.0, 3.0):
        matrix = publishable(math.sqrt(2.0) * longest * np.diag([2.0**-12, 1.0, 1.0]))
        statistic = structured(feedback, losses, weight, matrix, bounds)
        found, _ = furthest(statistic, feedback, losses, n_actions)
        assert found <= HIGH * declared
        if longest == 1.0:
            assert_tight(found, declared)


def same_action_change(weight):
    """The largest squared change between unit rows of one action that meet at t, over a dense grid.

    Centred losses are α/2 and β/2, multiplied by two factors; Σ(y − ½) has the weight ½, and
    Σ(y − ½)² the weight 2. [docs/privacy/ridge.md]
    """
    ends, factors = np.linspace(-1.0, 1.0, 41), np.array([0.0, 0.3, 0.7, 1.0])
    axes = np.meshgrid(ends, ends, np.linspace(-1.0, 1.0, 65), factors, factors, indexing="ij")
    alpha, beta, t = axes[:3]
    one, two = axes[3] * alpha, axes[4] * beta
    response = (weight / 2.0) ** 2 * (one**2 + two**2 - 2.0 * one * two * t)
    sums = ((alpha - beta) / 4.0) ** 2 + ((alpha**2 - beta**2) / 2.0) ** 2
    return float((2.0 - 2.0 * t**2 + response + sums).max())


def different_actions_change(weight):
    """The same between unit rows of different actions, whose half counts move too."""
    alpha, beta = np.meshgrid(np.linspace(-1.0, 1.0, 201), np.linspace(-1.0, 1.0, 201))
    moved = (weight**2 + 1.0 / 4.0) * (alpha**2 + beta**2) / 4.0 + 1.0 / 2.0
    return float((2.0 + moved + ((alpha**2 - beta**2) / 2.0) ** 2).max())


def change_to_void(weight):
    """The squared change between a unit row with loss 0 or 1 and a void slot."""
    return 1.0 + weight**2 / 4.0 + 1.0 / 16.0 + 1.0 / 4.0 + 1.0 + 1.0 / 4.0


@pytest.mark.parametrize("weight", [*WEIGHTS, 0.5, 0.53, 0.86, 0.87, 1.7, 1.86, 1.87])
def test_sums_beside_stretched_rows_cost_what_is_declared(weight):
    """The sum, and each of its parts: the larger of two bounds would hide a wrong other one.

    Losses inside [0, 1] included: with a small weight they are worse than the ends.
    """
    declared = ridge_sensitivity("bandit", 3, weight=weight, normalised=True)
    same, different = same_action_change(weight), different_actions_change(weight)
    assert_tight(math.sqrt(max(same, different)), declared)
    h = weight / 2.0
    if weight >= 0.54:
        assert_tight(same, (2.0 + h**2) ** 2 / 2.0 + 0.25)
    else:
        assert same <= 2.3235 + h**2 < different
    assert different == pytest.approx(different_actions(h**2), rel=1e-12)
    assert change_to_void(weight) < different - 0.2
    assert (same > different_actions(h**2)) == (weight >= 1.87)


@pytest.mark.parametrize("weight", [0.0, -1.0, 2.9, 1e-4, math.nan, math.inf])
def test_a_weight_outside_the_proof_is_refused(weight):
    with pytest.raises(InvalidInput, match="response_weight"):
        PooledRidge(response_weight=weight)


@pytest.mark.parametrize(("feedback", "losses", "n_actions"), CASES)
def test_paper_sensitivities_are_attained_and_never_exceeded(feedback, losses, n_actions):
    declared = paper_sensitivities(feedback, n_actions, losses == "one_label")
    for part in (0, 1):
        found, _ = furthest(paper_part(part, feedback), feedback, losses, n_actions)
        assert_tight(found, declared[part])


@pytest.mark.parametrize(
    ("feedback", "losses", "n_actions", "weight", "stretched"),
    [*((*each, False) for each in WEIGHTED), *((*each, True) for each in STRETCHED)],
)
def test_exact_statistics_of_random_and_illegal_records_stay_inside(
    feedback, losses, n_actions, weight, stretched
):
    """Whatever is passed (norms of 1e200, infinities, several actions, any matrix and bounds)."""
    rng, size = np.random.default_rng(1), (DIMENSION + 1, DIMENSION + 1)
    declared = ridge_sensitivity(feedback, n_actions, losses == "one_label", weight, stretched)
    for _ in range(200):
        first, second = (wild_record(rng, n_actions) for _ in range(2))
        matrix = rng.normal(size=size) * 10.0 ** rng.uniform(-8, 8, size=size)
        matrix = publishable(matrix * 10.0 ** rng.uniform(-140, 140))
        low = 10.0 ** rng.uniform(-8, 0)
        bounds = (0.0, math.inf), (low, 1.0 / low), (1.0, 1.0)
        for rows in [(matrix, each) for each in bounds] if stretched else [()]:
            statistic = structured(feedback, losses, weight, *rows)
            assert distance_of(statistic, first, second) <= HIGH * declared


def wild_record(rng, n_actions):
    features = rng.normal(size=(1, DIMENSION + 1)) * 10.0 ** rng.uniform(-3, 200)
    features[rng.random(features.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    observed = rng.random((1, n_actions)) < 0.8
    return Batch(features, rng.normal(size=(1, n_actions)) * 5.0, observed)


def test_the_declared_constants_are_those_of_the_proof():
    assert ridge_sensitivity("bandit", 7) == pytest.approx(1.5910, abs=5e-5)
    squares = [ridge_sensitivity("full", A, True) ** 2 for A in (2, 3, 4, 6)]
    expected = [4 - 2 / A + 1 / (2 * A**2) for A in (2, 3, 4, 6)]  # the centre is on the grid
    assert squares == pytest.approx(expected, rel=1e-5)
    squares = [ridge_sensitivity("full", A) ** 2 for A in (2, 5, 8, 12)]
    assert squares == pytest.approx([25 / 8, 169 / 32, 8.0, 12.0])
    squares = [ridge_sensitivity("bandit", 7, weight=w) ** 2 for w in (1.0, 2.0, math.sqrt(8.0))]
    assert squares == pytest.approx([81 / 32, 9 / 2, 8.0])
    # Stretched rows: outcome sums cost a quarter more, and one label has no v·v' ≥ 0.
    assert ridge_sensitivity("bandit", 7, weight=2.0, normalised=True) ** 2 == pytest.approx(4.75)
    assert ridge_sensitivity("bandit", 7, normalised=True) ** 2 == pytest.approx(3.125)
    assert (different_actions(1.0), different_actions(0.25)) == (4.625, 3.125)
    squares = [ridge_sensitivity("full", A, True, normalised=True) ** 2 for A in (2, 3, 10)]
    expected = [2 + 2 * N + N**2 / 2 for N in (1 / 2, 2 / 3, 9 / 10)]
    assert squares == pytest.approx(expected, rel=1e-5)
    squares = [ridge_sensitivity("full", A, normalised=True) ** 2 for A in (2, 5, 8, 12)]
    assert squares == pytest.approx([25 / 8, 169 / 32, 8.0, 12.0])


def test_sabotage_without_the_bias_column_the_response_reaches_two():
    def without_bias(batch):
        context = batch.features[:, 1:] * math.sqrt(2.0)
        zero = np.zeros((1, 1))
        return Batch(np.concatenate([zero, context], axis=1), batch.losses, batch.observed)

    def response(batch):
        return paper_part(1, "bandit")(without_bias(batch))

    found, pair = furthest(response, "bandit", "general", 2)
    assert found == pytest.approx(2.0, rel=1e-3)
    assert found > 1.4 * paper_sensitivities("bandit", 2)[1]
    # The exact statistics put the column back, so the same rows are harmless there.
    distance = distance_of(structured("bandit", "general"), *map(without_bias, pair))
    assert distance <= HIGH * ridge_sensitivity("bandit", 2)


@pytest.mark.parametrize("n_actions", [3, 4, 6])
def test_sabotage_general_losses_exceed_the_one_label_sensitivity_unless_enforced(n_actions):
    declared = ridge_sensitivity("full", n_actions, one_zero=True)
    found, pair = furthest(structured("full", "general"), "full", "general", n_actions)
    assert found > 1.01 * declared
    assert distance_of(structured("full", "one_label"), *pair) <= HIGH * declared
    for batch in pair:
        targets = legal_rows(batch, "full", "one_label").targets
        assert (targets == 0.0).sum() == 1
        assert (targets == 1.0).sum() == n_actions - 1


@pytest.mark.parametrize(
    "subject", [each for each in subjects(MECHANISMS, [2.0]) if each.ridge], ids=lambda s: s.name
)
def test_oracles_make_every_row_legal(subject):
    """They enforce the rows behind their sensitivities, not the caller."""
    assert hostile(subject).verdict == HOLDS
