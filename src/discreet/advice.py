"""Warnings where people often go wrong, each with a page and a way to silence it.

They come from public numbers, or from data that was handed over for evaluation. No warning ever
depends on a private row.
"""

from __future__ import annotations

import warnings


class Advice(UserWarning):
    """Something that is allowed and probably not meant.

    Silence all with ``warnings.simplefilter("ignore", discreet.Advice)``.
    """


def advise(topic: str, words: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller; Python shows the same words once per place."""
    warnings.warn(f"{words} [docs/warnings.md#{topic}]", Advice, stacklevel=stacklevel)
