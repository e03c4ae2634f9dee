"""Write the answers to the questionnaire before the work."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import Place
from dynabench.campaigns.place_services import choose_first_state


def answer_questions(*, place: Place, answers: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Store the answers to the questionnaire; if no tour or test follows, start the work.

    answers: the answers to the study's questions. about: the answers to the questions about the
    person.
    Takes no lock: a single update, so the first of two tabs wins. Raises Refused.
    """
    assert place.annotator
    state = choose_first_state(place.campaign, place.annotator, is_asked=True)
    # The filter on missing answers makes the first of two tabs win: the other updates no row.
    unanswered_places = Place.objects.filter(
        pk=place.pk, state=Place.State.TESTING, answers__isnull=True
    )
    if not unanswered_places.update(answers=dict(answers), about=dict(about), state=state):
        raise Refused(
            _("You have already answered these questions. Continue with your work."),
            code="answered",
        )


def forget_answers(*, annotator: Annotator) -> None:
    """Delete a departing person's answers and the reasons for decisions about them.

    Takes no lock.
    """
    Place.objects.filter(annotator=annotator).update(answers=None, about={}, reason="")
