"""The theory's experiments: regret measured where the truth is known, beside the bounds."""
