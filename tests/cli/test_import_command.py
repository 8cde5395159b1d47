"""``discreet import``: private logs become batches, public ones a prior, wrong ones nothing."""

import json

import numpy as np
import pytest

import discreet as dc
from discreet.adapters.vowpal_log import vw_lines
from discreet.cli.main import main
from discreet.data.decision_logs import VwLog

COMMAND = ["import", "plan.toml"]
PLAN = """
actions = ["a", "b", "c"]
features = { kind = "UnitBall", dimension = 2 }
budget = { epsilon = 8.0, delta = 1e-5 }
"""
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(800, 2)).round(4)
BEST = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
PLAYED = RNG.integers(3, size=len(X))
LOST = (PLAYED != BEST).astype(int)


@pytest.fixture
def folder(here):
    (here / "plan.toml").write_text(PLAN)
    lines = [
        f"{x},{y},{'abc'[a]},{lost},p{row % 80}"
        for row, ((x, y), a, lost) in enumerate(zip(X, PLAYED, LOST, strict=True))
    ]
    (here / "log.csv").write_text("x,y,shown,lost,who\n" + "\n".join(lines) + "\n")
    rows = VwLog(("x", "y"), X, PLAYED, LOST, np.full(len(X), 1 / 3), 3)
    (here / "log.vw").write_text("".join(vw_lines(rows)))
    (here / "adf.vw").write_text("".join(vw_lines(rows, adf=True)))
    return here


CSV = ("--log", "log.csv", "--action", "shown", "--loss", "lost", "--ignore", "who")


@pytest.mark.parametrize("log", ["log.csv", "log.vw"])
@pytest.mark.usefixtures("folder")
def test_rows_keep_the_order_of_the_file(call, monkeypatch, log):
    """Privacy: rows are cut into batches by position, so no command may sort them by content."""
    seen, honest = [], dc.Learner.import_log

    def watched(self, contexts, actions, **words):
        seen.append((np.asarray(contexts), np.asarray(words["losses"])))
        return honest(self, contexts, actions, **words)

    monkeypatch.setattr(dc.Learner, "import_log", watched)
    words = CSV if log == "log.csv" else ("--log", log)
    code, out, err = call(*words, "--out", "warm")
    assert code == 0, out + err
    contexts, losses = seen[0]
    np.testing.assert_allclose(contexts.astype(float), X, atol=1e-12)
    assert losses.astype(float).tolist() == LOST.tolist()


def right(learner):
    return np.mean(learner.decide(X).action_index == BEST)


def test_a_private_log_becomes_a_learner_that_knows_it(folder, call, refuses):
    code, out, _ = call(*CSV, "--out", "warm")
    assert code == 0, out
    assert "800 rows in 3 batches: ε = 8" in out
    assert (folder / "warm.state").stat().st_mode & 0o777 == 0o600
    assert dc.Released.load("warm.released.json").plan["imported"] == 800
    before = (folder / "warm.state").read_bytes()
    refuses(*CSV, "--out", "warm", words="warm.state")  # a second draw of noise
    assert (folder / "warm.state").read_bytes() == before
    assert right(dc.Learner.load("warm.state")) > 0.6


@pytest.mark.parametrize("log", ["log.vw", "adf.vw"])
def test_a_public_log_becomes_a_prior_of_an_experiment_file(folder, call, log):
    code, out, _ = call("--log", log, "--public", "--weight", "0.5", "--out", "warm")
    assert code == 0, out
    assert "800 records, each worth 0.5" in out
    (folder / "plan.toml").write_text(PLAN + 'prior = "warm.prior.json"\n')
    assert main(["plan", "plan.toml"]) == 0
    document = json.loads((folder / "warm.prior.json").read_text())
    assert document["records"] == 800


def test_a_private_log_never_becomes_a_prior(folder, call):
    """The documents of two logs that differ in every row are the same, but for the release."""
    call(*CSV, "--out", "one")
    other = (folder / "log.csv").read_text().replace(",0,p", ",9,p").replace(",1,p", ",0,p")
    (folder / "log.csv").write_text(other.replace(",9,p", ",1,p"))
    call(*CSV, "--out", "two")
    one, two = (
        json.loads((folder / f"{name}.released.json").read_text()) for name in ("one", "two")
    )
    assert one["plan"] == two["plan"]
    assert "prior" not in one["plan"]


@pytest.mark.usefixtures("folder")
def test_people_bring_their_ids(call, refuses):
    unit = ("--set", "unit=user", "--set", "batches_per_user=4", "--set", "records_per_batch=1")
    log = CSV[:-2]
    code, out, _ = call(*log, *unit, "--user", "who", "--out", "warm")
    assert code == 0, out
    assert "for one user" in out
    refuses(*CSV, *unit, "--out", "other", words="user must be given")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (CSV[:-2], "Name those that are no feature with --ignore"),
        ((*CSV, "--weight", "0.5"), "weight must come with --public"),
        (("--log", "log.csv", "--loss", "lost"), "action must be a column"),
        ((*CSV, "--reward", "lost"), "log must have a loss"),
        ((*CSV, "--user", "who", "--set", "unit=decision"), "user must be left out"),
        ((*CSV, "--set", "imported=700"), "log must have the 700 rows"),
        (("--log", "unlikely.vw"), "line 1: a label must be action:cost:probability"),
    ],
)
def test_a_wrong_log_writes_nothing(folder, refuses, flags, words):
    (folder / "unlikely.vw").write_text("1:0.5 |x a:1 b:2\n")  # without a probability
    before = sorted(folder.iterdir())
    refuses(*flags, "--out", "warm", words=words)
    assert sorted(folder.iterdir()) == before


# --- a log that stays in its files -------------------------------------------------------------


@pytest.fixture
def files(folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (folder / "visits").mkdir()
    shown, who = np.asarray(["a", "b", "c"])[PLAYED], np.full(len(X), "someone")
    columns = {"x": X[:, 0], "y": X[:, 1], "shown": shown, "lost": LOST * 1.0, "who": who}
    for number, rows in enumerate(np.split(np.arange(len(X)), 4)):
        part = pyarrow.table({name: each[rows] for name, each in columns.items()})
        parquet.write_table(part, folder / "visits" / f"{number}.parquet")
    return folder


FILES = ("--log", "visits", *CSV[2:])


def test_a_folder_of_files_becomes_the_learner_of_its_rows(files, call):
    code, out, err = call(*FILES, "--jobs", "2", "--out", "warm")
    assert (code, "800 rows in 3 batches: ε = 8" in out) == (0, True), out + err
    assert dc.Released.load("warm.released.json").plan["imported"] == 800
    assert right(dc.Learner.load("warm.state")) > 0.6
    assert (files / "visits").is_dir()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--public",), "prior_from_released"),
        (("--user", "who"), "unit is a user"),
        (("--scheduler", "nonsense"), "nonsense"),
        (("--set", "imported=799"), "799 rows"),
    ],
)
def test_what_does_not_fit_a_folder_of_files_writes_nothing(
    files, refuses, monkeypatch, flags, words
):
    monkeypatch.setattr("discreet.lab.campaign.workers.PATIENCE", 0.2)
    refuses(*FILES, *flags, "--out", "warm", words=words)
    assert not [*files.glob("warm*")]
