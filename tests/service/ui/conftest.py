"""Without the extra ``serve`` there is no dashboard to test."""

try:
    import discreet.service.app  # noqa: F401
except ImportError:
    collect_ignore_glob = ["test_*.py"]
