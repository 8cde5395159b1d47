"""Names become handles: folders, collections, files, and the errors for wrong ones."""

import pickle

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.data import load, resolve
from discreet.data.openml import collection
from wording import refused

INDEX = "slug,openml_id,in_paper,rows,features,classes\n"


def write(folder, name, rows=6, classes=2):
    folder.mkdir(exist_ok=True)
    contexts = np.arange(2.0 * rows).reshape(rows, 2)
    np.savez(folder / f"{name}.npz", X=contexts, y=np.arange(rows) % classes)


@pytest.fixture
def plain(tmp_path):
    folder = tmp_path / "plain"
    for name in ("b", "a"):
        write(folder, name)
    (folder / "c.csv").write_text("x,class\n1,0\n2,1\n3,0\n")
    (folder / "README.txt").write_text("not a set")
    return folder


@pytest.fixture
def indexed(tmp_path):
    folder = tmp_path / "indexed"
    for name in ("one", "two", "three", "unlisted"):
        write(folder, name)
    lines = "three,3,1,6,2,2\none,1,0,6,2,2\ntwo,,1,,,\n"
    (folder / "INDEX.csv").write_text(INDEX + lines)
    return folder


def names(*given):
    return [handle.name for handle in resolve(list(map(str, given)))]


def test_a_folder_without_an_index(plain):
    assert names(plain) == ["a", "b", "c"]
    assert [handle.load().name for handle in resolve([plain])] == ["a", "b", "c"]


def test_a_folder_with_an_index(indexed):
    assert names(indexed) == ["three", "one", "two"]
    three, _, two = resolve([indexed])
    assert (three.rows, three.features, three.classes) == (6, 2, 2)
    assert (two.rows, two.features, two.classes) == (None, None, None)
    assert two.load().rows == 6
    assert names(f"{indexed}:paper") == ["three", "two"]
    assert names(f"{indexed}:one") == ["one"]
    with refused(InvalidInput, "3 in", "Did you mean 'three'?"):
        resolve([f"{indexed}:thre"])


def test_the_papers_collection():
    handles = resolve(["paper"])
    assert len(handles) == len({handle.name for handle in handles}) == 100
    assert {handle.kind for handle in handles} == {"openml"}
    assert "openml:901" in [handle.name for handle in handles]
    assert list(collection("paper")) == sorted(collection("paper"))


def test_each_set_once_in_the_order_of_the_names(indexed):
    given = ["iris", f"{indexed}:paper", "openml:901", indexed, "iris", "openml:0901"]
    assert names(*given) == ["iris", "three", "two", "openml:901", "one"]


def test_a_handle_goes_to_another_process(plain):
    for handle in resolve([plain, "fried:9", "openml:901"]):
        again = pickle.loads(pickle.dumps(handle))
        assert again == handle
        if handle.kind != "openml":
            assert again.load().digest == handle.load().digest


def test_a_file_that_is_not_what_the_index_says(tmp_path):
    for counts, words in (("7,2,2", "7 rows"), ("6,2,3", "3 classes")):
        write(tmp_path / "sets", "one")
        (tmp_path / "sets" / "INDEX.csv").write_text(INDEX + f"one,,0,{counts}\n")
        (handle,) = resolve([tmp_path / "sets"])
        with refused(InvalidInput, "one", words, "INDEX.csv"):
            handle.load()


@pytest.mark.parametrize(
    ("index", "words"),
    [
        *((each, ["slug"]) for each in ("", "name,rows\na,3\n", "slug\n\n")),
        ("slug\n\xff\xfe\n", ["UTF-8"]),
        ("slug,rows\n,3\n", ["slug"]),
        ("slug\n../secret\n", ["plain name"]),
        ("slug\nabsent\n", ["absent", "are there"]),
        ("slug\na\na\n", ["'a'", "twice"]),
    ],
)
def test_an_index_that_cannot_be_used(plain, index, words):
    (plain / "INDEX.csv").write_text(index, encoding="latin-1")
    with refused(InvalidInput, "INDEX.csv", *words):
        resolve([plain])


def test_the_paper_needs_an_index_that_tells(plain):
    with refused(InvalidInput, "INDEX.csv", "No such file"):
        resolve([f"{plain}:paper"])
    (plain / "INDEX.csv").write_text("slug\na\n")
    with refused(InvalidInput, "in_paper"):
        resolve([f"{plain}:paper"])
    (plain / "INDEX.csv").write_text("slug,in_paper\na,0\n")
    with refused(InvalidInput, "in_paper"):
        load(f"{plain}:paper")


def test_two_sets_of_one_name(plain, tmp_path):
    write(tmp_path / "other", "a")
    with refused(InvalidInput, "different names", "'a'", "plain", "other"):
        resolve([plain, tmp_path / "other"])
    write(tmp_path / "third", "fried")
    with refused(InvalidInput, "'fried'", "generated", "NAME:ROWS"):
        resolve(["fried", tmp_path / "third"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ["at least one"]),
        ("fried", ["list", "'fried'"]),
        (["freid"], ["Did you mean 'fried'?"]),
        (["opnml:3"], ["openml:NUMBER"]),
        (["fried:many"], ["'fried:many'"]),
        (["iris:30"], ["'iris:30'"]),
        *(([f"openml:{each}"], ["openml:901"]) for each in ("", "fried", "-1", "0")),
        (["nowhere/at/all"], ["folder", "'nowhere/at/all'"]),
        (["nowhere.parquet"], ["nowhere.parquet", "Check the path"]),
        (["notes.txt"], [".npz, .csv or .parquet", "'notes.txt'"]),
    ],
)
def test_names_that_stand_for_nothing(given, words):
    with refused(InvalidInput, *words):
        resolve(given)


@pytest.mark.parametrize("name", ["paper", "folder", "folder:paper"])
def test_loading_takes_one_set(indexed, name):
    given = name.replace("folder", str(indexed))
    with refused(InvalidInput, "one set", given) as caught:
        load(given)
    # The one it proposes is a good name.
    assert len(resolve([str(caught.value).split("'")[-2]])) == 1
