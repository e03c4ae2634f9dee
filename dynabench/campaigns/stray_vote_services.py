"""Takes back votes of people of a panel where no study asked for them.

They could be cast before such people were kept to their studies' tasks. Their consent covers the
study alone, so the votes are deleted. What a round was released with stays.
"""

from django.db.models import Exists, OuterRef, QuerySet

from core.accounts.models import Annotator
from dynabench.campaigns.models import Place
from leaderboard.models import Comparison
from tasks.models import Round
from validation.decisions.services import take_back_votes
from validation.models import Validation

CHUNK = 1000
OF_PANELS = (Annotator.Source.PROLIFIC, Annotator.Source.MTURK, Annotator.Source.PANEL)


def take_back_stray_votes() -> int:
    """Take back such votes, and delete such comparisons; returns how many.

    Locks one example at a time.
    """
    found = _strays()
    by_example: dict[int, list[int]] = {}
    for example, validator in found.values_list("example", "validator")[:CHUNK]:
        by_example.setdefault(example, []).append(validator)
    taken = sum(take_back_votes(example=pk, validators=by) for pk, by in by_example.items())
    places = Place.objects.filter(annotator=OuterRef("voter"), campaign__task=OuterRef("task"))
    compared = Comparison.objects.filter(~Exists(places), voter__source__in=OF_PANELS)
    return taken + compared.delete()[0]


def _strays() -> QuerySet[Validation]:
    votes = Validation.objects.filter(validator__source__in=OF_PANELS, is_imported=False)
    votes = votes.exclude(example__round__state=Round.State.RELEASED)
    task = OuterRef("example__round__task")
    places = Place.objects.filter(annotator=OuterRef("validator"), campaign__task=task)
    return votes.filter(~Exists(places)).order_by("example", "pk")
