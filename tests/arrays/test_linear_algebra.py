"""Packed symmetric matrices, quadratic forms, and the one repair of a noisy Gram."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.arrays import linear_algebra
from discreet.arrays.backend import per_run
from interpreted import interpreted
from reference.ridge import definite
from tolerances import EXACT, SOLVER

LEADS = [((), ()), ((), (4,)), ((2, 1), (2, 4)), ((2, 4), (2, 4)), ((4,), (2, 4)), ((2, 1), (2, 1))]


def symmetric(rng, *shape):
    matrices = rng.normal(size=(*shape, 3, 3))
    return matrices + np.swapaxes(matrices, -1, -2)


@pytest.mark.parametrize(("rows_lead", "runs_lead"), LEADS)
def test_quadratic_forms_are_a_loop_over_everything(rows_lead, runs_lead):
    rng = np.random.default_rng(0)
    x, matrices = rng.normal(size=(*rows_lead, 5, 3)), symmetric(rng, *runs_lead, 2)
    lead = np.broadcast_shapes(rows_lead, runs_lead)
    made = linear_algebra.quadratic_forms(x, matrices)
    assert made.shape == (*lead, 5, 2)
    for index in np.ndindex(lead):
        rows = np.broadcast_to(x, (*lead, 5, 3))[index]
        blocks = np.broadcast_to(matrices, (*lead, 2, 3, 3))[index]
        for n in range(5):
            for a in range(2):
                expected = rows[n] @ blocks[a] @ rows[n]
                assert made[(*index, n, a)] == pytest.approx(expected, abs=100 * EXACT)


def noisy_matrices(order=(0, 1, 2, 3, 4)):
    """Definite and indefinite ones side by side; steps differ from run to run.

    ``order`` lists the axes as they lie in memory.
    """
    rng = np.random.default_rng(3)
    matrices = symmetric(rng, 2, 5, 4) + 2.0 * np.eye(3)
    matrices = np.ascontiguousarray(matrices.transpose(order)).transpose(np.argsort(order))
    smallest = np.linalg.eigvalsh(matrices)[..., 0]
    assert 0.2 < (smallest > 0).mean() < 0.8
    return matrices, rng.normal(size=(2, 5, 4, 3)), np.array([0.01, 0.1, 0.5, 2.0, 30.0])[:, None]


@pytest.mark.parametrize("small", [16, 0], ids=["side by side", "one by one"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (3, 4, 0, 1, 2), (4, 3, 2, 1, 0)])
def test_repaired_systems_use_the_smallest_shift_that_works(small, order, monkeypatch):
    """In every layout of memory, and without a change of the input."""
    monkeypatch.setattr(linear_algebra, "SMALL", small)
    matrices, vectors, step = noisy_matrices(order)
    kept = matrices.copy()
    assert matrices[..., 0, 0].size > linear_algebra.MANY
    solved = linear_algebra.solve_repaired(matrices, vectors, step)
    inverse = linear_algebra.inverse_repaired(matrices, step)
    np.testing.assert_array_equal(matrices, kept)
    for index in np.ndindex(matrices.shape[:-2]):
        whole = definite(matrices[index], step[index[1], 0])
        np.testing.assert_allclose(
            solved[index], np.linalg.solve(whole, vectors[index]), rtol=SOLVER, atol=SOLVER
        )
        np.testing.assert_allclose(inverse[index], np.linalg.inv(whole), rtol=SOLVER, atol=SOLVER)


def test_factors_side_by_side_are_those_of_each_alone():
    matrices, _, _ = noisy_matrices()
    matrices = matrices.reshape(-1, 3, 3)
    factors, exists = linear_algebra.cholesky_or_none(matrices)
    assert 0.2 < exists.mean() < 0.8
    for matrix, factor, found in zip(matrices, factors, exists, strict=True):
        assert found == (np.linalg.eigvalsh(matrix)[0] > 0)
        if found:
            np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), rtol=0, atol=SOLVER)


@pytest.mark.torch
def test_torch_repairs_alike():
    torch = pytest.importorskip("torch")
    matrices, vectors, step = noisy_matrices()
    given = torch.asarray(matrices), torch.asarray(vectors)
    made = linear_algebra.solve_repaired(*given, step)
    expected = linear_algebra.solve_repaired(matrices, vectors, step)
    np.testing.assert_allclose(made.numpy(), expected, rtol=SOLVER, atol=SOLVER)
    made = linear_algebra.inverse_repaired(given[0], step)
    expected = linear_algebra.inverse_repaired(matrices, step)
    np.testing.assert_allclose(made.numpy(), expected, rtol=SOLVER, atol=SOLVER)


def solve_floored(matrices, vectors, floor):
    """M₊⁻¹ v with eigenvalues of at least the floor of each run, as a pool solves it."""
    raised = linear_algebra.raised_eigenvalues(matrices, per_run(floor, matrices, 1))
    return linear_algebra.solve_along(*raised, vectors)


def test_small_eigenvalues_are_raised_and_the_rest_is_solved():
    rng = np.random.default_rng(3)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    matrix = axes @ np.diag([-5.0, 0.25, 2.0]) @ axes.T
    raised = axes @ np.diag([0.5, 0.5, 2.0]) @ axes.T
    vectors = rng.normal(size=(4, 3))  # four actions share one block
    solved = solve_floored(matrix[None], vectors, 0.5)
    np.testing.assert_allclose(solved, np.linalg.solve(raised, vectors.T).T, atol=SOLVER)


@pytest.mark.torch
def test_large_matrices_are_solved_one_by_one(monkeypatch):
    torch = pytest.importorskip("torch")
    matrices = symmetric(np.random.default_rng(3), 2, 1)  # indefinite: a plain solve
    vectors = np.random.default_rng(4).normal(size=(2, 4, 3))
    monkeypatch.setattr(linear_algebra, "LARGE", 3)
    calls = []
    solve = torch.linalg.solve
    monkeypatch.setattr(torch.linalg, "solve", lambda m, v: calls.append(m.ndim) or solve(m, v))
    made = linear_algebra.solve_vector(torch.asarray(matrices), torch.asarray(vectors))
    wanted = np.linalg.solve(matrices, vectors[..., None])[..., 0]
    np.testing.assert_allclose(made.numpy(), wanted, rtol=SOLVER, atol=SOLVER)
    assert calls == [2] * 8
    made = linear_algebra.inverse(torch.asarray(matrices))
    np.testing.assert_allclose(made.numpy(), np.linalg.inv(matrices), rtol=SOLVER, atol=SOLVER)


AGREES = """
import numpy as np, torch
from discreet.arrays import linear_algebra, triton_kernels as kernel
rng = np.random.default_rng(0)
for p in (1, 5, 17, 33, 40):
    half = rng.normal(size=(4, p, 2 * p))
    matrices = half @ np.moveaxis(half, 1, 2) / p
    matrices[0] -= (0.1 + np.linalg.eigvalsh(matrices[0])[0]) * np.eye(p)  # must be repaired
    matrices[1] *= 1e4
    matrices[2, 0, :], matrices[2, :, 0] = 0.0, 0.0
    matrices[2, 0, 0] = -1.0  # only the first pivot fails
    vectors, plus, step = rng.normal(size=(4, p)), np.full(4, 0.02), np.full(4, 0.06)
    given = [each.astype(np.float32) for each in (matrices, plus, step, vectors)]
    given = [torch.from_numpy(each) for each in given]
    pairs = [
        (linear_algebra.inverse_repaired(matrices, step, 0.02), kernel.inverted(*given[:3])),
        (linear_algebra.solve_repaired(matrices, vectors, step, 0.02), kernel.solved(*given)),
    ]
    for want, found in pairs:
        assert abs(found.numpy() - want).max() < 1e-4 * abs(want).max(), p
    rows = given[0][0, :3]  # of one matrix, as some rows of features
    pairs = map(torch.from_numpy, np.triu_indices(p))
    assert torch.equal(kernel.packed_products(rows, *pairs), linear_algebra.pack_products(rows))
print("agrees")
"""


@pytest.mark.torch
def test_the_kernels_agree_with_the_array_form():
    interpreted(AGREES)
