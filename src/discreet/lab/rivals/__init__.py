"""Published private bandits of other authors, on releases or with their own accounting.

They have published or tight constants and are for comparison in simulation.
[docs/results/table.md; docs/privacy/rivals.md]
"""

from discreet.lab.rivals.adassp import AdaSSP
from discreet.lab.rivals.coded_bandit import CodedBandit
from discreet.lab.rivals.linucb_rivals import (
    AdaPrivateTS,
    BatchedLinUCB,
    LocalLinUCB,
    PlainLinUCB,
    ShuffledLinUCB,
    TreeLinUCB,
)
from discreet.lab.rivals.release_policies import EpsGreedy, ThompsonSampling

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
