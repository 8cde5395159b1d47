"""One policy per file; each rule is written once, on arrays with any leading axes.

A class that is imported here is built in: the registry and all lists read these imports.
"""

from typing import TYPE_CHECKING

from discreet.policies.adacb import AdaCB as AdaCB
from discreet.policies.adaptive_po import AdaptivePO as AdaptivePO
from discreet.policies.allocation import Policy as Policy
from discreet.policies.bonus_po import BonusPO as BonusPO
from discreet.policies.fastcb import FastCB as FastCB
from discreet.policies.greedy import Greedy as Greedy
from discreet.policies.linucb import LinUCB as LinUCB
from discreet.policies.regcb import RegCB as RegCB
from discreet.policies.replay_bonus_po import ReplayBonusPO as ReplayBonusPO
from discreet.policies.squarecb import SquareCB as SquareCB
from discreet.policies.uniform import Uniform as Uniform
from discreet.policies.vanilla_po import VanillaPO as VanillaPO

if not TYPE_CHECKING:  # a type checker reads the imports above instead
    __all__ = [name for name, item in vars().items() if isinstance(item, type)]
