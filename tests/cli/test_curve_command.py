"""``discreet curve``: table, figure and page, from the command line."""

from __future__ import annotations

import json

import pytest

COMMAND = ["curve"]
QUICK = ["--epsilon", "1", "inf", "--seeds", "2"]


@pytest.fixture
def sales(tmp_path):
    lines = [f"{'no' if n % 3 else 'yes'},{n % 3},{n}" for n in range(90)]
    (tmp_path / "sales.csv").write_text("\n".join(["bought,size,other", *lines]))
    return tmp_path / "sales.csv"


def test_the_document_has_every_number(document):
    found = document("--data", "fried", "--rows", 300, "--horizon", 100, *QUICK)
    assert found["format"] == "discreet-curve/1"
    assert found["rounds"] == 100
    assert [point["epsilon"] for point in found["table"]] == [1.0, "inf"]
    assert all(point["low"] < point["loss"] < point["high"] for point in found["table"])
    assert found["verdict"]


def test_target_features_and_rows(document, sales):
    found = document("--data", sales, "--target", "bought", "--rows", 60, *QUICK)
    assert found["data"] == {"name": "sales", "rows": 60, "n_actions": 2}
    raw = document("--data", sales, "--target", "bought", *QUICK)
    scaled = document("--data", sales, "--target", "bought", "--features", "ranges", *QUICK)
    assert scaled["table"] != raw["table"]
    assert any("own ranges" in note for note in scaled["notes"])
    assert not any("own ranges" in note for note in raw["notes"])


def test_a_page_and_a_figure_that_need_no_network(call, sales, tmp_path):
    out = tmp_path / "new" / "curve"
    code, text, _ = call("--data", sales, "--target", "1", *QUICK, "--out", out)
    assert code == 0
    page = (out / "index.html").read_text()
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    verdict = json.loads((out / "curve.json").read_text())["verdict"]
    assert verdict in text
    assert verdict in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "--target 1" in page
    assert str(out / "index.html") in text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--data", "fried", "--features", "wide"], "features must be one of 'raw', 'ranges'"),
        (["--data", "fried", "--seeds", "1"], "at least 2"),
        ([], "--data"),
    ],
)
def test_bad_flags_are_refused(flags, said, refuses):
    refuses(*flags, said=said)
