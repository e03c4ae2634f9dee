"""A model's place on its board, for the page of the model: a room that boards build upon."""

from typing import TYPE_CHECKING

from django import template

from evaluation.models import Submission
from tasks.permissions import Person

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.rounds.standing import Standing

register = template.Library()


@register.simple_tag(name="standing_of")
def find_standing(submission: Submission, user: Person) -> "Standing | None":
    """Return the model's standing on its board, as far as the person may see it."""
    from leaderboard.rounds import standing

    return standing.find_model_standing(submission, user)
