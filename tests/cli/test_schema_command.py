"""``discreet schema``: a commented file from a public sample."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc

RNG = np.random.default_rng(0)
ROWS = 300


@pytest.fixture
def sample(tmp_path):
    lines = ["customer,age,device,clicked"]
    for row in range(ROWS):
        age = "" if row % 20 == 0 else RNG.integers(18, 80)
        lines.append(f"{1000 + row},{age},{RNG.choice(['phone', 'desk'])},{row % 2}")
    path = tmp_path / "sample.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_sample_becomes_a_commented_file_that_can_be_used(call, document, sample, tmp_path):
    out = tmp_path / "schema.toml"
    code, out_text, _ = call("schema", str(sample), "--without", "clicked", "--out", str(out))
    assert code == 0
    assert "2 columns" in out_text
    text = out.read_text()
    assert "must be public. Do NOT make this file from the people" in text
    assert "# customer: Another whole number in each row: an identifier." in text
    schema = dc.Schema.from_toml(out)
    assert schema == dc.Schema(
        [
            dc.Number("age", 0, 80, clip=True, indicator=True),
            dc.Category("device", ["desk", "phone"], other=True),
        ]
    )
    flags = ["--data", str(sample), "--target", "clicked", "--schema", str(out), "--seeds", "1"]
    assert document("run", *flags)["plan"]["features"]["kind"] == "Schema"


def test_without_a_file_it_is_printed(call, document, sample):
    assert "[[fields]]" in call("schema", str(sample))[1]
    answer = document("schema", str(sample), "--without", "clicked")
    assert (answer["left_out"], answer["features"]) == (["customer"], 1 + 3 + 3)


def test_mistakes(refuses, sample, tmp_path):
    present, bare = tmp_path / "present.toml", tmp_path / "bare.csv"
    present.write_text("mine")
    bare.write_text("1,2\n3,4\n5,6\n")
    for arguments, words in (
        ([sample, "--out", present], "(File exists)"),
        ([sample, "--without", "clickd"], "Did you mean 'clicked'?"),
        ([bare], "must have a header"),
    ):
        refuses("schema", *arguments, words=words)
    assert present.read_text() == "mine"
