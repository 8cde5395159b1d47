"""Regression oracles: configurations, and the mechanisms that they are calibrated into."""

from discreet.oracles.contract import Mechanism, Oracle, Problem
from discreet.oracles.finite_class import FiniteClass
from discreet.oracles.logistic import Logistic
from discreet.oracles.pooled_ridge import PooledRidge
from discreet.oracles.ridge import Ridge

__all__ = ["FiniteClass", "Logistic", "Mechanism", "Oracle", "PooledRidge", "Problem", "Ridge"]
