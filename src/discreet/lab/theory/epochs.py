"""The clock of the batched algorithms. [paper, "Policy representation and the epoch schedule"]"""

from __future__ import annotations

from discreet.policies.oracle_errors import epochs
from discreet.validate import whole


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
