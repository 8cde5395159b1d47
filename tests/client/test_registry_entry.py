"""``discreet label --registry``: an entry that the schema of the registry accepts.

The tables below repeat facts of ``schemas/deployments-schema.yaml`` in
opendp/deployments-registry-data at 3e9c812 [OpenDP 2026 in docs/references.md]: no section may
have other fields, and the fields with a star are required.
"""

import datetime
import json
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.privacy.events import ExponentialMechanism, NonPrivate
from discreet.privacy.ledger import Ledger

pytest.importorskip("jinja2")
yaml = pytest.importorskip("yaml")

TEXTS = [str]
"""A list of text with at least one item."""
SCHEMA = {
    "url_slug*": str,
    "status*": ("Converted", "Draft", "Pending", "Changes Required", "Approved"),
    "tier*": (1, 2, 3),
    "deployment*": {
        "basic*": {
            "name*": str,
            "data_curators*": TEXTS,
            "intended_use*": str,
            "data_product_type*": ("Summary statistics", "Machine learning model", "Dataset"),
            "data_product_region*": str,
            "description*": str,
            "publication_date*": datetime.date,
            "data_product_sector": ("Technology", "Healthcare", "Education", "Government"),
        },
        "dp_variant": {
            "variant_name": ("Pure DP", "Approximate DP", "Zero-concentrated DP"),
            "data_domain": str,
            "unprotected_quantities": str,
        },
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": ("Local", "Central", "Shuffle", "Federated", "Varies"),
            "actors": str,
            "release_type": ("One release", "Many releases"),
            "release_type_details": str,
            "data_source_type": ("Static", "Dynamic"),
            "access_type": ("Interactive", "Non-interactive"),
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str,
            "mechanisms": str,
            "justification": str,
        },
        "administrative": {"sources": str, "registry_authors*": TEXTS},
    },
}
"""The fields that we write, and all that are required."""
FACTS = """
operator = "City \\"Library\\" é"
purpose = "Chooses: which reading list comes first."

[registry]
name = "Reading_lists (beta)"
region = "Sweden"
published = 2026-01-20
"""
MORE = """
sector = "Education"
preprocessing = "None."
justification = "ε was chosen on a public set."
author = "A. Nyström"
sources = "https://library.example/privacy"
"""


def problems(schema, value, where="entry"):
    """Differences from the schema, each with its place."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return [where]
        fields = {name.rstrip("*"): part for name, part in schema.items()}
        missing = {name[:-1] for name in schema if name.endswith("*")} - value.keys()
        wrong = [f"{where}.{name}" for name in (value.keys() - fields.keys()) | missing]
        for name in value.keys() & fields.keys():
            wrong += problems(fields[name], value[name], f"{where}.{name}")
        return wrong
    if isinstance(schema, tuple):
        return [] if value in schema else [where]
    if isinstance(schema, list):
        good = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
        return [] if good else [where]
    if schema is datetime.date:  # text in the form of a date, not a date of YAML
        good = isinstance(value, str) and datetime.date.fromisoformat(value).isoformat() == value
        return [] if good else [where]
    return [] if isinstance(value, schema) else [where]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.toml").write_text(FACTS)
    return tmp_path


@pytest.fixture
def released(folder):
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=dc.Budget(1.0, 1e-5), first_batch=2)
    learner = dc.Learner(plan)
    learner.observe(learner.decide(np.zeros((2, 2))).id, np.ones(2))
    learner.release()
    learner.released.save(folder / "released.json")
    return "released.json"


def entry(source, *flags):
    assert main(["label", str(source), "--facts", "facts.toml", "--registry", *flags]) == 0
    return yaml.safe_load(Path("label.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("more", "tier"), [("", 2), (MORE, 3)])
def test_the_schema_accepts_an_entry(folder, released, more, tier):
    (folder / "facts.toml").write_text(FACTS + more)
    read = entry(released)
    assert problems(SCHEMA, read) == []
    assert read["tier"] == tier
    assert read["status"] == "Draft"
    assert read["deployment"]["basic"]["data_curators"] == ['City "Library" é']
    assert ("administrative" in read["deployment"]) == bool(more)
    assert problems(SCHEMA, read | {"tier": 0, "surprise": 1})


def test_the_entry_states_the_budget_and_the_neighbours(released):
    read = entry(released)
    # The registry recomputes it from the name, the curator and the year, word by word.
    slug = "url_slug: reading-lists-beta--city-library-é-2026\n"
    assert Path("label.yaml").read_text(encoding="utf-8").startswith(slug)
    label = json.loads(Path("label.json").read_text(encoding="utf-8"))
    loss = read["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-5}
    assert loss["privacy_unit_details"] == label["neighbours"]
    assert loss["privacy_unit"] == "one decision"
    assert read["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert read["deployment"]["implementation"]["mechanisms"].startswith("Gaussian; ")
    for sentence in label["assumptions"]:
        assert sentence in read["deployment"]["accounting"]["composition"]
    ledger = Ledger(dc.Budget(2.0)).charge("batch 1", ExponentialMechanism(2.0, 1.0))
    Path("ledger.json").write_text(json.dumps(ledger.to_json()))
    read = entry("ledger.json")
    assert problems(SCHEMA, read) == []
    assert read["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert read["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0}


@pytest.mark.parametrize(
    ("facts", "ledger", "words"),
    [
        ("", None, "operator, purpose, registry.name, registry.region, registry.published"),
        (FACTS.replace("2026-01-20", '"2026-13-01"'), None, "registry.published"),
        (FACTS + 'regoin = "Sweden"', None, "Did you mean 'region'?"),
        ('registry = "all"', None, "facts.registry must be a table"),
        (FACTS, Ledger(dc.Budget.none()).charge("a", NonPrivate("none")), "private releases"),
        (FACTS, Ledger(dc.Budget(1.0, 1e-5)), "private releases"),
    ],
)
def test_an_incomplete_entry_is_refused_and_nothing_is_written(
    folder, released, capsys, facts, ledger, words
):
    (folder / "facts.toml").write_text(facts)
    if ledger is not None:
        (folder / released).write_text(json.dumps(ledger.to_json()))
    assert main(["label", released, "--facts", "facts.toml", "--registry"]) == 2
    assert words in capsys.readouterr().err
    assert not list(folder.glob("label.*"))
