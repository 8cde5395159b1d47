"""Regression oracles: configurations, and the mechanisms that they are calibrated into."""

from discreet.oracles.configurations import FiniteClass, Logistic, PooledRidge, Ridge
from discreet.oracles.contract import Mechanism, Oracle, Problem

__all__ = ["FiniteClass", "Logistic", "Mechanism", "Oracle", "PooledRidge", "Problem", "Ridge"]
