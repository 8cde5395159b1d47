"""What runs the experiment: decisions, releases, upkeep, beginning and restoring it."""
