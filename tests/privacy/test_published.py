"""The whole document of a release, for every oracle: what may depend on answers, and how.

Worlds in which people answer, stay silent or say something else share their noise. Then all but
the noisy numbers is the same bytes; and with noise that makes up for the difference between two
batches the noisy numbers are the same as well.
"""

import json

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, batch_for, every_oracle
from discreet.audit import HOLDS
from discreet.audit.event_coverage import covered
from discreet.audit.noise_sources import Shared
from discreet.audit.objective import certificate
from discreet.audit.published_documents import public_alike, public_part, tells_no_more
from discreet.audit.subjects import JOINT, MECHANISMS, subjects
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.privacy.ledger import Ledger

ROWS = 70
SUBJECTS = [
    pytest.param(each, id=each.name)
    for each in subjects(MECHANISMS, [2.0])
    if each.mechanism != JOINT  # its documents are those of ridge-stretched
]


def worlds(case):
    """Everybody answers, nobody does, every third does, and everybody says something else."""
    full = batch_for(case, ROWS)
    nobody = np.zeros((ROWS, ACTIONS), dtype=bool)
    some = full.observed & (np.arange(ROWS) % 3 == 0)[:, None]
    return [
        full,
        Batch(full.features, full.losses, nobody),
        Batch(full.features, full.losses, some),
        batch_for(case, ROWS, seed=9),
    ]


def documents(case, batch):
    """Two releases of one batch after another, and the ledger."""
    plan = case.plan()
    released, ledger = plan.nothing_released(), Ledger(plan.budget)
    for part in ("first", "second"):
        noise = Shared()
        release, ledger = release_batch(plan, noise, batch, released, ledger, part)
        assert not noise.repeated
        released = released.add(release)
    return [item.to_json() for item in released.items], ledger.to_json()


def only_public(made):
    releases, ledger = made
    return json.dumps([[public_part(each) for each in releases], ledger], sort_keys=True)


@pytest.mark.parametrize("case", every_oracle)
def test_all_but_the_noisy_numbers_is_the_same_in_every_world(case):
    full, *others = (documents(case, batch) for batch in worlds(case))
    for other in others:
        assert only_public(other) == only_public(full)
    if not isinstance(case.oracle, dc.FiniteClass):  # there both chose the same function
        assert full[0][0]["predictor"] != others[0][0][0]["predictor"]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_learners_publish_nothing_else_about_answers(subject):
    assert public_alike(subject).verdict == HOLDS


@pytest.mark.parametrize("subject", SUBJECTS)
def test_after_the_noise_nothing_reads_the_batch(subject):
    assert tells_no_more(subject).verdict == HOLDS


@pytest.mark.parametrize("subject", SUBJECTS)
def test_events_cover_all_that_a_record_touches(subject):
    """Ten actions: one block in place of A would show."""
    finding = covered(subject)
    assert finding.verdict == HOLDS
    assert finding.exact > 0.75 * finding.claimed  # and the reading of the noise is not idle


@pytest.mark.parametrize("subject", [each for each in SUBJECTS if "logistic" in each.id])
def test_every_fit_is_a_minimiser_whatever_the_noise(subject):
    """600 fits with chosen noise, weights up to hundreds: there is no branch for any of them."""
    assert certificate(subject, 200).verdict == HOLDS
