"""Plan of an experiment: checks, explanation, noise forecast, registry, configuration."""
