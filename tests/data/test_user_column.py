"""A column of ids in a file: whose row each is, and no context."""

import pytest

from discreet.data import load
from discreet.errors import InvalidInput
from wording import refused

LINES = ["size,who,kind,bought", "0.1,7,a,yes", "0.2,8,b,no", "0.3,7,a,no", "0.4,9,b,yes"]


@pytest.fixture
def written(tmp_path):
    def write(lines, name="sales.csv"):
        (tmp_path / name).write_text("\n".join(lines))
        return tmp_path / name

    return write


def test_ids_are_taken_out(written):
    path = written(LINES)
    data, without = load(path, user="who"), load(path)
    assert data.users.tolist() == ["7", "8", "7", "9"]
    assert data.contexts.tolist() == without.contexts[:, [0, 2, 3]].tolist()
    assert data.labels.tolist() == without.labels.tolist()
    assert data.source.titles == ("size", "kind")
    assert without.users is None
    other = load(written([each.replace(",9,", ",8,") for each in LINES], "b.csv"), user="who")
    assert (data.contexts == other.contexts).all()
    assert data.digest != other.digest
    kept = load(path, user="who", encoded=False)  # for a schema
    assert (kept.dimension, kept.source.titles, len(kept.users)) == (0, ("size", "kind"), 4)


def test_ids_of_words_become_no_columns(written):
    data = load(written([line.replace(",7,", ",anna,").replace(",8,", ",bob,") for line in LINES
                         if ",9," not in line]), user="who")  # fmt: skip
    assert data.users.tolist() == ["anna", "bob", "anna"]
    assert data.dimension == 3  # size and two kinds


def test_what_is_no_column_of_ids(written):
    path = written(LINES)
    with refused(InvalidInput, "user must be a column of the file", "'bought'", "'who'"):
        load(path, user="whom")
    with refused(InvalidInput, "user must be a column of the file"):
        load(path, user="bought")
    with refused(InvalidInput, "must be text or whole numbers"):
        load(path, user="size")
    with refused(InvalidInput, "must be known in every record; record 2 has none"):
        load(written([each.replace(",8,", ",,") for each in LINES]), user="who")
    with refused(InvalidInput, "user must be left out for 'fried'"):
        load("fried", user="who")
