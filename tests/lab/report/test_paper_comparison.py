"""Beside the paper: the published table, its data sets, and the distance to ours."""

import csv
import io
import math
from importlib.resources import files

import pytest

from discreet.errors import InvalidInput
from discreet.lab.report import paper_comparison as module
from discreet.lab.report.campaign_results import SHORT
from discreet.lab.report.paper_comparison import CELLS, CITATION, compare, paper_sets, published
from lab.report.folders import run, write_rows
from tolerances import EXACT
from wording import refused

PLACE = ((1.0, 1e-5), "ReplayBonusPO", "VanillaPO")
LEVELS = ((math.inf, 0.0), (8.0, 1e-5), (4.0, 1e-5), (2.0, 1e-5), (1.0, 1e-5))


def package_file(name):
    return files("discreet.lab.report").joinpath(name).read_text(encoding="utf-8")


def published_rows():
    return list(csv.DictReader(io.StringIO(package_file("published_win_rates.csv"))))


def test_the_published_table_comes_with_the_package():
    rows = published_rows()
    assert len(rows) == 5 * 7 * 7
    for row in rows:
        wins, ties, losses = (int(row[name]) for name in ("wins", "ties", "losses"))
        assert wins + ties + losses == int(row["datasets"]) == 100
        assert float(row["win_rate_percent"]) == wins + ties / 2
    assert "Vanilla Policy Optimization Is Both Optimal" in CITATION


def test_the_published_table_is_read_as_it_is():
    table = published()
    assert {place[0] for place in table} == {*module.PAPER_LEVELS}
    assert {place[1] for place in table} == {*module.PAPER_ALGORITHMS}
    assert table[(math.inf, 0.0), "ReplayBonusPO", "VanillaPO"] == 98.0
    for (level, row, column), percent in table.items():
        assert percent + table[level, column, row] == 100.0
    assert sum(row != column for _, row, column in table) == CELLS


def test_sets_are_known_by_number_or_by_name_and_size():
    fried = {"rows": 40768, "actions": 2}
    found = paper_sets(
        {
            "fried": fried,
            "openml:1489": {},
            "openml:61": {},  # iris, not the paper's
            "phoneme": {"rows": 5, "actions": 2},  # another phoneme
            "openml:901": {},  # fried again
        }
    )
    assert found == {"fried": 901, "openml:1489": 1489}


def pairs_folder(root, counts):
    """A folder with the given wins, ties and losses: a hundred sets for each pair and ε."""
    rows = []
    for (epsilon, one, other), (wins, ties, losses) in counts.items():
        ahead = [1] * wins + [0] * ties + [-1] * losses
        for number, sign in enumerate(ahead):
            name = f"{one}-{other}-{number}"
            rows.append(run(name, one, epsilon, 0, 0.5))
            rows.append(run(name, other, epsilon, 0, 0.5 + 0.001 * sign))
    return write_rows(root, rows)


@pytest.fixture
def all_shared(monkeypatch):
    """Every data set counts as one of the paper's."""
    monkeypatch.setattr(module, "paper_sets", lambda sets: {n: i for i, n in enumerate(sets)})


def as_published(change=0):
    """Counts of the published table; ``change`` wins of one cell become losses."""
    long = {short: name for name, short in SHORT.items()}
    counts = {}
    for row in published_rows():
        one, other = long[row["row_algorithm"]], long[row["column_algorithm"]]
        if list(SHORT).index(one) < list(SHORT).index(other):
            told = [int(row[name]) for name in ("wins", "ties", "losses")]
            counts[float(row["epsilon"]), one, other] = tuple(told)
    first = (1.0, "ReplayBonusPO", "VanillaPO")
    wins, ties, losses = counts[first]
    counts[first] = (wins - change, ties, losses + change)
    return counts


@pytest.mark.usefixtures("all_shared")
def test_results_like_the_papers_differ_by_nothing(tmp_path):
    found = compare(pairs_folder(tmp_path, as_published()))
    assert len(found.cells) == CELLS
    assert found.mean_absolute_difference == 0.0
    assert {cell.difference for cell in found.cells} == {0.0}
    assert found.missing == ()
    assert found.document()["leader_first"]
    assert found.first == {8.0: True, 4.0: True, 2.0: True, 1.0: True}
    assert found.interval[0] == 0.0
    assert {cell.datasets for cell in found.cells} == {100}


