"""PRIVATE rows: slots, people, saved state, log import, and ``release_batch()``."""
