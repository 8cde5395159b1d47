"""Experimental design, declared before the first decision."""
