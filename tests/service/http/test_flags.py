"""Flags of OpenFeature against a real service: one slot per person and release."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from openfeature.evaluation_context import EvaluationContext
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from discreet.client import Client
from discreet.client.openfeature_provider import DiscreetProvider, ExperimentFlag, FlagDecisions
from discreet.errors import ServiceError
from waiting import PATIENCE, until

ROOT = Path(__file__).parents[3]
HERE = {"features": [0.5, 0.25]}


@pytest.fixture
def service(server, written):
    """Address and key of a service whose batches have four slots, and what ends their windows."""
    folder, key = written()
    running = server(folder)
    return f"http://127.0.0.1:{running.port}", key, running.windows_end


def started(url, key):
    """A process of an application that has just started."""
    decisions = FlagDecisions("flag", ExperimentFlag(url, key, deadline=PATIENCE))
    decisions.refresh()
    return decisions


def test_a_person_takes_one_slot_of_a_release(service):
    url, key, windows_end = service
    first, second = started(url, key), started(url, key)
    made, how = first.decide(first.facts, "ann", HERE)
    assert (made.stored, how) == (True, Reason.SPLIT)
    assert first.decide(first.facts, "ann", HERE) == (made, Reason.CACHED)
    assert second.decide(second.facts, "ann", HERE) == (
        made,
        Reason.SPLIT,
    )
    first.observe("ann", {"loss": 0.5})
    second.observe("ann", {"loss": 0.5})
    with Client(url, key) as client:
        for _ in range(3):  # fill the batch, until its release decides
            client.decide(HERE["features"])
    windows_end()
    until(first.refresh)
    again, how = first.decide(first.facts, "ann", HERE)
    assert how == Reason.SPLIT
    assert again.id != made.id
    # A process that has not heard of the release asks under the old name: the person counted.
    third = started(url, key)
    old = third.facts._replace(release=0)
    late, _ = third.decide(old, "ann", HERE)
    assert late.stored is False


def test_javascript_takes_the_same_slot(service):
    if shutil.which("node") is None:
        pytest.skip("node must be installed for clients/js")
    url, key, _ = service
    python = started(url, key)
    made, _ = python.decide(python.facts, "ann", HERE)
    code = (
        f'import {{ DiscreetProvider }} from "{ROOT}/clients/js/openfeature.js";\n'
        f'const flag = {{ url: "{url}", key: "{key}", deadline: 120000 }};\n'
        "const provider = new DiscreetProvider({ flag });\n"
        "await provider.initialize();\n"
        'const ann = { targetingKey: "ann", features: [0.5, 0.25] };\n'
        'const found = await provider.resolveNumberEvaluation("flag", -1, ann);\n'
        'provider.track("flag", ann, { value: 0.5 });\n'
        "await provider.onClose();\n"
        "console.log(JSON.stringify(found));\n"
    )
    command = ["node", "--input-type=module", "-e", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["value"], found["reason"]) == (made.action, "SPLIT")
    assert found["flagMetadata"]["stored"] is True
    with pytest.raises(ServiceError) as caught:  # JavaScript reported one already
        python.observe("ann", {"loss": 0.75})
    assert caught.value.status == 409


def test_the_page_about_openfeature_works(service):
    """docs/openfeature.md defines functions; here they meet a service."""
    reported = {}
    page = (ROOT / "docs" / "openfeature.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(block, reported)
    client = reported["connect"](*service[:2])
    try:
        person = EvaluationContext("ann", HERE)
        assert reported["greeting"](client, person) in (0, 1, 2)
        client.track("bought", person, TrackingEventDetails(0.0))
    finally:
        reported["api"].shutdown()
        reported["api"].clear_providers()
    assert reported["DiscreetProvider"] is DiscreetProvider
