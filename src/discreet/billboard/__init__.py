"""Signed, hash-chained releases: written by a service, verified and evaluated by anyone."""
