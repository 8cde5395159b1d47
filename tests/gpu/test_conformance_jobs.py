"""The jobs of the GPU suite can be played, here on NumPy: a rename must not wait for a GPU."""

import numpy as np
import pytest

from gpu import conformance


@pytest.mark.parametrize("kind", ["grid", "recipe", "plans"])
def test_a_job_of_each_kind(kind):
    pytest.importorskip("pyarrow")
    shortest = next(job for job in conformance.jobs()[::-1] if job[1] == kind)
    name, _, (_, columns, actions), given = shortest
    job = (name, kind, (61, columns, actions), given)
    losses, keys = conformance.play(job, conformance.DOUBLE)
    assert losses.shape == (len(keys), losses.shape[1])
    assert np.all((losses >= 0.0) & (losses <= 1.0))
    assert [found for _, found, _ in conformance.compared(job, losses, losses, keys)] == [0.0, 0.0]
