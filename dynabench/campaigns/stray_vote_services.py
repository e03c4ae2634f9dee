"""Takes back votes of people of a panel where no study asked for them.

They could be cast before such people were kept to their studies' tasks. Their consent covers the
study alone, so the votes are deleted. What a round was released with stays.
"""

from collections import defaultdict

from django.db.models import Exists, OuterRef, QuerySet

from core.accounts.models import Annotator
from core.periodic import daily
from dynabench.campaigns.models import Place
from leaderboard.models import Comparison
from tasks.models import Round
from validation.decisions.services import take_back_votes
from validation.models import Validation

MAX_VOTES = 1000
"""Votes of one run, so that it stays short."""
PANEL_SOURCES = (Annotator.Source.PROLIFIC, Annotator.Source.MTURK, Annotator.Source.PANEL)


@daily(
    counts="votes taken back", why="Former releases took votes of panels outside of their studies."
)
def take_back_stray_votes() -> int:
    """Delete panel participants' votes and comparisons outside their studies' tasks.

    Return how many. Deletes the votes of at most CHUNK per run. Locks one example at a
    time.
    """
    # By example, whose lock lets its consensus be counted again without these votes.
    validators_of: dict[int, list[int]] = defaultdict(list)
    for example, validator in _select_stray_votes().values_list("example", "validator")[:MAX_VOTES]:
        validators_of[example].append(validator)
    deleted_votes = 0
    for example, validators in validators_of.items():
        deleted_votes += take_back_votes(example=example, validators=validators)
    places = Place.objects.filter(annotator=OuterRef("voter"), campaign__task=OuterRef("task"))
    comparisons = Comparison.objects.filter(~Exists(places), voter__source__in=PANEL_SOURCES)
    return deleted_votes + comparisons.delete()[0]


def _select_stray_votes() -> QuerySet[Validation]:
    """Return panel participants' votes on tasks in which they take part in no study.

    Excludes released rounds.
    """
    votes = Validation.objects.filter(validator__source__in=PANEL_SOURCES, is_imported=False)
    votes = votes.exclude(example__round__state=Round.State.RELEASED)
    task = OuterRef("example__round__task")
    places = Place.objects.filter(annotator=OuterRef("validator"), campaign__task=task)
    return votes.filter(~Exists(places)).order_by("example", "pk")
