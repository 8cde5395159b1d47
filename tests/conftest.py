"""What all tests share."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory):
    """Anchors of experiments go where the tests go, not into anybody's home."""
    with pytest.MonkeyPatch.context() as patched:
        folder = tmp_path_factory.mktemp("state-home")
        patched.setenv("XDG_STATE_HOME", str(folder))
        yield folder
