"""Bounds Err(T, δ) of the paper on the error of regression oracles over a finite class."""

from __future__ import annotations

import math

from discreet.validate import in_range, positive, whole


def epochs(T: int) -> int:
    """M = ⌈log2(T + 1)⌉. [paper, Algorithm 2]

    >>> epochs(1), epochs(3), epochs(4), epochs(40_768)
    (1, 2, 3, 16)
    """
    return whole("T", T, 1).bit_length()


def least_squares_error(F: int, delta: float) -> float:
    """24·log(|F|/δ): Σ_{s≤t} ‖f̂_t − f*‖²_{π_s} for all t at once, refitting every round.

    [paper, Lemma "Least-squares ERM under adaptive data collection"]
    The proof takes λ = 1/12 in its Bernstein step; λ = 3/14 is the largest that the same step
    allows and would give 28/3 in place of 24. We keep the stated constant.

    >>> round(least_squares_error(64, 0.05), 2)
    171.71
    """
    return 24.0 * math.log(_size(F) / _chance(delta))


def approximate_erm_error(F: int, delta: float, excess: float = 0.0) -> float:
    """2α + 10·log(2|F|/δ): n·‖f̃ − f*‖²_π of a fit within α of the least squared loss.

    The bound of one batch under one policy; α = 0 is least squares.
    [paper, Lemma "Accuracy of approximate ERM on a batch"]
    """
    in_range("excess", excess, 0.0, math.inf)
    return 2.0 * excess + 10.0 * math.log(2 * _size(F) / _chance(delta))


def exponential_mechanism_excess(F: int, delta: float, epsilon: float) -> float:
    """α = (2/ε)·log(2|F|/δ) ≥ the chosen function's loss − the least loss.

    This holds with probability 1 − δ/2 on every data set.
    [paper, proof of Lemma "Privacy and accuracy of finite-class regression"]
    """
    return 2.0 / float(positive("epsilon", epsilon)) * math.log(2 * _size(F) / _chance(delta))


def batch_least_squares_error(T: int, F: int, delta: float) -> float:
    """10·log(4|F|M/δ): one bound that holds for all batches with probability 1 − δ/2.

    [paper, equation "batch-erm-error"; the single-batch bound at δ/(2M)]

    >>> round(batch_least_squares_error(2**17, 64, 0.05), 2)
    114.31
    """
    return approximate_erm_error(F, _chance(delta) / (2 * epochs(T)))


def exponential_mechanism_error(T: int, F: int, delta: float, epsilon: float) -> float:
    """(10 + 4/ε)·log(4|F|M/δ): the bound of the exponential mechanism, which is ε-DP.

    [paper, equation "private-batch-error"]

    >>> round(exponential_mechanism_error(2**17, 64, 0.05, 1.0), 2)
    160.04
    """
    each = _chance(delta) / (2 * epochs(T))
    return approximate_erm_error(F, each, exponential_mechanism_excess(F, each, epsilon))


def batch_error(T: int, F: int, delta: float, epsilon: float = math.inf) -> float:
    """Err of the batched algorithms: least squares at ε = ∞, else the exponential mechanism."""
    if math.isinf(epsilon):
        return batch_least_squares_error(T, F, delta)
    return exponential_mechanism_error(T, F, delta, epsilon)


def _size(F: int) -> int:
    return whole("F", F, 1, "Give the number of functions in the class.")


def _chance(delta: float) -> float:
    """A failure probability in (0, 1)."""
    positive("delta", delta, "Give the probability with which the bound may fail.")
    return float(in_range("delta", delta, 0.0, 1.0, open_high=True))
