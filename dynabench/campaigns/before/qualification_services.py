"""Writes about a campaign's test: answers to gold items, and who passed or leaves kindly."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator
from core.data.rows import changed_fields
from core.errors import Refused
from dynabench.campaigns.before.qualification_items import items_of, lacks_items, shown
from dynabench.campaigns.before.tour import Part, examples_in
from dynabench.campaigns.models import LedgerRow, Place, Qualification
from dynabench.campaigns.place_services import enter_in_ledger, free_places
from validation.judging.pace import check_was_seen
from validation.models import Gold, GoldAnswer

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

    Who fails is owed what was promised for the time, and so is who cannot be tested, as too few
    items are left; who may try again keeps the place till then. Locks the campaign, then the place
    and the annotator, so that two tabs make one try. Raises Refused where something is unanswered,
    or it is too early or too late, and TooSoon.
    """
    free_places(campaign=place.campaign)
    found = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    assert found.annotator
    Annotator.objects.select_for_update(no_key=True).get(pk=found.annotator.pk)
    found.campaign = campaign = place.campaign
    row = begin(place=found)
    if found.state != State.TESTING:
        raise Refused(_("You have taken the test."), code="tested")
    now = timezone.now()
    golds = [] if row.passed_at else items_of(found, row.tries)
    if lacks_items(campaign, row, golds):
        _screen_out(found, ran_out=True)
        return row
    if golds and row.tries and now < row.tried_at + timedelta(hours=campaign.test_hours):
        raise Refused(_("Wait before you try again."), code="early")
    if golds:
        check_was_seen(row.tried_at, items=len(golds))
    right = _store_answers(found, golds, answers)
    passes = not golds or right >= campaign.test_right
    if golds:  # who only read the tour was not tested
        row.tries, row.right, row.asked, row.tried_at = row.tries + 1, right, len(golds), now
        row.passed_at = now if passes else None
        row.save(update_fields=["tries", "right", "asked", "tried_at", "passed_at"])
    if passes:
        _let_work(found)
    elif row.tries >= campaign.test_tries:
        _screen_out(found)
    elif not items_of(found, row.tries):
        _screen_out(found, ran_out=True)
    else:
        wait = timedelta(hours=campaign.test_hours, minutes=campaign.minutes)
        changed_fields(found, {"expires_at": now + wait})
    return row


def _store_answers(place: Place, golds: Sequence[Gold], answers: Mapping[str, str]) -> int:
    """Keep what was answered to each item; returns how many are right. Raises Refused."""
    assert place.annotator
    said = {gold: answers.get(str(gold.example.uuid), "") for gold in golds}
    if any(answer not in dict(shown(place, gold).answers) for gold, answer in said.items()):
        raise Refused(_("Answer every item."), code="unfinished")
    right = 0
    for gold, answer in said.items():
        kind, _sep, value = answer.partition(":")
        is_right = value == (gold.label if kind == "label" else gold.verdict) != ""
        right += is_right
        told = {"label": value} if kind == "label" else {"verdict": value}
        GoldAnswer.objects.create(
            gold=gold, validator=place.annotator, is_correct=is_right, counts=False, **told
        )
    note_shown_examples(
        annotator=place.annotator, examples=[gold.pk for gold in golds], way=ShownExample.Way.TEST
    )
    return right


def _let_work(place: Place) -> None:
    now = timezone.now()  # later than the answers, which are no work
    until = now + timedelta(minutes=place.campaign.minutes)
    changed_fields(place, {"state": State.WORKING, "began_at": now, "expires_at": until})


def _screen_out(place: Place, *, ran_out: bool = False) -> None:
    """End somebody's part before the work, with the pay for the test.

    ran_out: no item was left for them, which the owner is told.
    """
    now = timezone.now()
    ended = {"state": State.SCREENED, "submitted_at": now}
    changed_fields(place, ended | ({"ran_out_at": now} if ran_out else {}))
    enter_in_ledger(place, LedgerRow.Kind.EARNED, place.campaign.pay_test, "test")
