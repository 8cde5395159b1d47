"""Whole grids of settings on many data sets, into one folder that can be resumed."""
