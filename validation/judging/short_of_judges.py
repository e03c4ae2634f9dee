"""Examples that wait for votes which none of a task's judges may give."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from django.db.models import Q

from annotation.models import ShownExample
from core.accounts.models import Annotator
from tasks.models import Round
from tasks.permissions import JUDGES, OWNERS
from validation.decisions.awaited import JUDGED_STATES
from validation.models import QueueItem, Skip, Validation

LOOKED_AT = 2000
"""So many waiting examples of a round are looked at, those that need the fewest votes first."""


class Shortage(NamedTuple):
    """The number of examples that cannot get their votes, and of further judges needed for them."""

    examples: int = 0
    judges: int = 0


def short_of_judges(round: Round) -> Shortage:
    """Count the examples whose votes the members cannot give: they wrote, judged or saw them.

    Five queries if only members may judge; none if everybody may, or if judging has ended.
    """
    # Everybody may judge a visible task, so nobody can tell who will come.
    if round.task.is_visible or round.state not in JUDGED_STATES:
        return Shortage()
    # Owners judge only while labels and votes are hidden from them.
    may_judge = Q(role__in=JUDGES) | Q(role__in=OWNERS, is_blind=True)
    members = round.task.members.standing().filter(may_judge).values("user")
    judges = set(Annotator.objects.filter(user__in=members).values_list("pk", flat=True))
    items = QueueItem.objects.filter(round=round, still_needed__gt=0, example__retracted_at=None)
    # As the queue gives them: what needs the fewest votes comes first.
    waiting_rows = items.order_by("still_needed").values_list("example", "author", "still_needed")
    barred_judges: dict[int, set[int]] = defaultdict(set)
    for example, judge in _iter_barred_judges(round, judges):
        barred_judges[example].add(judge)
    missing_votes = [
        needed - len(judges - barred_judges[example] - {author})
        for example, author, needed in waiting_rows[:LOOKED_AT]
    ]
    short = [number for number in missing_votes if number > 0]
    return Shortage(len(short), max(short, default=0))


def _iter_barred_judges(round: Round, judges: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (example, judge) for each example that a judge has voted on, skipped or seen."""
    of_round = {"example__round": round}
    votes = Validation.objects.filter(**of_round, validator__in=judges)
    skips = Skip.objects.filter(**of_round, validator__in=judges)
    shown_rows = ShownExample.objects.filter(**of_round, annotator__in=judges)
    # Streamed, as a round may have far more votes than examples.
    yield from votes.values_list("example", "validator").iterator()
    yield from skips.values_list("example", "validator").iterator()
    yield from shown_rows.values_list("example", "annotator").iterator()
