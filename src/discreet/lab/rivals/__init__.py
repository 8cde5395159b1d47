"""Published private bandits of other authors, one algorithm per file.

They have published or tight constants and are for comparison in simulation.
[docs/results/table.md; docs/privacy/rivals.md]
"""

from discreet.lab.rivals.adaprivate_ts import AdaPrivateTS
from discreet.lab.rivals.adassp import AdaSSP
from discreet.lab.rivals.batched_linucb import BatchedLinUCB
from discreet.lab.rivals.coded_bandit import CodedBandit
from discreet.lab.rivals.eps_greedy import EpsGreedy
from discreet.lab.rivals.local_linucb import LocalLinUCB
from discreet.lab.rivals.plain_linucb import PlainLinUCB
from discreet.lab.rivals.shuffled_linucb import ShuffledLinUCB
from discreet.lab.rivals.thompson_sampling import ThompsonSampling
from discreet.lab.rivals.tree_linucb import TreeLinUCB

__all__ = [
    "AdaPrivateTS",
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
