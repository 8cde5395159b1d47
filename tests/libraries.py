"""The array libraries that tests run: NumPy, and torch where it is installed."""

import pytest

NO_TORCH = "torch must be installed for this test: make test-torch"
LIBRARIES = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]
