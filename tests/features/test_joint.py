"""Joint features: inside the ball, with a constant, as literal products; and public folding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.features.joint import Joint, feature_names
from discreet.features.offered import OfferedPairs
from tolerances import EXACT

SCHEMA = dc.Schema([dc.Number("age", 0, 100), dc.Category("device", ["phone", "desk"])])
ITEMS = dc.Schema([dc.Number("year", 1900, 2000), dc.Flag("new"), dc.Hashed("id", 4)])
KINDS = ["all", "none", 3, [(0, 1), (2, 0)]]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def drawn(joint, pairs, seed=0):
    rng = np.random.default_rng(seed)
    dims = joint.context.p - 1, joint.action.p - 1
    return [
        each.map(3.0 * rng.normal(size=(pairs, size)))
        for each, size in zip((joint.context, joint.action), dims, strict=True)
    ]


@every_kind
def test_rows_are_a_constant_and_parts_of_the_ball(kind):
    joint = Joint(dc.UnitBall(3), dc.UnitBall(2), kind)
    x, z = drawn(joint, 200)
    rows = joint.rows(x, z)
    assert rows.shape == (200, joint.p)
    np.testing.assert_allclose(rows[:, 0], np.sqrt(0.5))
    assert (np.linalg.norm(rows, axis=1) <= 1 + EXACT).all()
    assert (rows @ rows.T >= -EXACT).all()  # so the paper's Δ for responses is √2


def test_all_products_are_literal_ones():
    joint = Joint(dc.UnitBall(2), dc.UnitBall(2))
    c, a = np.array([0.6, -0.3]), np.array([0.2, 0.5])
    literal = np.concatenate([c, a, np.outer(c, a).ravel()]) / np.sqrt(3)
    row = joint.rows(joint.context.map(c), joint.action.map(a))[0] * np.sqrt(2)
    np.testing.assert_allclose(row, [1.0, *literal], atol=EXACT)


@given(dims=st.tuples(st.integers(1, 6), st.integers(1, 6)), data=st.data())
def test_folding_has_orthonormal_rows(dims, data):
    products = dims[0] * dims[1]
    if products == 1:
        return
    width = data.draw(st.integers(1, products - 1))
    joint = Joint(dc.UnitBall(dims[0]), dc.UnitBall(dims[1]), width)
    np.testing.assert_allclose(joint._matrix.T @ joint._matrix, np.eye(width), atol=EXACT)
    sizes = (joint._matrix != 0).sum(axis=0)
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == products


@every_kind
@pytest.mark.parametrize("everything", [True, False])
def test_scores_are_those_of_rows(kind, everything):
    """Without a row for each pair: what the speed of a long offer rests on."""
    joint = Joint(dc.UnitBall(3), dc.UnitBall(2), kind)
    rng = np.random.default_rng(1)
    x, _ = drawn(joint, 6)
    _, items = drawn(joint, 9)
    places = None if everything else rng.integers(9, size=(6, 4))
    weights, form = rng.normal(size=(3, joint.p)), rng.normal(size=(1, joint.p, joint.p))
    offered = OfferedPairs(joint, x, items, places)
    rows = joint.rows(x[:, None], items[None] if everything else items[places])
    literal = np.einsum("nkp,mp->mnk", rows, weights)
    np.testing.assert_allclose(offered.scores(weights[:1]), literal[0], atol=EXACT)
    each = list(offered.scores_of_each([weights[:1], weights[1:2], weights[2:]]))
    np.testing.assert_allclose(each, literal, atol=EXACT)
    squares = np.einsum("nkp,pq,nkq->nk", rows, form[0], rows)
    np.testing.assert_allclose(offered.squares(form), squares, atol=1e-10)
    chosen = rng.integers(offered.count, size=6)
    stored, blocks = offered.stored(chosen)
    np.testing.assert_allclose(stored, rows[np.arange(6), chosen], atol=EXACT)
    assert not blocks.any()


def test_pairs_of_fields_are_the_same_as_their_products():
    joint = Joint(SCHEMA, ITEMS, [("age", "year")])
    whole = Joint(SCHEMA, ITEMS, "all")
    names = feature_names(whole)
    wanted = [names.index(name) for name in feature_names(joint)]
    x = SCHEMA.map({"age": 30, "device": "desk"})
    z = ITEMS.map({"year": 1950, "new": True, "id": "a"})
    np.testing.assert_allclose(joint.rows(x, z), whole.rows(x, z)[:, wanted])


def test_every_feature_has_a_name():
    for features in (SCHEMA, ITEMS, dc.UnitBall(3), *(Joint(SCHEMA, ITEMS, k) for k in ("all", 5))):
        names = feature_names(features)
        assert len(names) == len(set(names)) == features.p


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("al", "Did you mean 'all'"),
        (0, "interactions must be"),
        (9, "interactions='all'"),
        ([("age", "yaer")], "fields of the action"),
        ([("aeg", "year")], "fields of the context"),
        (["age"], "pairs"),
        ([("age", "year")] * 2, "distinct"),
        ([], "distinct"),
    ],
)
def test_what_is_not_meant_is_refused(said, words):
    kinds = (dc.UnitBall(3), dc.UnitBall(3)) if said == 9 else (SCHEMA, ITEMS)
    with pytest.raises(dc.InvalidInput, match=words):
        Joint(*kinds, said)


def test_too_many_features_are_refused():
    with pytest.raises(dc.InvalidInput, match="width"):
        Joint(dc.UnitBall(100), dc.UnitBall(100), "all")
