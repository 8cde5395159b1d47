"""Other people's private bandits: one algorithm per file, with published and with tight constants.

They exist to be compared with, in simulation. [docs/results/table.md; docs/privacy/rivals.md]
"""

from discreet.rivals.adassp import AdaSSP
from discreet.rivals.batched_linucb import BatchedLinUCB
from discreet.rivals.coded_bandit import CodedBandit
from discreet.rivals.eps_greedy import EpsGreedy
from discreet.rivals.local_linucb import LocalLinUCB
from discreet.rivals.plain_linucb import PlainLinUCB
from discreet.rivals.shuffled_linucb import ShuffledLinUCB
from discreet.rivals.thompson_sampling import ThompsonSampling
from discreet.rivals.tree_linucb import TreeLinUCB

__all__ = [
    "AdaSSP",
    "BatchedLinUCB",
    "CodedBandit",
    "EpsGreedy",
    "LocalLinUCB",
    "PlainLinUCB",
    "ShuffledLinUCB",
    "ThompsonSampling",
    "TreeLinUCB",
]
