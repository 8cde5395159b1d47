"""Command line: one command per file, with its flags and its output."""
