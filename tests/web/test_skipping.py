"""Nobody walks through the queue to an example of their choice."""

import re

import pytest

from annotation.refusals import CapReached
from core.accounts.services import get_annotator
from tests.support.factories import UserFactory
from tests.support.judging import URL, judge, write
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.judging import services
from validation.models import JudgeLease, Skip, Validation


@pytest.fixture
def waiting(nli, bob):
    """A round in which thirty examples wait."""
    for number in range(30):
        write(nli, bob, number)
    return nli


def skip_on(validator, task):
    """Skip until it is refused."""
    while lease := services.lease_next(validator=validator, task=task):
        services.skip_example(validator=validator, example=lease.example)


def undo_all(validator, votes):
    for vote in votes:
        services.undo_validation(validator=validator, validation=vote)


def test_skips_of_a_day_are_bounded(as_alice, alice, waiting):
    """A ring: each account passes by twenty, and stands before the twenty-first."""
    ring = [get_annotator(UserFactory()) for _ in range(3)]
    for validator in ring:
        with pytest.raises(CapReached):
            skip_on(validator, waiting.task)
        assert JudgeLease.objects.filter(validator=validator).count() == services.MAX_PASSES + 1
    assert Skip.objects.count() == 3 * services.MAX_PASSES


def test_taking_back_answers_is_no_way_around(alice, waiting):
    validator, votes = get_annotator(alice), []
    for _ in range(services.MAX_PASSES + 5):
        lease = services.lease_next(validator=validator, task=waiting.task)
        vote = Vote(verdict="cannot_tell")
        votes.append(
            services.cast_validation(validator=validator, example=lease.example, vote=vote)
        )
    with pytest.raises(CapReached):
        undo_all(validator, votes)
    assert Validation.objects.count() == 5


def test_the_page_says_how_to_go_on(as_alice, alice, waiting, monkeypatch):
    monkeypatch.setattr(services, "MAX_PASSES", 1)
    for status in (200, 429):
        uuid = re.search(r'name="example" value="([^"]+)"', as_alice.get(URL).text)[1]
        page = as_alice.post(URL + "skip/", {"example": uuid}, **HTMX)
        assert page.status_code == status
    assert uuid in page.text  # it is still there to be judged
    judge(as_alice, "label:neutral", **HTMX)
    assert Validation.objects.exists()
