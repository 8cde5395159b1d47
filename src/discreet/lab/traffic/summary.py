"""What a play came to: loss over time, latency, answers by code."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.lab.traffic.open_loop import Played

PARTS = 10
"""Stretches of time over which the loss is averaged."""
EXPECTED = ("200", "410 over")
"""Answers that a healthy service gives; 410 is for a loss that came too late."""


def summary(played: Played) -> dict[str, Any]:
    """One JSON object; times of requests in milliseconds."""
    return {
        "seconds": played.seconds,
        "decided": len(played.losses),
        "stored": played.stored,
        "missing": played.missing,
        "loss": float(np.mean([loss for _, loss, _ in played.losses])) if played.losses else None,
        "loss_over_time": _over_time(played),
        "latency_ms": {kind: _percentiles(each) for kind, each in played.latency.items()},
        "answers": {kind: dict(sorted(each.items())) for kind, each in played.answers.items()},
        "errors": sum(
            count
            for each in played.answers.values()
            for code, count in each.items()
            if code not in EXPECTED
        ),
    }


def _over_time(played: Played) -> list[dict[str, Any]]:
    """Mean loss of stretches with equally many decisions, in the order they were asked for."""
    if not played.losses:
        return []
    ordered = sorted(played.losses)
    stretches = np.array_split(np.arange(len(ordered)), min(PARTS, len(ordered)))
    rows = [[ordered[place] for place in stretch] for stretch in stretches]
    return [
        {
            "until": part[-1][0],
            "decisions": len(part),
            "loss": float(np.mean([loss for _, loss, _ in part])),
            "release": max(release for _, _, release in part),
        }
        for part in rows
    ]


def _percentiles(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    p50, p90, p99, most = (1000 * np.quantile(seconds, [0.5, 0.9, 0.99, 1.0])).tolist()
    return {"p50": p50, "p90": p90, "p99": p99, "max": most}
