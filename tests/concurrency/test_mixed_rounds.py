"""Many tabs of many people, and several machines, in one mixed round."""

from collections import Counter

import pytest

from annotation.aids.drafts import provide_draft
from annotation.context_picking.services import assign
from annotation.models import Assignment, Example, Suggestion
from core.accounts.services import get_annotator
from dynabench.adversaries import share_services
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.services import start_run
from tests.support.adversaries import make_adversary
from tests.support.factories import UserFactory
from tests.support.mixed_rounds import mixed_round, write_once
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)


def test_tabs_at_once_draw_one_arm_and_urns_stay_balanced(at_once):
    """Lock: the round, in `assign`."""
    round, _owner = mixed_round()
    people = [get_annotator(UserFactory()) for _ in range(3)]
    for _ in range(3):
        at_once(lambda person: assign(annotator=person, round=round, is_fresh=True), people * 2)
        current = Assignment.objects.filter(left_at=None)
        assert current.count() == len(people)
        for assignment in current.select_related("round", "context", "annotator"):
            write_once(assignment)
    for person in people:
        draws = Assignment.objects.filter(annotator=person, keeps_arm=False)
        written = draws.filter(attempt__isnull=False) | Assignment.objects.filter(
            annotator=person, keeps_arm=True, attempt__isnull=False
        )
        assert Counter(written.values_list("arm", flat=True)) == {
            "people": 1, "helped": 1, "drafts": 1
        }  # fmt: skip


def test_two_tabs_ask_for_one_draft(at_once):
    """No lock: the asking is claimed by one update."""
    round, _owner = mixed_round(drafts=1, machines=1)
    for number in races(5):
        person = get_annotator(UserFactory())
        assign(annotator=person, round=round)
        loaded = [
            Assignment.objects.select_related("round__task", "context").get(
                annotator=person, left_at=None
            )
            for _ in range(4)
        ]
        at_once(provide_draft, loaded)
        assert Suggestion.objects.count() == number + 1


def test_machines_at_once_write_no_more_than_their_share(at_once, monkeypatch):
    """Lock: the round, in `has_share_left`."""
    monkeypatch.setattr(share_services, "count_allowed_machine_texts", lambda shares, texts: 1)
    round, owner = mixed_round()
    adversaries = [make_adversary(round, owner, name=f"Search {number}") for number in range(4)]
    runs = [start_run(adversary=adversary, actor=owner) for adversary in adversaries]
    at_once(attack, [run.pk for run in runs])
    assert Example.objects.filter(support__arm="machines").count() == 1
