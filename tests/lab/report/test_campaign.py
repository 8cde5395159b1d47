"""The report of a campaign's folder: files, sentences, figures, and incomplete results."""

import csv
import json
import math
import re
import xml.etree.ElementTree as ET
from importlib.resources import files

import numpy as np
import pytest

from discreet.errors import InvalidInput
from discreet.lab.campaign.result_files import read as read_runs
from discreet.lab.report import campaign_report, figures, tables
from discreet.lab.report.algorithm_comparison import mean_losses
from discreet.lab.report.campaign_report import write
from discreet.lab.report.paper_comparison import compare
from discreet.lab.report.selection import CURVE_COLUMNS, RUN_COLUMNS, curves, select
from lab.report.folders import (
    ALGORITHMS,
    BANDITS,
    References,
    about,
    ends,
    grid,
    realistic,
    run,
    settings,
    write_rows,
)
from wording import refused

pytest.importorskip("matplotlib")

SETS = {"fried": 40768, "phoneme": 5404, "other": 900}
HEADS = {
    "best.csv": "dataset,algorithm,epsilon,delta,oracle,settings,loss,standard_error",
    "win_rates.csv": "epsilon,delta,row_algorithm,column_algorithm,datasets,wins,ties,losses,"
    "win_rate_percent",
    "loss_increase.csv": "algorithm,epsilon,mean_increase,standard_error,datasets,"
    "relative_to_epsilon",
    "choices.csv": "algorithm,epsilon,delta,oracle,ridge,datasets",
}


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """No test reads a bitmap here, and large ones take seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "PNG_DPI", 20)
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A complete campaign, and its report."""
    root = tmp_path_factory.mktemp("campaign")
    write_rows(root / "results", realistic(SETS))
    document = write(root / "results", root / "report")
    return root / "results", root / "report", document


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def page(folder):
    return (folder / "index.html").read_text()


def test_files_and_columns(written):
    _, out, document = written
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    drawn = ["win_rates", "loss_increase", "curves/fried", "curves/phoneme"]
    expected = {f"{name}.{kind}" for name in drawn for kind in ("png", "svg")}
    assert names == {"index.html", *HEADS} | expected
    assert {str(out / name) for name in names} == set(document["files"])
    json.dumps(document)
    for name, head in HEADS.items():
        assert (out / name).read_text().splitlines()[0] == head
    for path in out.rglob("*.svg"):
        text = "".join(ET.fromstring(path.read_text()).itertext())
        shown = BANDITS if path.stem == "win_rates" else ALGORITHMS
        assert all(name in text for name in shown), path.name
        assert "<image" not in path.read_text()


def test_win_rates_have_the_papers_rows_in_the_papers_order(written):
    rows = read(written[1] / "win_rates.csv")
    with files("discreet.lab.report").joinpath("published_win_rates.csv").open() as file:
        papers = list(csv.DictReader(file))
    for name in ("epsilon", "delta", "row_algorithm", "column_algorithm"):
        assert [row[name] for row in rows] == [row[name] for row in papers]
    assert {row["datasets"] for row in rows} == {"3"}
    maps = re.findall(r'aria-label="Win rates at (.*?);.*?<svg(.*?)</svg>', page(written[1]), re.S)
    assert [label for label, _ in maps] == ["ε = ∞", "ε = 8", "ε = 4", "ε = 2", "ε = 1"]
    assert re.findall(r">(\d+)</text>", maps[1][1]) == [
        f"{float(row['win_rate_percent']):.0f}"
        for row in rows
        if row["epsilon"] == "8.0" and row["row_algorithm"] != row["column_algorithm"]
    ]


def test_the_page_fetches_nothing_and_is_dark_narrow_and_printable(written):
    text = page(written[1])
    assert References(text).found == []
    for planted in ('<img src="picture.png">', "<script>1</script>", "<style>@import 'a';</style>"):
        assert References(text + planted).found != []
    for part in (
        "prefers-color-scheme: dark",
        'content="light dark"',
        "width=device-width",
        "@media print",
        "currentColor",
        "same seeds that are reported here, as the paper does",
        f"--preset paper --mechanism paper --seeds 2 --algorithms {' '.join(ALGORITHMS)}",
        "two x86 cores",
        "ReplayBonusPO is first at every ε",
        "ε is a noise scale here",
    ):
        assert part in text, part
    assert "What is missing" not in text
    assert not re.search(r'#222222|<svg[^>]* (width|height)="', text)  # the page sets ink and size
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(ids)


