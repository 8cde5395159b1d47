"""The only tolerances in the test suite, besides statistical bounds with a stated rate."""

EXACT = 1e-12
"""Two ways of writing the same elementary formula."""

SOLVER = 1e-8
"""Two ways of solving the same system or minimising the same objective."""

HANG = 600.0
"""Seconds after which a process or a thread is taken to hang; no result depends on them."""
