"""Work that a study pays for is taken back, and done and paid once more: neither is possible.

Somebody undid a vote, or retracted an example, after they had submitted, and got the pay all the
same; the same vote or text then counted in another study of the task.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.attempts.services import retract_example
from annotation.submitted_work import WorkSubmitted
from core.accounts.services import get_annotator
from dynabench.campaigns import place_services
from dynabench.campaigns.models import SUBMITTED_STATES, LedgerRow, Place
from tests.support.campaigns import agree, open_campaign
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.judging.services import cast_validation, lease_next, undo_validation
from validation.models import Validation

pytestmark = pytest.mark.django_db


def voted(nli, person):
    """The person's vote on what they are handed out."""
    me = get_annotator(person)
    example = lease_next(validator=me, task=nli.task).example
    return cast_validation(validator=me, example=example, vote=Vote(label="neutral"))


@pytest.fixture
def judged(nli, alice, bob):
    """A place of a study for judges, with its one vote."""
    write(nli, bob, 1)
    place = agree(open_campaign(nli.task, way="account", kind="judge"), alice)
    return place, voted(nli, alice)


@pytest.fixture
def written(nli, alice):
    """A place of a study for writers, with its one example."""
    place = agree(open_campaign(nli.task, way="account", kind="write"), alice)
    return place, write(nli, alice, 2)


def submit(place):
    return place_services.submit_place(place=Place.objects.get(pk=place.pk))


def test_a_vote_is_taken_back_before_submitting_alone(judged, alice):
    place, vote = judged
    submit(place)
    assert LedgerRow.objects.filter(place=place, kind="earned").exists()
    with pytest.raises(WorkSubmitted) as refused:
        undo_validation(validator=get_annotator(alice), validation=vote)
    assert refused.value.code == "submitted"
    assert Validation.objects.filter(pk=vote.pk).exists()


def test_an_example_is_retracted_before_submitting_alone(written, as_alice):
    place, example = written
    submit(place)
    with pytest.raises(WorkSubmitted):
        retract_example(example=example)
    assert as_alice.post(f"/api/v1/examples/{example.uuid}/retract/").status_code == 403
    example.refresh_from_db()
    assert example.retracted_at is None


def test_before_they_submit_judges_may_think_again(judged, alice):
    undo_validation(validator=get_annotator(alice), validation=judged[1])
    assert not Validation.objects.exists()


def test_before_they_submit_authors_may_think_again(written):
    for _ in range(2):  # may be repeated
        retract_example(example=written[1])
    written[1].refresh_from_db()
    assert written[1].retracted_at


@pytest.mark.parametrize("state", Place.State.values)
def test_only_work_within_a_submitted_place_stays(nli, written, state):
    place, example = written
    now = timezone.now()
    times = {"began_at": now - timedelta(hours=1), "submitted_at": now + timedelta(hours=1)}
    Place.objects.filter(pk=place.pk).update(state=state, **times)
    if state in SUBMITTED_STATES:
        with pytest.raises(WorkSubmitted):
            retract_example(example=example)
    else:
        retract_example(example=example)


def test_what_came_before_or_after_the_study_is_the_persons_own(nli, written, alice):
    place, example = written
    ago = timezone.now() - timedelta(days=1)
    times = {"began_at": ago - timedelta(hours=1), "submitted_at": ago}
    Place.objects.filter(pk=place.pk).update(state="approved", **times)
    retract_example(example=example)
