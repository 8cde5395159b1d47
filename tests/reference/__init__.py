"""Slow literal transcriptions of the paper's formulas.

Loops over rows and actions, e_a ⊗ b written out in full, nothing shared with ``discreet``:
the fast code must agree with these.
"""
