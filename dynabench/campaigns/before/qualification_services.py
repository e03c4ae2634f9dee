"""Writes about a campaign's test: answers to gold items, and who passed or leaves kindly."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import ShownExample
from annotation.shown_services import note_shown_examples
from dynabench.accounts.models import Annotator
from dynabench.campaigns.before.qualification_items import items_of, shown
from dynabench.campaigns.before.tour import Part, examples_in
from dynabench.campaigns.models import LedgerRow, Place, Qualification
from dynabench.campaigns.place_services import enter_in_ledger, free_places
from dynabench.lib.errors import Refused
from validation.judging.pace import check_was_seen
from validation.models import GoldAnswer

State = Place.State


def begin(*, place: Place) -> Qualification:
    """The person's row of the test; no lock, a unique key."""
    assert place.annotator
    row, _made = Qualification.objects.get_or_create(
        annotator=place.annotator,
        task=place.campaign.task,
        defaults={"tried_at": timezone.now()},
    )
    return row


def note_tour(*, place: Place, tour: Sequence[Sequence[Part]]) -> None:
    """Store that the person sees the items of this tour, which they then never judge; no lock."""
    assert place.annotator
    note_shown_examples(
        annotator=place.annotator, examples=examples_in(tour), way=ShownExample.Way.TOUR
    )


@transaction.atomic
def take_test(*, place: Place, answers: Mapping[str, str]) -> Qualification:
    """Store one try: `label:…` or `verdict:…` by the example's uuid; the last one ends kindly.

    Who fails is owed what was promised for the time; who may try again keeps the place till then.
    Locks the campaign, then the place and the annotator, so that two tabs make one try. Raises
    Refused where something is unanswered, or it is too early or too late, and TooSoon.
    """
    free_places(campaign=place.campaign)
    found = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    assert found.annotator
    Annotator.objects.select_for_update(no_key=True).get(pk=found.annotator.pk)
    campaign, row = place.campaign, begin(place=found)
    if found.state != State.TESTING:
        raise Refused(_("You have taken the test."), code="tested")
    now = timezone.now()
    golds = [] if row.passed_at else items_of(found, row.tries)
    if golds and row.tries and now < row.tried_at + timedelta(hours=campaign.test_hours):
        raise Refused(_("Wait before you try again."), code="early")
    said = {gold: answers.get(str(gold.example.uuid), "") for gold in golds}
    if golds:
        check_was_seen(row.tried_at, items=len(golds))
    if any(answer not in dict(shown(found, gold).answers) for gold, answer in said.items()):
        raise Refused(_("Answer every item."), code="unfinished")
    right = 0
    for gold, answer in said.items():
        kind, _sep, value = answer.partition(":")
        is_right = value == (gold.label if kind == "label" else gold.verdict) != ""
        right += is_right
        told = {"label": value} if kind == "label" else {"verdict": value}
        GoldAnswer.objects.create(
            gold=gold, validator=found.annotator, is_correct=is_right, counts=False, **told
        )
    note_shown_examples(
        annotator=found.annotator, examples=[gold.pk for gold in golds], way=ShownExample.Way.TEST
    )
    minutes = timedelta(minutes=campaign.minutes)
    if golds:  # who only read the tour was not tested
        row.tries, row.right, row.asked, row.tried_at = row.tries + 1, right, len(golds), now
    if right >= min(campaign.test_right, len(golds)):
        row.passed_at = row.passed_at or (now if golds else None)
        now = timezone.now()  # later than the answers, which are no work
        found.state, found.began_at, found.expires_at = State.WORKING, now, now + minutes
    elif row.tries >= campaign.test_tries:
        found.state, found.submitted_at = State.SCREENED, now
        enter_in_ledger(found, LedgerRow.Kind.EARNED, campaign.pay_test, "test")
    else:
        found.expires_at = now + timedelta(hours=campaign.test_hours) + minutes
    row.save(update_fields=["tries", "right", "asked", "tried_at", "passed_at"])
    found.save(update_fields=["state", "began_at", "submitted_at", "expires_at"])
    return row
