"""The small real sets that come with scikit-learn."""

from __future__ import annotations

from dataclasses import replace

from discreet.data.dataset import Dataset, labelled
from discreet.validate import installed

BUNDLED = ("breast_cancer", "digits", "iris", "wine")


def bundled(name: str) -> Dataset:
    """One of ``BUNDLED``, with its numbers as they are: features are scaled by rule, not by data.

    Source: ``sklearn.datasets``; the original sets are from the UCI repository.
    """
    instead = ", or use a generated set such as fried"
    installed("campaign", f"for {name!r}", "sklearn", instead=instead)
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    data = labelled(name, found.data, found.target)
    return replace(data, classes=tuple(map(str, found.target_names)))
