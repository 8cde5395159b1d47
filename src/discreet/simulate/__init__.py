"""Playing labelled data as a bandit."""

from discreet.simulate.environment import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