def test_split_says_so_and_reports_half(written, tmp_path):
    document = write(written[0], tmp_path, "split", ["other"])
    text = page(tmp_path)
    assert "took no part in the selection" in text
    assert "as the paper does" not in text
    assert "took no part" in document["selection"]
    full, half = (read(folder / "best.csv") for folder in (written[1], tmp_path))
    assert len(half) == len(full) == len(SETS) * len(ALGORITHMS) * 5
    # Chosen on the reporting seeds, losses look better than they are.
    honest, lucky = (np.mean([float(row["loss"]) for row in rows]) for rows in (half, full))
    assert honest > lucky


def curves_of(folder):
    return curves(
        read_runs(folder, CURVE_COLUMNS, "a"), select(read_runs(folder, RUN_COLUMNS)), "a"
    )


def test_curves_by_hand(tmp_path):
    """Two seeds: means and standard errors at every batch end."""
    rows = [
        run("a", "VanillaPO", 1.0, seed, loss, rounds=10, curve=curve)
        for seed, loss, curve in ((0, 0.4, [1.0, 0.8, 0.6, 0.4]), (1, 0.2, [0.0, 0.4, 0.2, 0.2]))
    ]
    rows += [run("a", "VanillaPO", 1.0, seed, 0.9, rounds=10, oracle="Logistic") for seed in (0, 1)]
    (curve,) = curves_of(write_rows(tmp_path / "results", rows)).values()
    assert curve.ends.tolist() == [1, 3, 7, 10] == ends(10)
    assert curve.mean == pytest.approx([0.5, 0.6, 0.4, 0.3], abs=1e-7)
    assert curve.standard_error == pytest.approx([0.5, 0.2, 0.2, 0.1], abs=1e-7)


def test_algorithms_with_other_batches(tmp_path):
    """Batches of 4, 6 and 2 rounds, next to doubling ones."""
    own = {"first_batch": 4, "growth": 1.5, "curve": [1.0, 0.5, 0.25]}
    rows = [run("a", "VanillaPO", 1.0, 0, 0.4, rounds=12, curve=[1.0, 0.8, 0.6, 0.4])]
    rows.append(run("a", "Default", 1.0, 0, 0.25, rounds=12, oracle="PooledRidge", **own))
    folder = write_rows(tmp_path / "results", rows)
    doubling, default = curves_of(folder).values()
    assert doubling.ends.tolist() == ends(12)
    assert default.ends.tolist() == [4, 10, 12]
    assert default.mean.tolist() == own["curve"]
    write(folder, tmp_path / "report")
    text = page(tmp_path / "report")
    assert "double from 1" in text
    assert "standard error over seeds" in text  # one set has no win rates
    assert "Win rates" not in text


def test_policies_without_contexts_are_next_to_the_losses(tmp_path):
    """Means over the same data sets; a set that lacks an algorithm counts for none."""
    rows = [run(name, "VanillaPO", 1.0, 0, 0.3) for name in "abc"]
    rows += [run(name, "SquareCB", 1.0, 0, 0.2) for name in "ab"]
    facts = about(rows)
    facts["a"] |= {"actions": 4, "best_fixed": 0.6}
    facts["b"] |= {"best_fixed": 0.2}
    facts["c"] |= {"best_fixed": 0.01}
    folder = write_rows(tmp_path / "results", rows, datasets=facts)
    best = select(read_runs(folder, RUN_COLUMNS))
    table = tables.losses_by_level(best, mean_losses(best), facts)
    assert table.rows[2:4] == [["best fixed action", "0.400"], ["uniform", "0.625"]]
    (each,) = tables.by_dataset(best, facts).values()
    assert each.head[-2:] == ["best fixed action", "uniform"]
    assert each.rows[0][-2:] == ["0.600", "0.750"]


def test_columns_scaled_by_the_data_are_marked(tmp_path):
    rows = [run("phoneme", name, 1.0, 0, 0.3, rounds=5404) for name in ("VanillaPO", "SquareCB")]
    event = {"kind": "NonPrivate", "reason": "columns were scaled"}
    wide = {**grid(rows), "features": "wide"}
    folder = write_rows(tmp_path / "results", rows, grid=wide, event=event)
    document = write(folder, tmp_path / "report")
    assert (document["features"], document["event"]) == ("wide", event)
    text = page(tmp_path / "report")
    assert "wide (NonPrivate: columns were scaled)" in text
    assert "--features wide" in text
    with refused(InvalidInput, "features must be 'raw'"):
        compare(folder)


