"""The pictures of tutorials: files that the blocks of the page draw, committed for its readers.

    python tests/tutorial_pictures.py [NAME …]

runs the tutorials, or those named, and writes what they drew into docs/images/tutorials, in few
colours.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
PICTURES = ROOT / "docs" / "images" / "tutorials"
COLOURS = 64
MOST_WIDE = 1_000
"""Pixels; a page shows no more."""
MOST_BYTES = 60_000
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def pictures(page):
    """Where the pictures lie that the blocks of a tutorial draw; none for other pages."""
    if page.parent != TUTORIALS:
        return []
    linked = [(page.parent / link).resolve() for link in PICTURE.findall(page.read_text())]
    return [picture for picture in linked if picture.is_relative_to(PICTURES)]


def drawn_picture(picture, folder):
    """The one file in the folder that a run drew under the picture's name."""
    found = list(folder.rglob(picture.name))
    assert len(found) == 1, f"the blocks of the page must draw {picture.name}; they drew {found}"
    assert found[0].read_bytes().startswith(b"\x89PNG"), picture
    return found[0]


def draw(page):
    """Run a tutorial and keep its pictures."""
    from PIL import Image

    from page_blocks import run_page

    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_STATE_HOME"] = place  # of services: nothing is written at home
        run_page(page.read_text(), Path(place), page.name)
        for picture in pictures(page):
            picture.parent.mkdir(parents=True, exist_ok=True)
            drawn = Image.open(drawn_picture(picture, Path(place))).convert("RGB")
            drawn.thumbnail((MOST_WIDE, MOST_WIDE))
            drawn.quantize(COLOURS).save(picture, optimize=True)
            print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    for each in sorted(TUTORIALS.glob("*.md")):
        if not sys.argv[1:] or each.stem in sys.argv[1:]:
            draw(each)
