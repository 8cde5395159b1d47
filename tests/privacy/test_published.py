"""The whole document of a release, for every oracle: what may depend on answers, and how.

Worlds in which people answer, stay silent or say something else share their noise. Then all but
the noisy numbers is the same bytes; and with noise that makes up for the difference between two
batches the noisy numbers are the same as well.
"""

import pytest

from discreet.audit import HOLDS
from discreet.audit.event_coverage import covered
from discreet.audit.objective import certificate
from discreet.audit.published_documents import public_alike, tells_no_more
from discreet.audit.subjects import JOINT, MECHANISMS, subjects

SUBJECTS = [
    pytest.param(each, id=each.name)
    for each in subjects(MECHANISMS, [2.0])
    if each.mechanism != JOINT  # its documents are those of ridge-stretched
]


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
