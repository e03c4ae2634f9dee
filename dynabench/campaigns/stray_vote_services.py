"""Withdraw votes of panel participants on tasks for which no study asked for them.

Earlier releases let panel participants vote outside their studies' tasks. Their consent covers
only the study, so these votes are deleted. Released rounds stay as they are.
"""

from collections import defaultdict

from django.db.models import Exists, OuterRef, QuerySet

from core.accounts.models import Annotator
from core.periodic import register_daily
from dynabench.campaigns.models import Place
from leaderboard.models import Comparison
from tasks.models import Round
from validation.decisions.services import delete_votes
from validation.models import Validation

MAX_VOTES = 1000
"""The maximum number of votes that one run deletes, so that it stays short."""
PANEL_SOURCES = (Annotator.Source.PROLIFIC, Annotator.Source.MTURK, Annotator.Source.PANEL)


@register_daily(
    counts="votes withdrawn", why="Earlier releases counted panel votes from outside the studies."
)
def take_back_stray_votes() -> int:
    """Delete panel participants' votes and comparisons outside their studies' tasks.

    Return how many were deleted. Deletes at most MAX_VOTES votes per run. Locks one example at a
    time.
    """
    # By example, whose lock lets its consensus be counted again without these votes.
    validators_by_example: dict[int, list[int]] = defaultdict(list)
    for example, validator in _select_stray_votes().values_list("example", "validator")[:MAX_VOTES]:
        validators_by_example[example].append(validator)
    deleted_votes = 0
    for example, validators in validators_by_example.items():
        deleted_votes += delete_votes(example=example, validators=validators)
    places = Place.objects.filter(annotator=OuterRef("voter"), campaign__task=OuterRef("task"))
    comparisons = Comparison.objects.filter(~Exists(places), voter__source__in=PANEL_SOURCES)
    return deleted_votes + comparisons.delete()[0]


def _select_stray_votes() -> QuerySet[Validation]:
    """Return panel participants' votes on tasks in whose studies they never took part.

    Excludes released rounds.
    """
    votes = Validation.objects.filter(validator__source__in=PANEL_SOURCES, is_imported=False)
    votes = votes.exclude(example__round__state=Round.State.RELEASED)
    task = OuterRef("example__round__task")
    places = Place.objects.filter(annotator=OuterRef("validator"), campaign__task=task)
    return votes.filter(~Exists(places)).order_by("example", "pk")
