"""Other people's private bandits: one algorithm per file, with published and with tight constants.

They exist to be compared with, in simulation. [docs/results/table.md; docs/privacy/rivals.md]
"""

from discreet.rivals.batched_linucb import BatchedLinUCB
from discreet.rivals.local_linucb import LocalLinUCB
from discreet.rivals.plain_linucb import PlainLinUCB
from discreet.rivals.tree_linucb import TreeLinUCB

__all__ = ["BatchedLinUCB", "LocalLinUCB", "PlainLinUCB", "TreeLinUCB"]
