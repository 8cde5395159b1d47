"""Labelled data: generators we ship, bundled sets, files."""
