"""The cap on one person's share of the votes of a large round.

It may be exceeded by one in a thousand, because counting takes longer the more votes there are.
"""

from django.core.cache import cache
from django.db.models import Count

from annotation import selectors as writing
from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import Round, Task
from validation.consensus.consensus import votes_still_needed
from validation.decisions.consensus_rows import policy_of
from validation.judging.queue import LatestLease, has_given, rounds_to_fill, rounds_with_places

CACHE_SECONDS = 300
"""For this time the size of a round is not counted again."""
LOOKED_AT = 1000
"""The votes of somebody who may give twice as many are counted half as often."""


def may_judge(validator: Annotator, task: Task, round: int) -> bool:
    """Return whether the validator may give another vote in the round."""
    most = find_vote_cap(task, round)
    return most is None or not has_given(most, round, validator)


def may_go_on(validator: Annotator, task: Task, latest_lease: LatestLease) -> bool:
    """Return `may_judge` for the round of the latest example.

    If the cap is high, it is checked only at random.
    """
    vote_cap = find_vote_cap(task, latest_lease.round)
    # By the last example's id, which is as good as chance and costs no query.
    if vote_cap is None or latest_lease.uuid.int % (1 + vote_cap // LOOKED_AT):
        return True
    return not has_given(vote_cap, latest_lease.round, validator)


def full_round(validator: Annotator, task: Task) -> Round | None:
    """Return a round that needs votes but in which this person has reached the cap."""
    rounds = (*rounds_with_places(task), *rounds_to_fill(task))
    return next((round for round in rounds if not may_judge(validator, task, round.pk)), None)


def find_vote_cap(task: Task, round: int) -> int | None:
    """Return one person's vote cap in the round; None for no limit. Usually no query."""
    share = task.config.limits.share_of_votes
    if share == 1:
        return None
    key = f"votes-wanted:{round}"
    # Counting a large round takes long; the cap may lag five minutes behind.
    fewest: int = cache.get_or_set(key, lambda: votes_wanted(round), CACHE_SECONDS)  # type: ignore[assignment]
    # No cap in a small round, where few people would soon reach it.
    return int(share * fewest) if fewest else None


def votes_wanted(round: int) -> int:
    """Return the minimum number of votes that the judged examples need; 0 in a small round."""
    examples = Example.objects.filter(round=round, retracted_at__isnull=True)
    # A slice, so that the count ends as soon as the round is known to be large.
    if examples[: writing.LARGE_ROUND].count() < writing.LARGE_ROUND:
        return 0
    its = Round.objects.select_related("task").get(pk=round)
    share = its.task.config.validation.judge_not_fooled
    outcomes = dict(examples.order_by().values_list("outcome").annotate(Count("pk")))
    not_fooled = outcomes.pop(Example.Outcome.NOT_FOOLED, 0)
    # An estimate: which of them are drawn is known only once they are queued.
    judged = sum(outcomes.values()) + share * not_fooled
    return int(judged * votes_still_needed([], policy_of(its)))
