"""Writes about the questions before the work: answered once, forgotten with the person."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import Place
from dynabench.campaigns.place_services import first_state


def answer_questions(*, place: Place, answers: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Store what somebody answered; without a tour or a test before them, they begin to work.

    No lock, one update: of two tabs the first one counts. Raises Refused.
    """
    assert place.annotator
    state = first_state(place.campaign, place.annotator, is_asked=True)
    # The filter on missing answers makes the first of two tabs win: the other updates no row.
    unanswered = Place.objects.filter(pk=place.pk, state=Place.State.TESTING, answers__isnull=True)
    if not unanswered.update(answers=dict(answers), about=dict(about), state=state):
        raise Refused(_("You have answered before."), code="answered")


def forget_answers(*, annotator: Annotator) -> None:
    """Delete what somebody who leaves the site has told about themselves. No lock."""
    Place.objects.filter(annotator=annotator).update(answers=None, about={}, reason="")
