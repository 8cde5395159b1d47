"""A small private plan, which tests change where it matters."""

import discreet as dc


def small_plan(**changes):
    """Two actions, two numbers per context, and ε = 1 at δ = 1e-5."""
    base = {"features": dc.UnitBall(2), "budget": dc.Budget(1.0, 1e-5)}
    counted = {} if "actions" in changes else {"n_actions": 2}
    return dc.Plan(**base | counted | changes)
