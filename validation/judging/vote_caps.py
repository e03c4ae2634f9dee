"""The cap on one person's share of the votes of a large round.

It may be exceeded by one in a thousand, because counting takes longer the more votes there are.
"""

from django.core.cache import cache
from django.db.models import Count

from annotation import selectors as writing
from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import Round, Task
from validation.consensus.consensus import count_votes_still_needed
from validation.decisions.consensus_rows import get_policy
from validation.judging.queue import (
    LatestLease,
    has_reached_vote_limit,
    list_rounds_to_fill,
    list_rounds_with_places,
)

CACHE_SECONDS = 300
"""Seconds for which the size of a round is cached."""
MAX_SCANNED_EXAMPLES = 1000
"""If the cap is higher, a person's votes are counted only at random: the higher, the rarer."""


def has_votes_left(validator: Annotator, task: Task, round: int) -> bool:
    """Return whether the validator may give another vote in the round."""
    vote_cap = find_vote_cap(task, round)
    return vote_cap is None or not has_reached_vote_limit(vote_cap, round, validator)


def has_probably_votes_left(validator: Annotator, task: Task, latest_lease: LatestLease) -> bool:
    """Return `has_votes_left` for the round of the latest example.

    If the cap is high, it is checked only at random.
    """
    vote_cap = find_vote_cap(task, latest_lease.round)
    # By the last example's id, which is as good as random and costs no query.
    if vote_cap is None or latest_lease.uuid.int % (1 + vote_cap // MAX_SCANNED_EXAMPLES):
        return True
    return not has_reached_vote_limit(vote_cap, latest_lease.round, validator)


def find_full_round(validator: Annotator, task: Task) -> Round | None:
    """Return a round that needs votes but in which this person has reached the cap."""
    rounds = (*list_rounds_with_places(task), *list_rounds_to_fill(task))
    return next((round for round in rounds if not has_votes_left(validator, task, round.pk)), None)


def find_vote_cap(task: Task, round: int) -> int | None:
    """Return one person's vote cap in the round; None for no limit. Usually no query."""
    share = task.config.limits.share_of_votes
    if share == 1:
        return None
    key = f"votes-wanted:{round}"
    # Counting a large round takes long, so the cap may lag five minutes behind.
    vote_count: int = cache.get_or_set(key, lambda: count_required_votes(round), CACHE_SECONDS)  # type: ignore[assignment]
    # No cap in a small round, because a few people would soon reach it.
    return int(share * vote_count) if vote_count else None


def count_required_votes(round: int) -> int:
    """Return the minimum number of votes that the judged examples need; 0 in a small round."""
    examples = Example.objects.filter(round=round, retracted_at__isnull=True)
    # A slice, so that the count ends as soon as the round is known to be large.
    if examples[: writing.MIN_LARGE_ROUND_EXAMPLES].count() < writing.MIN_LARGE_ROUND_EXAMPLES:
        return 0
    round_row = Round.objects.select_related("task").get(pk=round)
    share = round_row.task.config.validation.judge_not_fooled
    outcomes = dict(examples.order_by().values_list("outcome").annotate(Count("pk")))
    not_fooled_count = outcomes.pop(Example.Outcome.NOT_FOOLED, 0)
    # An estimate: which of them are drawn is known only once they are queued.
    judged_count = sum(outcomes.values()) + share * not_fooled_count
    return int(judged_count * count_votes_still_needed([], get_policy(round_row)))
