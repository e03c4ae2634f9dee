"""Write a campaign's test: the answers to gold items, and their consequences."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator
from core.data.rows import save_changed_fields
from core.errors import Refused
from dynabench.campaigns.before.qualification_items import (
    build_item,
    draw_test_items,
    lacks_test_items,
)
from dynabench.campaigns.before.tour import TourPart, list_example_ids
from dynabench.campaigns.models import LedgerRow, Place, Qualification
from dynabench.campaigns.place_services import enter_in_ledger, free_places
from validation.judging.pace import check_was_seen
from validation.models import Gold, GoldAnswer

State = Place.State


def get_qualification(*, place: Place) -> Qualification:
    """Return the person's test record, creating it on the first visit.

    Takes no lock: a unique key prevents a second record.
    """
    assert place.annotator
    row, _made = Qualification.objects.get_or_create(
        annotator=place.annotator,
        task=place.campaign.task,
        defaults={"tried_at": timezone.now()},
    )
    return row


def note_tour(*, place: Place, tour: Sequence[Sequence[TourPart]]) -> None:
    """Record which examples the tour showed to the person, so that they never judge them.

    Takes no lock.
    """
    assert place.annotator
    note_shown_examples(
        annotator=place.annotator, examples=list_example_ids(tour), way=ShownExample.Way.TOUR
    )


@transaction.atomic
def take_test(*, place: Place, answers: Mapping[str, str]) -> Qualification:
    """Store one try of the test and decide whether the person works, tries again or leaves.

    answers: `label:…` or `verdict:…` by the example's UUID.

    1. Free the places whose time is over. One of them may be this person's.
    2. Refuse the try if the test is over or the try comes too early.
    3. Store the answers. The person has then seen these items.
    4. With enough right answers the work begins. If no try or no item is left, the person
       leaves and is credited the pay for the test. Otherwise they keep the place until the
       next try.

    Locks the campaign, then the place and the annotator, so that two tabs make one try.
    Raises Refused if an item is unanswered or the test is over, TooSoon before the next try
    is allowed.
    """
    free_places(campaign=place.campaign)
    locked_place = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    assert locked_place.annotator
    # The row of the test is of the person and the task, so another campaign's tab waits, too.
    Annotator.objects.select_for_update(no_key=True).get(pk=locked_place.annotator.pk)
    campaign = place.campaign
    locked_place.campaign = campaign
    row = get_qualification(place=locked_place)
    if locked_place.state != State.TESTING:
        raise Refused(_("You have already taken the test. Reload the study's page."), code="tested")
    now = timezone.now()
    # Somebody who passed in another campaign of the task only sees the tour here.
    golds = [] if row.passed_at else draw_test_items(locked_place, row.tries)
    if lacks_test_items(campaign, row, golds):
        _screen_out(locked_place, has_run_out=True)
        return row
    if golds and row.tries and now < row.tried_at + timedelta(hours=campaign.test_hours):
        message = ngettext(
            "Wait %(hours)d hour after an attempt before you try again.",
            "Wait %(hours)d hours after an attempt before you try again.",
            campaign.test_hours,
        )
        raise Refused(message % {"hours": campaign.test_hours}, code="early")
    if golds:
        check_was_seen(row.tried_at, item_count=len(golds))
    right_count = _store_answers(locked_place, golds, answers)
    has_passed = not golds or right_count >= campaign.test_right
    if golds:  # otherwise there was a tour only, and nobody was tested
        row.tries, row.right, row.asked, row.tried_at = row.tries + 1, right_count, len(golds), now
        row.passed_at = now if has_passed else None
        row.save(update_fields=["tries", "right", "asked", "tried_at", "passed_at"])
    if has_passed:
        _start_work(locked_place)
    elif row.tries >= campaign.test_tries:
        _screen_out(locked_place)
    elif not draw_test_items(locked_place, row.tries):
        _screen_out(locked_place, has_run_out=True)
    else:
        # The place stays theirs until the next try may begin, and as long as a try may take.
        wait = timedelta(hours=campaign.test_hours, minutes=campaign.minutes)
        save_changed_fields(locked_place, {"expires_at": now + wait})
    return row


def _store_answers(place: Place, golds: Sequence[Gold], answers: Mapping[str, str]) -> int:
    """Store the answers of one try and return how many are right.

    Raises Refused if an item was not answered.
    """
    assert place.annotator
    answers_by_gold = {gold: answers.get(str(gold.example.uuid), "") for gold in golds}
    for gold, answer in answers_by_gold.items():
        if answer not in dict(build_item(place, gold).answers):
            raise Refused(_("Answer every item."), code="unfinished")
    right_count = 0
    for gold, answer in answers_by_gold.items():
        kind, _sep, value = answer.partition(":")  # "label" or "verdict"
        right_value = gold.label if kind == "label" else gold.verdict
        is_right = value == right_value != ""
        right_count += is_right
        # counts=False: a test tells nothing about how somebody judges at work.
        GoldAnswer.objects.create(
            gold=gold, validator=place.annotator, is_correct=is_right, counts=False, **{kind: value}
        )
    note_shown_examples(
        annotator=place.annotator, examples=[gold.pk for gold in golds], way=ShownExample.Way.TEST
    )
    return right_count


def _start_work(place: Place) -> None:
    """Start the person's work, with the campaign's full working time."""
    # Work counts from `began_at`, so a time after the answers keeps these out.
    now = timezone.now()
    expires_at = now + timedelta(minutes=place.campaign.minutes)
    save_changed_fields(place, {"state": State.WORKING, "began_at": now, "expires_at": expires_at})


def _screen_out(place: Place, *, has_run_out: bool = False) -> None:
    """End the person's participation before the work, and credit the pay for the test.

    has_run_out: whether too few test items were left for the person; the owner is notified.
    """
    now = timezone.now()
    values = {"state": State.SCREENED, "submitted_at": now}
    if has_run_out:
        values["ran_out_at"] = now
    save_changed_fields(place, values)
    enter_in_ledger(place, LedgerRow.Kind.EARNED, place.campaign.pay_test, "test")
