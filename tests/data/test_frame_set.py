"""A frame makes the set that its file makes."""

import pandas as pd
import polars as pl
import pytest

from discreet.data import from_frame, load
from discreet.errors import InvalidInput
from wording import refused

FRAME = pd.DataFrame(
    {
        "age": [1.0, None, 3.0, 4.0],
        "kind": ["no", "yes", "no", "yes"],
        "town": ["Bern", "Basel", None, "Bern"],
        "old": [True, False, True, False],
    }
)


@pytest.mark.parametrize("made", [FRAME, pl.from_pandas(FRAME), FRAME.astype({"town": "category"})])
def test_a_frame_is_its_file(made, tmp_path):
    FRAME.to_parquet(tmp_path / "set.parquet")
    expected = load(tmp_path / "set.parquet", target="kind")
    found = from_frame(made, target="kind")
    assert found.digest == expected.digest
    assert found.classes == expected.classes == ("no", "yes")


def test_what_is_no_set_is_refused():
    with refused(InvalidInput, "at least two columns"):
        from_frame(FRAME[["age"]])
    with refused(InvalidInput, "column 'at'", "text"):
        from_frame(FRAME.assign(at=pd.to_datetime(["2026-01-01"] * 4)), target="kind")
    with refused(InvalidInput, "target", "'kind'?"):
        from_frame(FRAME, target="kinds")
