"""Running experiments: decisions, releases, background tasks, creation and restore."""
