"""Detection of waiting examples on which no further judge of the task may vote."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from django.db.models import Q

from annotation.models import ShownExample
from core.accounts.models import Annotator
from tasks.models import Round
from tasks.permissions import JUDGES, OWNERS
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.models import QueueItem, Skip, Validation

MAX_SCANNED_EXAMPLES = 2000
"""The most waiting examples of a round that are checked; those that need the fewest votes first."""


class Shortage(NamedTuple):
    """The number of examples that cannot get their votes, and of further judges needed for them."""

    example_count: int = 0
    judge_count: int = 0


def compute_shortage(round: Round) -> Shortage:
    """Count examples that lack votes because too many members wrote, judged or saw them.

    Five queries if only members may judge; none if everybody may, or if judging has ended.
    """
    # Everybody may judge a visible task, so the number of judges is unknown.
    if round.task.is_visible or round.state not in JUDGED_ROUND_STATES:
        return Shortage()
    # Owners judge only while labels and votes are hidden from them.
    is_judge = Q(role__in=JUDGES) | Q(role__in=OWNERS, is_blind=True)
    members = round.task.members.select_effective().filter(is_judge).values("user")
    judges = set(Annotator.objects.filter(user__in=members).values_list("pk", flat=True))
    items = QueueItem.objects.filter(round=round, still_needed__gt=0, example__retracted_at=None)
    # In the queue's order: examples that need the fewest votes come first.
    waiting_rows = items.order_by("still_needed").values_list("example", "author", "still_needed")
    barred_judges: dict[int, set[int]] = defaultdict(set)
    for example, judge in _iter_barred_judges(round, judges):
        barred_judges[example].add(judge)
    missing_votes = [
        needed - len(judges - barred_judges[example] - {author})
        for example, author, needed in waiting_rows[:MAX_SCANNED_EXAMPLES]
    ]
    positive_counts = [count for count in missing_votes if count > 0]
    return Shortage(len(positive_counts), max(positive_counts, default=0))


def _iter_barred_judges(round: Round, judges: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (example, judge) for each example that a judge has voted on, skipped or seen."""
    round_filter = {"example__round": round}
    votes = Validation.objects.filter(**round_filter, validator__in=judges)
    skips = Skip.objects.filter(**round_filter, validator__in=judges)
    shown_rows = ShownExample.objects.filter(**round_filter, annotator__in=judges)
    # Streamed, because a round may have far more votes than examples.
    yield from votes.values_list("example", "validator").iterator()
    yield from skips.values_list("example", "validator").iterator()
    yield from shown_rows.values_list("example", "annotator").iterator()
