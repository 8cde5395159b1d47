"""A real Chromium for the tests of pages, where there is one."""

import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
needs_chromium = pytest.mark.skipif(
    PROGRAM is None, reason="Chromium must be installed to test pages: apt install chromium"
)


@contextmanager
def chromium():
    """A browser without any extension, cache or history."""
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM)
        try:
            yield browser
        finally:
            browser.close()


def violations(page):
    """What it finds, of any impact: contrast, labels, roles, order of headings."""
    from axe_playwright_python.sync_playwright import Axe

    return [(each["id"], each["impact"]) for each in Axe().run(page).response["violations"]]
