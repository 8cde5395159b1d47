"""Play a labelled set against a running service, as people would use it."""
