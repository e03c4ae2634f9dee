"""Write the answers to the questionnaire, before and after the work."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import WORKING_STATES, Place
from dynabench.campaigns.place_services import choose_first_state, lacks_closing_answers
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import count_done_work, may_submit


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


@transaction.atomic
def answer_closing_questions(*, place: Place, answers: Mapping[str, Any]) -> None:
    """Add the answers to the questions after the work. Locks the place. Raises Refused.

    answers: by the name of the question. What was left open is stored as None.
    """
    locked_place = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    done_work = count_done_work(locked_place)
    # Of two tabs the second finds the answers of the first.
    may_answer = locked_place.state in WORKING_STATES and lacks_closing_answers(locked_place)
    if not may_answer or not may_submit(locked_place, done_work):
        raise Refused(_("These questions come once, after your work."), code="answered")
    open_answers = dict.fromkeys(
        question.name for question in read_questionnaire(place.campaign.questions).after
    )
    locked_place.answers = {**(locked_place.answers or {}), **open_answers, **answers}
    locked_place.save(update_fields=["answers"])


def forget_answers(*, annotator: Annotator) -> None:
    """Delete a departing person's answers and the reasons for decisions about them.

    Takes no lock.
    """
    Place.objects.filter(annotator=annotator).update(answers=None, about={}, reason="")
