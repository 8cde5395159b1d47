"""The clock of the batched algorithms. [paper, "Policy representation and the epoch schedule"]"""

from __future__ import annotations

from discreet.validate import whole


def epochs(T: int) -> int:
    """M = ⌈log2(T + 1)⌉. [paper, Algorithm 2]

    >>> epochs(1), epochs(3), epochs(4), epochs(40_768)
    (1, 2, 3, 16)
    """
    return whole("T", T, 1).bit_length()


def fits(T: int) -> int:
    """Exactly M − 1 calls of the regression oracle: no fit uses the last batch.

    >>> fits(1), fits(40_768)
    (0, 15)
    """
    return epochs(T) - 1


def batch_length(m: int) -> int:
    """B_m = 2^(m−1), also where the horizon cuts the last epoch short.

    >>> [batch_length(m) for m in (1, 2, 3)]
    [1, 2, 4]
    """
    return 1 << (whole("m", m, 1) - 1)
