"""bench/compare.py sees a slip of 5 %, and does not cry wolf."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parent.parent / "bench" / "compare.py"


@pytest.fixture(scope="module")
def compare():
    found = importlib.util.spec_from_file_location("bench_compare", SCRIPT)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def rounds(slower, noise, seed, count=9):
    """Pairs whose machine is up to twice as slow in some rounds, with noise on each side."""
    rng = np.random.default_rng(seed)
    moments = 1000.0 * rng.uniform(0.5, 1.0, size=count)
    sides = moments[:, None] * np.exp(noise * rng.normal(size=(count, 2)))
    return [(base, (1.0 - slower) * new) for base, new in sides]


def test_a_slip_of_five_per_cent_is_seen_among_twenty_rates(compare):
    for seed in range(20):
        given = {f"rate {number}": rounds(0.0, 0.01, [seed, number]) for number in range(19)}
        found = compare.compared({**given, "slipped": rounds(0.05, 0.01, [seed, 19])})
        assert found.pop("slipped").verdict == "slower"
        assert {each.verdict for each in found.values()} <= {"the same", "unclear: more rounds"}


def test_an_interval_holds_the_ratio_as_often_as_it_says(compare):
    held = 0
    for seed in range(400):
        ratio = compare.ratio_of(rounds(0.05, 0.03, seed))
        held += ratio.low <= 0.95 <= ratio.high
    assert abs(held / 400 - 0.95) < 5 * np.sqrt(0.05 * 0.95 / 400)  # seeds are fixed


def test_a_noisy_machine_is_told_apart_from_equal_speed(compare):
    assert compare.ratio_of(rounds(0.0, 0.2, 0)).verdict == "unclear: more rounds"
    assert compare.ratio_of(rounds(0.0, 0.005, 0)).verdict == "the same"
    assert compare.ratio_of(rounds(-0.1, 0.01, 0)).verdict == "faster"
    assert compare.ratio_of(rounds(0.5, 0.0, 0, count=1)).verdict == "unclear: more rounds"


def test_two_checkouts_take_turns_and_only_rates_are_read(compare, tmp_path):
    script = tmp_path / "fake.py"
    script.write_text(
        "import json, pathlib, speed, sys\n"
        f"with open({str(tmp_path / 'turns')!r}, 'a') as turns:\n"
        "    print(speed.NAME, file=turns)\n"
        "print('a table')\n"
        "print(json.dumps({'rows/s': speed.RATE, 'loss': 0.3, 'words': sys.argv[1:]}))\n"
    )
    for name, rate in (("base", 1000.0), ("new", 950.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed.py").write_text(f"NAME, RATE = {name!r}, {rate}\n")
    places = tmp_path / "base", tmp_path / "new"
    pairs = compare.in_turns(script, ["--quick"], *places, rounds=2)
    assert pairs == {"fake: rows/s": [(1000.0, 950.0)] * 2}
    assert (tmp_path / "turns").read_text().split() == ["base", "new", "new", "base"]
    assert compare.compared(pairs)["fake: rows/s"].verdict == "slower"
    script.write_text("raise SystemExit('no rate here')")
    with pytest.raises(SystemExit, match=r"fake.py failed(?s:.)*no rate here"):
        compare.rates(script, [], places[0])


def test_every_benchmark_of_the_list_prints_rates_as_json(compare):
    for name in compare.BENCHMARKS:
        text = (SCRIPT.parent / f"{name}.py").read_text()
        assert '"--json"' in text
        assert '/s"' in text
    listed = {path.stem for path in SCRIPT.parent.glob("*.py") if '/s":' in path.read_text()}
    peers = {"compare", "hello", "wrk"}  # they compare with other programs in one run
    assert listed <= {*compare.BENCHMARKS} | peers
