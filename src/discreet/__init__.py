"""discreet: private contextual bandits that people can trust and run.

Docstrings cite as [Name Year], or [paper, …]; docs/references.md says what is meant.
"""

from discreet.actions.decisions import explain_decision
from discreet.arrays.stacking import stack
from discreet.design.control import Control
from discreet.design.outcome import Guardrail, Loss, Reward
from discreet.errors import (
    BudgetExceeded,
    CorruptRelease,
    DecisionClosed,
    DiscreetError,
    InvalidInput,
    LossConflict,
    NotReady,
    PrivateData,
    ServiceError,
    StateClaimed,
    UnknownDecision,
)
from discreet.features.category import Category
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.hashed import Hashed
from discreet.features.joint import Joint
from discreet.features.number import Number
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.learner import Learner
from discreet.oracles import FiniteClass, Logistic, Mechanism, Oracle, PooledRidge, Problem, Ridge
from discreet.plan.noise_forecast import SampleSizes, sample_sizes
from discreet.plan.plan import Plan
from discreet.plan.registry import POLICIES, register
from discreet.policies import *  # noqa: F403
from discreet.policies.allocation import Policy
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import SecureNoise, SeededNoise
from discreet.releases.catalogue import Catalogue
from discreet.releases.guardrails import guardrails
from discreet.releases.lift import Lift, lift
from discreet.releases.prior import Prior
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.simulate import Evaluation, PrivacyCurve, evaluate, privacy_curve
from discreet.simulate.off_policy import Logs, OfflineEvaluation, evaluate_offline
from discreet.simulate.warm_start import prior_from_logs, prior_from_released
from discreet.text import Advice

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "Budget",
    "BudgetExceeded",
    "Catalogue",
    "Category",
    "Control",
    "CorruptRelease",
    "Date",
    "DecisionClosed",
    "DiscreetError",
    "Evaluation",
    "FiniteClass",
    "Flag",
    "Guardrail",
    "Hashed",
    "InvalidInput",
    "Joint",
    "Learner",
    "Ledger",
    "Lift",
    "Logistic",
    "Logs",
    "Loss",
    "LossConflict",
    "Mechanism",
    "NotReady",
    "Number",
    "OfflineEvaluation",
    "Oracle",
    "Plan",
    "Policy",
    "PooledRidge",
    "Prior",
    "PrivacyCurve",
    "PrivateData",
    "Problem",
    "Release",
    "Released",
    "Reward",
    "Ridge",
    "SampleSizes",
    "Schema",
    "SecureNoise",
    "SeededNoise",
    "ServiceError",
    "StateClaimed",
    "UnitBall",
    "UnknownDecision",
    "evaluate",
    "evaluate_offline",
    "explain_decision",
    "guardrails",
    "lift",
    "prior_from_logs",
    "prior_from_released",
    "privacy_curve",
    "register",
    "sample_sizes",
    "stack",
]
__all__ += POLICIES.built_in
__all__.sort()