@pytest.mark.usefixtures("all_shared")
def test_one_cell_that_differs_is_seen(tmp_path):
    found = compare(pairs_folder(tmp_path, as_published(change=10)))
    # Ten points in the cell and in its mirror.
    assert found.mean_absolute_difference == pytest.approx(20 / CELLS, abs=EXACT)
    assert sorted(cell.difference for cell in found.cells)[:: CELLS - 1] == [-10.0, 10.0]
    assert found.by_epsilon()[1.0] == pytest.approx(20 / 42, abs=EXACT)
    assert found.by_epsilon()[8.0] == 0.0


@pytest.mark.usefixtures("all_shared")
def test_chance_is_what_the_binomial_law_says(tmp_path):
    """One pair at one ε, 50 of 100: a resample moves it by √(2/π)·√(0.25/100) on average."""
    found = compare(pairs_folder(tmp_path, {(1.0, "ReplayBonusPO", "VanillaPO"): (50, 0, 50)}))
    assert len(found.cells) == 2
    expected = 100 * math.sqrt(2 / math.pi) * math.sqrt(0.25 / 100)
    # 2,000 resamples: the standard error is √(1 − 2/π)·5/√2000 = 0.07, so this is 5 of them.
    assert found.by_chance == pytest.approx(expected, abs=0.35)
    theirs = published()[PLACE]
    assert found.mean_absolute_difference == pytest.approx(theirs - 50, abs=EXACT)
    low, high = found.interval
    assert low < theirs - 50 < high
    # Far from zero the interval is that of a mean: ± 1.96 · 5 points.
    assert high - low == pytest.approx(2 * 1.96 * 5, rel=0.1)


@pytest.mark.usefixtures("all_shared")
def test_what_cannot_be_compared_is_said(tmp_path):
    counts = {
        key: value
        for key, value in as_published().items()
        if "FastCB" not in key and key[0] in (8.0, 1.0)
    }
    found = compare(pairs_folder(tmp_path, counts))
    assert len(found.cells) == 2 * 30
    assert found.mean_absolute_difference == 0.0
    assert found.missing == (
        "Not in this campaign: FastCB.",
        "No runs at ε = ∞, ε = 4, ε = 2.",
        "150 of 210 cells cannot be compared.",
    )


def shared_rows(names=("openml:901", "openml:1489"), epsilon=1.0):
    return [
        run(name, algorithm, epsilon, seed, loss)
        for name in names
        for algorithm, loss in (("ReplayBonusPO", 0.2), ("VanillaPO", 0.3), ("Supervised", 0.1))
        for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    "rows",
    [
        shared_rows(names=["mine"]),
        shared_rows(epsilon=3.0),
        [run("openml:901", "ReplayBonusPO", 1.0, 0, 0.2)],
    ],
    ids=["no set", "no ε", "no pair"],
)
def test_nothing_to_compare_is_refused(rows, tmp_path):
    with refused(InvalidInput, "share", "paper"):
        compare(write_rows(tmp_path, rows))


def test_algorithms_of_ones_own_stand_beside_and_change_nothing(tmp_path):
    rows = shared_rows()
    mine = [run(row["dataset"], "Default", 1.0, row["seed"], 0.05) for row in rows[::3]]
    alone = compare(write_rows(tmp_path / "alone", rows))
    found = compare(write_rows(tmp_path / "beside", [*rows, *mine]))
    assert found.mean_absolute_difference == alone.mean_absolute_difference
    assert found.interval == alone.interval
    assert found.first == alone.first == {1.0: True}  # Default wins, and is not of the paper
    assert [cell for cell in found.cells if cell.published is not None] == list(alone.cells)
    assert {cell.ours for cell in found.cells if cell.row_algorithm == "Default"} == {100.0}


def test_the_document_has_every_cell_and_the_citation(tmp_path):
    found = compare(write_rows(tmp_path, shared_rows())).document()
    assert found["citation"] == CITATION
    assert len(found["cells"]) == 2
    assert found["cells"][0]["difference"] == 100.0 - published()[PLACE]
    assert found == compare(tmp_path).document()  # the resamples are seeded
    assert "took no part" in compare(tmp_path, "split").statement
