"""A template tag for the standing of a model on its board."""

from typing import TYPE_CHECKING

from django import template

from evaluation.models import Submission
from tasks.permissions import Person

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.rounds.standing import ModelStanding

register = template.Library()


@register.simple_tag(name="standing_of")
def find_standing(submission: Submission, user: Person) -> "ModelStanding | None":
    """Return the model's standing on its board, as far as the person may see it."""
    from leaderboard.rounds import standing

    return standing.find_model_standing(submission, user)
