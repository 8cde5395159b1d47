"""One policy a file; each rule is written once, on arrays with any leading axes."""

from discreet.policies.adacb import AdaCB
from discreet.policies.allocation import Policy
from discreet.policies.bonus_po import BonusPO
from discreet.policies.fastcb import FastCB
from discreet.policies.greedy import Greedy
from discreet.policies.linucb import LinUCB
from discreet.policies.regcb import RegCB
from discreet.policies.replay_bonus_po import ReplayBonusPO
from discreet.policies.squarecb import SquareCB
from discreet.policies.uniform import Uniform
from discreet.policies.vanilla_po import VanillaPO

__all__ = [
    "AdaCB",
    "BonusPO",
    "FastCB",
    "Greedy",
    "LinUCB",
    "Policy",
    "RegCB",
    "ReplayBonusPO",
    "SquareCB",
    "Uniform",
    "VanillaPO",
]
