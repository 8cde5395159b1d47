"""Differences from the default plan: means, intervals and shares by hand."""

import math

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from discreet.lab.report.final_loss import AgainstDefault
from discreet.lab.report.runs import Level

DIFFERENCES = np.array([0.1, 0.3, -0.1, 0.0, np.nan])


def test_means_and_shares_by_hand():
    beside = AgainstDefault(("Rival",), (Level(1.0, 1e-5),), DIFFERENCES[:, None, None])
    known = DIFFERENCES[:4]
    n, mean, low, high = beside.mean(0, 0)
    half = 1.96 * known.std(ddof=1) / 2
    assert (n, mean) == (4, pytest.approx(known.mean()))
    assert (low, high) == (pytest.approx(mean - half, rel=1e-3), pytest.approx(mean + half, 1e-3))
    share, least, most = beside.ahead(0, 0)
    assert share == pytest.approx(2.5 / 4)
    for bound in (least, most):  # Wilson: the bound's own deviation reaches the share
        spread = math.sqrt(bound * (1 - bound) / 4)
        assert abs(share - bound) == pytest.approx(1.959964 * spread, rel=1e-5)
    assert beside.rows()[0][:3] == (1.0, "Rival", 4)
    assert "+0.075" in beside.table().rows[0][1]


def test_nothing_is_said_of_what_was_not_run():
    beside = AgainstDefault(("Rival",), (Level(1.0, 1e-5),), np.full((2, 1, 1), np.nan))
    assert beside.rows() == []
    assert beside.table().rows[0] == ["Rival", "–"]
