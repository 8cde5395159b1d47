"""Commands as the tests of the command line call them."""

from cli.conftest import call, document

__all__ = ["call", "document"]
