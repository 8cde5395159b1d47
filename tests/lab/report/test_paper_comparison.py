"""The published table, its data sets, and the difference to a campaign's win rates."""

import csv
import math
from importlib.resources import files

import pytest

from discreet.errors import InvalidInput
from discreet.lab.report import paper_comparison as module
from discreet.lab.report.paper_comparison import (
    CELLS,
    CITATION,
    PAPER_ALGORITHMS,
    beside_published,
    compare,
    paper_sets,
    published,
    sentences,
)
from discreet.lab.report.selection import SHORT, select
from lab.report.folders import run, table, write_rows
from tolerances import EXACT
from wording import refused

PLACE = (1.0, "ReplayBonusPO", "VanillaPO")


def published_rows():
    text = files("discreet.lab.report").joinpath("published_win_rates.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def test_the_published_table_comes_with_the_package():
    found = published()
    assert len(found) == len(published_rows()) == 5 * 7 * 7
    assert {place[0] for place in found} == {*module.EPSILONS}
    assert {place[1] for place in found} == {*PAPER_ALGORITHMS}
    assert found[math.inf, "ReplayBonusPO", "VanillaPO"] == 98.0
    for (level, row, column), percent in found.items():
        assert percent + found[level, column, row] == 100.0
    assert sum(row != column for _, row, column in found) == CELLS


def test_sets_are_known_by_number_or_by_name_and_size():
    found = paper_sets(
        {
            "fried": {"rows": 40768, "actions": 2},
            "openml:1489": {},
            "openml:61": {},  # iris, not the paper's
            "phoneme": {"rows": 5, "actions": 2},  # another phoneme
            "openml:901": {},  # fried again
        }
    )
    assert found == {"fried": 901, "openml:1489": 1489}


def compared(counts):
    """The document for given wins, ties and losses: a hundred sets for each pair and ε."""
    rows = []
    for (epsilon, one, other), (wins, ties, losses) in counts.items():
        for number, sign in enumerate([1] * wins + [0] * ties + [-1] * losses):
            name = f"{one}-{other}-{number}"
            rows.append(run(name, one, epsilon, 0, 0.5))
            rows.append(run(name, other, epsilon, 0, 0.5 + 0.001 * sign))
    return beside_published(select(table(rows)), {})


@pytest.fixture
def all_shared(monkeypatch):
    """Every data set counts as one of the paper's."""
    monkeypatch.setattr(module, "paper_sets", lambda sets: {n: i for i, n in enumerate(sets)})


def as_published():
    """Wins, ties and losses of the published table."""
    long = {short: name for name, short in SHORT.items()}
    counts = {}
    for row in published_rows():
        one, other = long[row["row_algorithm"]], long[row["column_algorithm"]]
        if PAPER_ALGORITHMS.index(one) < PAPER_ALGORITHMS.index(other):
            outcome = tuple(int(row[name]) for name in ("wins", "ties", "losses"))
            counts[float(row["epsilon"]), one, other] = outcome
    return counts


@pytest.mark.usefixtures("all_shared")
def test_equal_results_differ_by_nothing_and_one_other_cell_is_seen():
    found = compared(as_published())
    assert len(found["cells"]) == CELLS
    assert found["mean_absolute_difference"] == found["interval"][0] == 0.0
    assert {cell["difference"] for cell in found["cells"]} == {0.0}
    assert {cell["datasets"] for cell in found["cells"]} == {100}
    assert found["missing"] == []
    assert found["leader_first"]
    assert found["first"] == {"8": True, "4": True, "2": True, "1": True}
    wins, ties, losses = as_published()[PLACE]
    found = compared(as_published() | {PLACE: (wins - 10, ties, losses + 10)})
    # Ten points in the cell and in its mirror.
    assert found["mean_absolute_difference"] == pytest.approx(20 / CELLS, abs=EXACT)
    assert sorted(cell["difference"] for cell in found["cells"])[:: CELLS - 1] == [-10.0, 10.0]
    assert found["by_epsilon"]["1"] == pytest.approx(20 / 42, abs=EXACT)
    assert found["by_epsilon"]["8"] == 0.0


@pytest.mark.usefixtures("all_shared")
def test_the_change_by_chance_follows_the_binomial_law():
    """One pair at one ε, 50 of 100: a resample moves it by √(2/π)·√(0.25/100) on average."""
    found = compared({PLACE: (50, 0, 50)})
    expected = 100 * math.sqrt(2 / math.pi) * math.sqrt(0.25 / 100)
    # 2,000 resamples: the standard error is √(1 − 2/π)·5/√2000 = 0.07, so this is 5 of them.
    assert found["by_chance"] == pytest.approx(expected, abs=0.35)
    difference = published()[PLACE] - 50
    assert found["mean_absolute_difference"] == pytest.approx(difference, abs=EXACT)
    low, high = found["interval"]
    assert low < difference < high
    # Far from zero the interval is that of a mean: ± 1.96 · 5 points.
    assert high - low == pytest.approx(2 * 1.96 * 5, rel=0.1)


@pytest.mark.usefixtures("all_shared")
def test_cells_that_cannot_be_compared_are_counted():
    counts = as_published().items()
    some = {key: n for key, n in counts if "FastCB" not in key and key[0] in (8.0, 1.0)}
    found = compared(some)
    assert len(found["cells"]) == 2 * 30
    assert found["mean_absolute_difference"] == 0.0
    assert found["missing"] == [
        "Not in this campaign: FastCB.",
        "No runs at ε = ∞, ε = 4, ε = 2.",
        "150 of 210 cells cannot be compared.",
    ]


def shared_rows(names=("openml:901", "openml:1489"), epsilon=1.0):
    return [
        run(name, algorithm, epsilon, seed, loss)
        for name in names
        for algorithm, loss in (("ReplayBonusPO", 0.2), ("VanillaPO", 0.3), ("Supervised", 0.1))
        for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    "rows", [shared_rows(epsilon=3.0), shared_rows()[:2]], ids=["no ε", "no pair"]
)
def test_nothing_to_compare_is_refused(rows, tmp_path):
    with refused(InvalidInput, "share", "paper"):
        compare(write_rows(tmp_path, rows))


def test_other_algorithms_have_cells_and_change_nothing(tmp_path):
    rows = shared_rows()
    mine = [run(row["dataset"], "Default", 1.0, row["seed"], 0.05) for row in rows[::3]]
    alone = compare(write_rows(tmp_path / "alone", rows))
    found = compare(write_rows(tmp_path / "more", [*rows, *mine]))
    for same in ("mean_absolute_difference", "interval", "by_chance"):  # resamples are seeded
        assert found[same] == alone[same]
    assert found["first"] == alone["first"] == {"1": True}  # Default wins, and is not the paper's
    assert [each for each in found["cells"] if each["published"] is not None] == alone["cells"]
    own = {each["ours"] for each in found["cells"] if each["row_algorithm"] == "Default"}
    assert own == {100.0}
    assert alone["citation"] == CITATION
    assert alone["cells"][0]["difference"] == 100.0 - published()[PLACE]
    assert "took no part" in compare(tmp_path / "alone", "split")["selection"]
    assert "2 cells" in sentences(alone)[0]
