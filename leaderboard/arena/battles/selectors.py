"""Reads about battles: the open one, what a person has used today, which pair comes next."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Prefetch, Q, QuerySet, Value
from django.utils.translation import gettext as _

from annotation.refusals import NoContext
from core.accounts.counting import quota_name
from core.accounts.models import Annotator, SpentQuota
from core.data.adaptive_cache import kept_many
from core.days import midnight, today
from leaderboard.arena.board import LARGE_COMPARISONS
from leaderboard.models import Battle, Contestant, GoldPair, ReleaseConsent, Turn
from tasks.models import Task
from tasks.targets.spending_services import find_spent_targets
from validation.consensus.sampling import draw

BATTLES = "battles"
CONSENT_VERSION = 1
"""The version of the question whether conversations may be published; a new one asks everybody."""
_random = random.SystemRandom()


class DrawnPair(NamedTuple):
    """A pair of contestants by id, left and right, with the probability of drawing the pair."""

    left: int
    right: int
    chance: float


def select_battles(voter: Annotator, task: Task) -> QuerySet[Battle]:
    """Return a person's battles in an arena, with the related rows that their page shows."""
    turns = Prefetch("turns", Turn.objects.prefetch_related("replies"))
    battles = Battle.objects.filter(voter=voter, task=task)
    return battles.select_related("left__target", "right__target").prefetch_related(turns)


def find_open_battle(voter: Annotator, task: Task) -> Battle | None:
    """Return the battle in which the person has not voted yet; None if there is none."""
    return select_battles(voter, task).filter(ended_at__isnull=True).first()


def count_begun_today(voter: Annotator, task: Task) -> int:
    """Count the battles that the person began since 00:00 UTC, also under deleted accounts."""
    begun_battles = Battle.objects.filter(voter=voter, task=task, began_at__gte=midnight())
    # What deleted accounts of the same person used stays in their quota.
    used_before = SpentQuota.objects.filter(
        person__accounts__user=voter.user_id, day=today(), quota=quota_name(BATTLES, task.pk)
    )
    numbers = begun_battles.values_list(Value(1)).union(used_before.values_list("number"), all=True)
    return sum(number for (number,) in numbers)


def count_today_by_quota(voter: Annotator) -> dict[str, int]:
    """Count the battles that an annotator began since 00:00 UTC, by the task's quota."""
    begun = Battle.objects.filter(voter=voter, began_at__gte=midnight())
    counts = begun.order_by().values_list("task").annotate(Count("pk"))
    return {quota_name(BATTLES, task): number for task, number in counts}


def find_consent(voter: Annotator, task: Task) -> ReleaseConsent | None:
    """Return the person's answer to the current consent question; None if not answered."""
    answers = ReleaseConsent.objects.filter(voter=voter, task=task, version=CONSENT_VERSION)
    return answers.first()


def list_live_contestants(task: Task) -> list[Contestant]:
    """Return the models that battles may draw."""
    live = task.contestants.filter(is_live=True, target__isnull=False)
    return list(live.select_related("target").order_by("pk"))


def choose_next_gold(voter: Annotator, task: Task) -> GoldPair | None:
    """Return the gold pair to show the person next.

    None if no gold pair is due, or if the person has seen all of them. The choice depends on the
    last battle and a secret, so reloading the page does not change it.
    """
    last_battle = Battle.objects.filter(voter=voter, task=task).order_by("-pk").first()
    if last_battle is None:
        return None
    # A share `gold` of the battles is followed by a gold pair.
    if draw(f"gold {last_battle.uuid}", settings.SECRET_KEY) >= task.config.battles.gold * 2**64:
        return None
    # Once answered a pair is known, and would test only the memory.
    unseen = task.gold_pairs.filter(is_active=True).exclude(battles__voter=voter)
    pks = unseen.values_list("pk", flat=True)
    chosen = min(pks, key=lambda pk: draw(f"{voter.pk} {pk}", settings.SECRET_KEY), default=0)
    return GoldPair.objects.filter(pk=chosen).first()


def draw_pair(task: Task) -> DrawnPair:
    """Draw two models and their sides for a new battle. Raises NoContext with fewer than two."""
    contestants = list_live_contestants(task)
    spent_targets = find_spent_targets(
        contestant.target for contestant in contestants if contestant.target
    )
    live_ids = [
        contestant.pk for contestant in contestants if contestant.target_id not in spent_targets
    ]
    # Budgets are used up only for now, so people are asked to come back.
    if len(contestants) >= 2 > len(live_ids):
        raise NoContext(_("The models may not be asked more often for now. Come back later."))
    if len(live_ids) < 2:
        raise NoContext(_("This arena has fewer than two models that answer now."))
    pairs = _find_chances(task, live_ids)
    (pair,) = _random.choices(pairs, weights=[each.chance for each in pairs])
    # Sides by chance, or a voter's habit of taking one would favour a model.
    if _random.random() < 0.5:
        return pair
    return DrawnPair(pair.right, pair.left, pair.chance)


def _find_chances(task: Task, live_ids: Sequence[int]) -> Sequence[DrawnPair]:
    """Return the pairs of live models with their probabilities, at most a minute old.

    In a large arena a thread computes the probabilities; until it has finished, all pairs have the
    same probability.
    """
    # Another set of live models has other chances.
    digest = hashlib.sha256(repr(live_ids).encode()).hexdigest()[:16]
    key = f"arena-pairs:{task.pk}:{digest}"
    cached_chances = kept_many(
        [key],
        lambda keys: {key: _compute_chances(task, live_ids)},
        lambda keys: task.comparisons.all()[: LARGE_COMPARISONS + 1].count() > LARGE_COMPARISONS,
    ).get(key)
    if cached_chances:
        pairs: Sequence[DrawnPair] = cached_chances.numbers
        return pairs
    both = list(combinations(live_ids, 2))
    return [DrawnPair(left, right, 1 / len(both)) for left, right in both]


def _compute_chances(task: Task, live_ids: Sequence[int]) -> Sequence[DrawnPair]:
    """Compute the probabilities of all pairs.

    Imports numpy late, so that a web process loads it only when a pair is drawn.
    """
    import numpy as np

    from leaderboard.arena.battles.pairing import pair_chances
    from leaderboard.arena.report import read_votes

    ids, votes = read_votes(task, extra_ids=live_ids)
    pairs, chances = pair_chances(len(ids), votes, np.searchsorted(ids, live_ids))
    drawn_pairs = []
    for (left, right), chance in zip(pairs, chances, strict=True):
        drawn_pairs.append(DrawnPair(int(ids[left]), int(ids[right]), float(chance)))
    return drawn_pairs


@dataclass(frozen=True)
class ArenaCounts:
    """The size of an arena, for its owners. waiting: conversations that need their decision."""

    models: int
    conversations: int
    votes: int
    voters: int
    waiting: int


def count_arena(task: Task) -> ArenaCounts:
    """Count the live models, conversations, votes and voters of an arena. Two queries."""
    has_vote = ~Q(winner="") & Q(gold=None)
    counts = Battle.objects.filter(task=task).aggregate(
        conversations=Count("pk"),
        votes=Count("pk", filter=has_vote),
        voters=Count("voter", filter=has_vote, distinct=True),
        waiting=Count("pk", filter=Q(release=Battle.Release.WAITING)),
    )
    return ArenaCounts(models=task.contestants.filter(is_live=True).count(), **counts)
