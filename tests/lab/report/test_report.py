"""The figure and the page: what they show, and that they ask nothing of the network."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from discreet.lab.campaign.presets import ROUNDS
from discreet.lab.report.demo import demo_figure, demo_page
from discreet.lab.report.figures import STYLES
from discreet.lab.report.selection import REFERENCE, SHORT

pytest.importorskip("matplotlib")

NAMES = ["SquareCB", "LinUCB", "Supervised"]
LOSSES = {"SquareCB": 0.4123, "LinUCB": 0.3456, "Supervised": 0.1234}


def results(**changes):
    """A demo's results in miniature, as read back from their file."""
    runs = [
        {
            "data": data,
            "algorithm": name,
            "epsilon": epsilon,
            "loss": LOSSES[name],
            "standard_error": 0.0056 if data == "fried" else None,
            "rounds": [16, 100, 1000],
            "curve": [0.5, 0.45, LOSSES[name]],
        }
        for data in ("fried", "digits")
        for name in NAMES
        for epsilon in (1.0, "inf")
    ]
    return {
        "version": "1.2.3",
        "note": "noise scale of ε; seeded noise, not private",
        "settings_note": "fixed settings",
        "sets": [
            {"name": "fried", "rows": 1000, "dimension": 10, "n_actions": 2, "best_loss": 0.06}
            | {"best_fixed": 0.49, "uniform": 0.5},
            {"name": "digits", "rows": 1797, "dimension": 64, "n_actions": 10, "best_loss": None}
            | {"best_fixed": 0.89, "uniform": 0.9},
        ],
        "epsilons": [1.0, "inf"],
        "algorithms": [
            {
                "name": name,
                "feedback": "full" if name == "Supervised" else "bandit",
                "text": f"{name}(scale=4.0)",
            }
            for name in NAMES
        ],
        "runs": runs,
        "private": {"statement": "A private run: ε = 1.", "assumptions": ["one record a person"]},
    } | changes


class References(HTMLParser):
    """Everything in a page that a browser might fetch or run."""

    def __init__(self, text):
        super().__init__()
        self.found = re.findall(r"url\((?!#)[^)]*\)|@import[^;]*|image-set\([^)]*\)", text)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        for name, value in attributes:
            points = name.split(":")[-1] in ("src", "href", "srcset", "action", "poster", "data")
            if points and not (value or "").startswith(("#", "data:,")):
                self.found.append(f"{name}={value}")


def test_a_page_fetches_nothing_and_words_of_a_result_file_cannot_become_markup():
    page = demo_page(results(note="<script>alert(1)</script>"))
    assert References(page).found == []
    for planted in ('<img src="picture.png">', "<script>1</script>", "<style>@import 'a';</style>"):
        assert References(page + planted).found != []


def test_the_page_says_what_is_claimed():
    text = demo_page(results())
    for said in (
        "noise scale of ε; seeded noise, not private",
        "fixed settings",
        "A private run: ε = 1.",
        "one record a person",
        "SquareCB(scale=4.0)",
        "version 1.2.3",
        'name="viewport" content="width=device-width',
        "prefers-color-scheme: dark",
        'content="light dark"',
    ):
        assert said in text


def test_tables_hold_the_losses_and_mark_the_best_bandit():
    text = demo_page(results())
    first, second = re.findall(r"(?s)<table><caption>.*?</table>", text)
    assert first.count("<td>0.412 <small>± 0.006</small></td>") == 2
    assert first.count("<td><b>0.346</b> <small>± 0.006</small></td>") == 2
    assert first.count("<td>0.123 <small>± 0.006</small></td>") == 2
    assert second.count("<td>0.412</td>") == 2  # one seed has no standard error
    assert "is 0.060" in first
    assert "best possible" not in second


def test_svg_is_xml_with_one_legend_and_every_panel():
    root = ET.fromstring(demo_figure(results()).svg())
    texts = [
        "".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")
    ]
    assert [texts.count(name) for name in NAMES] == [1, 1, 1]
    assert {"ε = 1", "ε = ∞", "fried: mean loss so far", "digits: mean loss so far"} <= set(texts)


def test_the_inline_figure_takes_ink_and_size_from_the_page():
    inline = demo_figure(results()).inline()
    assert inline.startswith("<svg")
    assert "currentColor" in inline
    assert not re.search(r'<svg[^>]* (width|height)="', inline)
    assert "#222222" not in inline
    assert "viewBox" in inline
    assert "currentColor" not in demo_figure(results()).svg()


def test_no_two_algorithms_look_alike():
    rivals = [*ROUNDS, "Epsilon-greedy", "Thompson", "AdaSSP"]
    assert {*rivals, *SHORT, REFERENCE, "Default"} <= {*STYLES}
    for names in ([*SHORT, REFERENCE, "Default"], [*rivals, "Default"]):
        assert len({(STYLES[name][0], str(STYLES[name][1])) for name in names}) == len(names)
