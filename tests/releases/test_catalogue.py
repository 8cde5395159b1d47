"""Catalogues and their changes: public documents that are read back exactly, or refused."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import CorruptRelease
from discreet.releases.canonical import digest_of
from discreet.releases.catalogue import ActionChange, changes_of

SCHEMA = dc.Schema([dc.Number("year", 1900, 2000), dc.Hashed("id", 4)])
ITEMS = {"a": {"year": 1910}, "b": {"year": 1990}}


def test_items_come_in_several_forms():
    import pandas as pd

    plain = dc.Catalogue(SCHEMA, ITEMS)
    listed = dc.Catalogue(SCHEMA, [{"id": each, **ITEMS[each]} for each in ITEMS])
    framed = dc.Catalogue(SCHEMA, pd.DataFrame({"id": ["a", "b"], "year": [1910, 1990]}))
    for other in (listed, framed):
        assert other.ids == plain.ids
        np.testing.assert_array_equal(other.rows, plain.rows)
    assert list(plain) == ["a", "b"]
    assert "a" in plain
    assert len(plain) == 2


def test_an_id_may_be_a_feature():
    """It is a small block for each item, next to the features that all have."""
    a, b = dc.Catalogue(SCHEMA, {"a": {"year": 1950}, "b": {"year": 1950}}).rows
    assert not np.array_equal(a, b)


def test_items_join_and_leave():
    before = dc.Catalogue(SCHEMA, ITEMS)
    after = before.changed(add={"c": {"year": 1950}}, remove=["a"])
    assert after.ids == ("b", "c")
    np.testing.assert_array_equal(after.rows[0], before.rows[1])
    replaced = before.changed(add={"a": {"year": 2000}}, remove=["a"])
    assert replaced.ids == ("b", "a")


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({"a": {"yaer": 1}}, "item 'a': context must have the features of the schema"),
        ({"a": {"year": "old"}}, "item 'a'"),
        ({" a": {"year": 1950}}, "without blanks"),
        ([{"year": 1950}], "with 'id'"),
        ([{"id": "a", "year": 1950}] * 2, "got 'a'"),
        ({"a": [1.0]}, "features of item 'a'"),
        (7, "mapping of ids"),
    ],
)
def test_wrong_items_are_refused(items, words):
    with pytest.raises(dc.InvalidInput, match=words):
        dc.Catalogue(SCHEMA, items)


def test_wrong_changes_are_refused():
    catalogue = dc.Catalogue(SCHEMA, ITEMS)
    with pytest.raises(dc.InvalidInput, match="unknown or has left"):
        catalogue.changed(remove=["zz"])
    with pytest.raises(dc.InvalidInput, match="is in the catalogue"):
        catalogue.changed(add={"a": {"year": 1950}})


def test_a_row_longer_than_one_is_refused():
    with pytest.raises(dc.InvalidInput, match="length at most 1"):
        dc.Catalogue(dc.UnitBall(1), ids=["a"], rows=[[1.0, 1.0]])


def changes():
    rows = dc.Catalogue(SCHEMA, {"c": {"year": 1950}}).rows
    first = ActionChange(1, 0, ("c",), (), rows=rows, plan_digest="p", previous="p")
    return [first, ActionChange(2, 3, (), ("c",), plan_digest="p", previous=first.digest)]


def test_changes_are_read_back():
    made = changes()
    read = changes_of([each.to_json() for each in made], "p")
    assert [each.digest for each in read] == [each.digest for each in made]


@pytest.mark.parametrize(
    "broken",
    [
        lambda _, second: [second],
        lambda first, second: [second, first],
        lambda first, second: [first, replace(second, removed=("d",), previous="x")],
        lambda first, second: [first, replace(second, number=3)],
        lambda first, second: [replace(first, plan_digest="q"), second],
        lambda first, second: [replace(first, rows=4.0 * first.rows), second],
    ],
)
def test_what_does_not_follow_is_refused(broken):
    with pytest.raises(CorruptRelease):
        changes_of([each.to_json() for each in broken(*changes())], "p")


def test_a_document_with_more_in_it_is_refused():
    document = changes()[0].to_json() | {"because": "people disliked it"}
    with pytest.raises(CorruptRelease):
        ActionChange.from_json(document)
    assert digest_of(changes()[0].to_json()) == changes()[0].digest
