"""Writes about the questions before the work: answered once, forgotten with the person."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import Place
from dynabench.campaigns.place_services import choose_first_state


def answer_questions(*, place: Place, answers: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Store the answers to the questionnaire; if no tour or test follows, start the work.

    answers: to the study's questions. about: to the questions about the person.
    Takes no lock: a single update, so the first of two tabs wins. Raises Refused.
    """
    assert place.annotator
    state = choose_first_state(place.campaign, place.annotator, is_asked=True)
    # The filter on missing answers makes the first of two tabs win: the other updates no row.
    unanswered = Place.objects.filter(pk=place.pk, state=Place.State.TESTING, answers__isnull=True)
    if not unanswered.update(answers=dict(answers), about=dict(about), state=state):
        raise Refused(_("You have answered before."), code="answered")


def forget_answers(*, annotator: Annotator) -> None:
    """Delete a departing person's answers to questions about themselves. Takes no lock."""
    Place.objects.filter(annotator=annotator).update(answers=None, about={}, reason="")
