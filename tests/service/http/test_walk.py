"""The number of files that a reader opens to follow a decision over HTTP."""

import importlib.util
from pathlib import Path

MOST = 15


def test_a_decision_passes_through_few_files(tmp_path):
    path = Path(__file__).parents[3] / "bench" / "walk.py"
    spec = importlib.util.spec_from_file_location("walk", path)
    walk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walk)
    files = {file for file, _ in walk.calls_of_a_decision(tmp_path)}
    assert {"service/http/endpoint.py", "service/storage/journal.py"} < files
    assert len(files) <= MOST, sorted(files)
