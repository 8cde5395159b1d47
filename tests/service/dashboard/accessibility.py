"""What axe-core says of a page that is open in a browser."""


def violations(page):
    """What it finds, of any impact: contrast, labels, roles, order of headings."""
    from axe_playwright_python.sync_playwright import Axe

    return [(each["id"], each["impact"]) for each in Axe().run(page).response["violations"]]
