"""discreet: private contextual bandits that people can trust and run.

Docstrings cite as [Name Year], or [paper, …]; docs/references.md says what is meant. All names
that are imported here are public.
"""

import inspect
from typing import TYPE_CHECKING

from discreet.actions.decisions import explain_decision as explain_decision
from discreet.arrays.stacking import stack as stack
from discreet.design.control import Control as Control
from discreet.design.outcome import Guardrail as Guardrail
from discreet.design.outcome import Loss as Loss
from discreet.design.outcome import Reward as Reward
from discreet.errors import BudgetExceeded as BudgetExceeded
from discreet.errors import CorruptRelease as CorruptRelease
from discreet.errors import DecisionClosed as DecisionClosed
from discreet.errors import DiscreetError as DiscreetError
from discreet.errors import InvalidInput as InvalidInput
from discreet.errors import LossConflict as LossConflict
from discreet.errors import NotReady as NotReady
from discreet.errors import PrivateData as PrivateData
from discreet.errors import ServiceError as ServiceError
from discreet.errors import StateClaimed as StateClaimed
from discreet.errors import UnknownDecision as UnknownDecision
from discreet.features.category import Category as Category
from discreet.features.date import Date as Date
from discreet.features.flag import Flag as Flag
from discreet.features.hashed import Hashed as Hashed
from discreet.features.joint import Joint as Joint
from discreet.features.number import Number as Number
from discreet.features.schema import Schema as Schema
from discreet.features.unit_ball import UnitBall as UnitBall
from discreet.learner import Learner as Learner
from discreet.oracles import FiniteClass as FiniteClass
from discreet.oracles import Logistic as Logistic
from discreet.oracles import Mechanism as Mechanism
from discreet.oracles import Oracle as Oracle
from discreet.oracles import PooledRidge as PooledRidge
from discreet.oracles import Problem as Problem
from discreet.oracles import Ridge as Ridge
from discreet.plan.noise_forecast import SampleSizes as SampleSizes
from discreet.plan.noise_forecast import sample_sizes as sample_sizes
from discreet.plan.plan import Plan as Plan
from discreet.plan.registry import register as register
from discreet.policies import *  # noqa: F403
from discreet.privacy.budget import Budget as Budget
from discreet.privacy.ledger import Ledger as Ledger
from discreet.privacy.noise import SecureNoise as SecureNoise
from discreet.privacy.noise import SeededNoise as SeededNoise
from discreet.releases.catalogue import Catalogue as Catalogue
from discreet.releases.guardrails import guardrails as guardrails
from discreet.releases.lift import Lift as Lift
from discreet.releases.lift import lift as lift
from discreet.releases.prior import Prior as Prior
from discreet.releases.release import Release as Release
from discreet.releases.released import Released as Released
from discreet.simulate import Evaluation as Evaluation
from discreet.simulate import PrivacyCurve as PrivacyCurve
from discreet.simulate import evaluate as evaluate
from discreet.simulate import privacy_curve as privacy_curve
from discreet.simulate.off_policy import Logs as Logs
from discreet.simulate.off_policy import OfflineEvaluation as OfflineEvaluation
from discreet.simulate.off_policy import evaluate_offline as evaluate_offline
from discreet.simulate.warm_start import prior_from_logs as prior_from_logs
from discreet.simulate.warm_start import prior_from_released as prior_from_released
from discreet.text import Advice as Advice

__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker reads the imports above instead
    __all__ = sorted(
        name for name, item in vars().items() if inspect.isclass(item) or inspect.isroutine(item)
    )
