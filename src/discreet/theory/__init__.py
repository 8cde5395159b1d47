"""The paper's statements as functions: one each, named after it, with its constants written out."""

from discreet.theory.bound import Bound
from discreet.theory.epochs import batch_length, epochs, fits
from discreet.theory.lemmas import (
    bonus_po_predicted_regret,
    bonus_po_probability,
    geometric_average,
    late_round,
    predicted_to_true_regret,
    prediction_error,
    vanilla_po_predicted_regret,
    vanilla_po_probability,
)
from discreet.theory.oracle_errors import (
    approximate_erm_error,
    batch_error,
    batch_least_squares_error,
    exponential_mechanism_error,
    exponential_mechanism_excess,
    least_squares_error,
)
from discreet.theory.rates import (
    BonusParameters,
    batched_bonus_po_parameters,
    batched_vanilla_po_order,
    batched_vanilla_po_rate,
    vanilla_po_rate,
)
from discreet.theory.regret_bounds import (
    batched_bonus_po_epoch_regret,
    batched_bonus_po_regret,
    batched_vanilla_po_epoch_regret,
    batched_vanilla_po_regret,
    concentration,
    pathwise_regret,
    vanilla_po_regret,
    vanilla_po_regret_at,
)
from discreet.theory.statements import (
    STATEMENTS,
    Statement,
    all_statements,
    below_horizon_from,
    statement,
)

__all__ = [
    "STATEMENTS",
    "BonusParameters",
    "Bound",
    "Statement",
    "all_statements",
    "approximate_erm_error",
    "batch_error",
    "batch_least_squares_error",
    "batch_length",
    "batched_bonus_po_epoch_regret",
    "batched_bonus_po_parameters",
    "batched_bonus_po_regret",
    "batched_vanilla_po_epoch_regret",
    "batched_vanilla_po_order",
    "batched_vanilla_po_rate",
    "batched_vanilla_po_regret",
    "below_horizon_from",
    "bonus_po_predicted_regret",
    "bonus_po_probability",
    "concentration",
    "epochs",
    "exponential_mechanism_error",
    "exponential_mechanism_excess",
    "fits",
    "geometric_average",
    "late_round",
    "least_squares_error",
    "pathwise_regret",
    "predicted_to_true_regret",
    "prediction_error",
    "statement",
    "vanilla_po_predicted_regret",
    "vanilla_po_probability",
    "vanilla_po_rate",
    "vanilla_po_regret",
    "vanilla_po_regret_at",
]
