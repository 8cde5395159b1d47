"""Rows in a release without noise, found from its sums without code of the service."""

import itertools
import math

from service.attack.outside_store import context

MOST = 12
"""Rows of one batch whose answers were lost: each doubles what must be tried."""


def is_sum_of(statistics, received, maybe, mark):
    """Whether a release is the sum of the rows ``heard``, and of any of those in ``maybe``.

    A row is (number of its request, place of its action, loss).
    """
    assert len(maybe) <= MOST, "too many answers were lost to tell"
    blocks = statistics["response"]["shape"][0]
    reported = [_numbers(statistics[name]) for name in ("gram", "response")]
    reported = list(itertools.chain(*reported))
    known = _sums(received, blocks, mark)
    rest = [one - other for one, other in zip(reported, known, strict=True)]
    return any(
        all(abs(one - other) < 1e-9 for one, other in zip(rest, sums, strict=True))
        for size in range(len(maybe) + 1)
        for some in itertools.combinations(maybe, size)
        for sums in [_sums(some, blocks, mark)]
    )


def _sums(rows, blocks, mark):
    """Σ b bᵀ (upper triangles) of all actions, then Σ (loss − ½) b, with b = (1, context)/√2."""
    size = 1 + len(context(mark, 0))
    gram = [[0.0] * (size * (size + 1) // 2) for _ in range(blocks)]
    response = [[0.0] * size for _ in range(blocks)]
    for number, action, loss in rows:
        long = [1.0, *context(mark, number)]
        for place, (one, two) in enumerate(itertools.combinations_with_replacement(long, 2)):
            gram[action][place] += one * two / 2
        for place, each in enumerate(long):
            response[action][place] += (loss - 0.5) * each * math.sqrt(0.5)
    return [*itertools.chain(*gram), *itertools.chain(*response)]


def _numbers(array):
    return [math.ldexp(each, array["exponent"]) for each in array["integers"]]
