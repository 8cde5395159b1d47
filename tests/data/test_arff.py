"""ARFF files: nominal and missing values, quotes, and what is said about broken ones."""

import io

import numpy as np
import pytest
from scipy.io import arff

from discreet import InvalidInput
from discreet.data import load
from wording import refused

GOOD = r"""% a comment
@RELATION 'a file'

@ATTRIBUTE width REAL
@attribute 'the colour'  {red, 'light blue', "a, b", 'it\'s'}
@attribute	n	integer
@attribute grade{9,10,1}

@DATA
1.5, red, 1, 10
% another
?,'light blue',2,9
2.5 , "a, b" ,?, 10

-1e1,'it\'s',4,9
0,?,5,1
"""


def read(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "mine.arff"
    path.write_bytes(text.encode(encoding))
    return load(path)


def test_nominal_missing_and_quoted_values(tmp_path):
    data = read(tmp_path, GOOD)
    assert data.contexts[:, 0].tolist() == [1.5, 0.75, 2.5, -10, 0]
    # "a, b", "it's", "light blue", red, missing
    assert data.contexts[:, 1:6].argmax(axis=1).tolist() == [3, 2, 0, 1, 4]
    assert (data.contexts[:, 1:6].sum(axis=1) == 1).all()
    assert data.contexts[:, 6].tolist() == [1, 2, 3, 4, 5]
    assert data.classes == ("1", "9", "10")
    assert data.labels.tolist() == [2, 1, 2, 1, 0]


def test_another_reader_agrees(tmp_path):
    text = "@relation r\n@attribute a numeric\n@attribute b {x,y,z}\n@attribute c {n,p}\n@data\n"
    rng = np.random.default_rng(0)
    for _ in range(50):
        text += f"{rng.normal():.17g},{rng.choice(list('xyz'))},{rng.choice(['n', 'p'])}\n"
    records, _ = arff.loadarff(io.StringIO(text))
    data = read(tmp_path, text)
    assert (data.contexts[:, 0] == records["a"]).all()
    assert (data.contexts[:, 1:] == (records["b"][:, None] == np.array([b"x", b"y", b"z"]))).all()
    assert (data.labels == (records["c"] == b"p")).all()


def test_a_numeric_class_and_a_declared_question_mark(tmp_path):
    head = "@attribute a {?, b}\n@attribute class numeric\n@data\n"
    data = read(tmp_path, head + "?,3\nb,1\n?,1\n")
    assert data.contexts.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert data.labels.tolist() == [1, 0, 0]


def test_a_word_declared_twice_is_one_word(tmp_path):
    head = "@attribute a {b, b, c}\n@attribute class {x, y}\n@data\n"
    assert read(tmp_path, head + "b,x\nc,y\nb,y\n").contexts.tolist() == [[1, 0], [0, 1], [1, 0]]


HEAD = "@relation r\n@attribute a numeric\n@attribute c {x, y}\n@data\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["@attribute", "@data"]),
        ("@relation r\n@attribute a numeric\n@data\n1\n", ["two @attribute"]),
        ("@relation r\n@attribute a numeric\n@attribute c {x, y}\n", ["@data"]),
        (HEAD, ["records"]),
        (HEAD + "1,x\n2\n", ["line 6", "2 values"]),
        (HEAD + "1,x,3\n", ["line 5", "2 values"]),
        (HEAD + "{0 1, 1 x}\n", ["line 5", "sparse"]),
        (HEAD + "1,'x'y\n", ["line 5", "2 values"]),
        (HEAD + "one,x\n", ["line 5", "'a'", "a number", "'one'"]),
        (HEAD + "1,z\n", ["line 5", "'c'", "declared", "'z'"]),
        (HEAD + "1,x\n2,?\n3,y\n", ["class on every line", "record 2"]),
        (HEAD + "1,x\n2,x\n", ["2 classes"]),
        (HEAD + "1,x\n2,y\n", ["fewer classes"]),
        ("@attribute a string\n@attribute c {x, y}\n@data\n", ["line 1", "a string"]),
        ("@attribute a date yyyy\n@attribute c {x, y}\n@data\n", ["line 1", "dates"]),
        ("@attribute a\n@attribute c {x, y}\n@data\n", ["line 1"]),
    ],
)
def test_an_arff_file_that_cannot_be_used(tmp_path, text, words):
    with refused(InvalidInput, *words):
        read(tmp_path, text)


def test_an_arff_file_that_is_no_text(tmp_path):
    with refused(InvalidInput, "UTF-8"):
        read(tmp_path, HEAD + "1,x % é\n", encoding="latin-1")