def test_named_curves_and_those_that_do_not_fit_into_the_page(tmp_path, monkeypatch):
    rows = [run(name, "VanillaPO", 1.0, 0, 0.3) for name in ("other", "phoneme")]
    folder = write_rows(tmp_path / "results", rows)
    with refused(InvalidInput, "curves", "Did you mean 'phoneme'?"):
        write(folder, tmp_path / "wrong", curves_of=["phonem"])
    assert not (tmp_path / "wrong").exists()
    write(folder, tmp_path / "named", curves_of=["other"])
    assert {path.stem for path in (tmp_path / "named" / "curves").iterdir()} == {"other"}
    monkeypatch.setattr(campaign_report, "INLINED", 1)
    write(folder, tmp_path, curves_of="all")
    assert "<code>curves/phoneme.svg</code>" in page(tmp_path)
    assert page(tmp_path).count('class="figure curves"') == 1


def test_a_partial_campaign_says_what_is_missing(tmp_path):
    """Two ε; b has no FastCB, one run is not finite, one has a seed too many."""
    fits = {"oracle": "Logistic"}
    rows = [
        run(data, algorithm, epsilon, seed, 0.1 + 0.1 * number + 0.1 / epsilon, **fits)
        for data in "ab"
        for number, algorithm in enumerate(("ReplayBonusPO", "FastCB"))
        for epsilon in (4.0, 1.0)
        for seed in (0, 1)
        if (data, algorithm) != ("b", "FastCB")
    ]
    broken = {**fits, "settings": settings(scale=7.0)}
    rows += [
        run("a", "FastCB", 1.0, seed, loss, **broken) for seed, loss in ((0, math.nan), (1, 0))
    ]
    rows.append(run("a", "ReplayBonusPO", 1.0, 2, 0.0, **fits))
    wanted = {"algorithms": ["ReplayBonusPO", "FastCB", "LinUCB"], "epsilons": ["inf", 4.0, 1.0]}
    failed = {"c.data": "InvalidInput: no labels", "b.Ridge.radii": "MemoryError: <too large>"}
    folder = write_rows(
        tmp_path / "results",
        rows,
        failed=failed,
        datasets=about([*rows, run("c", "FastCB", 1.0, 0, 0.1)]),
        grid={**grid(rows), **wanted, "seeds": 5},
    )
    assert write(folder, tmp_path / "report")["missing"] == [
        "No runs of LinUCB.",
        "No runs at ε = ∞.",
        "No runs on c.",
        "2 of 8 combinations of data set, algorithm and ε have no result: "
        "b × FastCB at ε = 4, b × FastCB at ε = 1.",
        "Fewer seeds than the 5 of the grid on a, b.",
        "Runs without a finite loss, whose configurations do not compete: 1.",
        "Seeds that only some configurations of a data set have: 1.",
        "b, Ridge.radii, failed: MemoryError: <too large>",
        "c could not be read: InvalidInput: no labels",
    ]
    text = page(tmp_path / "report")
    assert "MemoryError: &lt;too large&gt;" in text
    assert References(text).found == []
    assert read(tmp_path / "report" / "loss_increase.csv")[0]["relative_to_epsilon"] == "4.0"
    rates = read(tmp_path / "report" / "win_rates.csv")
    assert [row["datasets"] for row in rates[:2]] == ["2", "1"]


SMALLEST = {
    "reference only": [run("a", "Supervised", math.inf, 0, 0.2)],
    "nothing shared": [run("a", "VanillaPO", 2.0, 0, 0.2), run("b", "RegCB", 1.0, 0, 0.2)],
    "strangers": [run("a", "Stranger", 2.0, 0, 0.2), run('<img src="a">', "BonusPO", 2.0, 0, 0.1)],
    "nothing finite": [run("a", "VanillaPO", 2.0, 0, math.nan)],
    "one round": [run("a", "VanillaPO", 2.0, 0, 0.2, rounds=1)],
}


@pytest.mark.parametrize("rows", SMALLEST.values(), ids=SMALLEST)
def test_the_smallest_campaigns_have_a_page(rows, tmp_path):
    document = write(write_rows(tmp_path / "results", rows), tmp_path / "report")
    assert document["runs"] == len(rows)
    assert References(page(tmp_path / "report")).found == []


def test_a_file_with_a_wrong_checksum_does_not_count(tmp_path):
    rows = [run("a", "VanillaPO", 1.0, 0, 0.2), run("b", "VanillaPO", 1.0, 0, 0.2)]
    folder = write_rows(tmp_path / "results", rows)
    damaged = folder / "runs" / "b.Ridge.predictions.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    document = write(folder, tmp_path / "report")
    assert document["datasets"] == 1
    assert "No runs on b." in document["missing"]
    with refused(InvalidInput, "output must be writable"):
        write(folder, damaged)
    with refused(InvalidInput, "campaign"):
        write(tmp_path, tmp_path / "report")
