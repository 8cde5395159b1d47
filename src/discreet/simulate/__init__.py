"""Playing labelled data as a bandit."""

from discreet.simulate.evaluation import Evaluation, evaluate
from discreet.simulate.privacy_curve import PrivacyCurve, privacy_curve

__all__ = ["Evaluation", "PrivacyCurve", "evaluate", "privacy_curve"]
