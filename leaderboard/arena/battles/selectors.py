"""Reads of battles: a person's open battle, their battles of today, and the next pair."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Prefetch, Q, QuerySet, Value
from django.utils.translation import gettext as _

from annotation.refusals import NoContext
from core.accounts.counting import build_quota_name
from core.accounts.models import Annotator, SpentQuota
from core.data.adaptive_cache import read_or_count_many
from core.days import get_midnight, get_today
from leaderboard.arena.battles.weights import compute_shown_chance
from leaderboard.arena.board import LARGE_COMPARISONS
from leaderboard.models import SIDES, Battle, Contestant, GoldPair, ReleaseConsent, Turn
from tasks.models import Task
from tasks.targets.circuit_breaker.breaker import find_open_breakers
from tasks.targets.spending_services import find_spent_targets
from validation.consensus.sampling import draw_number

BATTLES_LABEL = "battles"
CONSENT_VERSION = 1
"""The version of the question about publication; after a change everybody is asked again."""
PairChances = Mapping[frozenset[int], float]
"""The probability of drawing each pair of contestants, by the ids of both."""
_random = random.SystemRandom()


class DrawnPair(NamedTuple):
    """The contestants of a new battle by id, with what its weight depends on.

    chance: the probability of drawing the pair, or with more than two answers the mean probability
    of the shown pairs. pair_count: the number of pairs that could be drawn. others: the contestants
    on further sides.
    """

    left: int
    right: int
    chance: float
    pair_count: int
    others: tuple[int, ...] = ()


def select_battles(voter: Annotator, task: Task) -> QuerySet[Battle]:
    """Return a person's battles in an arena, with the related rows that their page shows."""
    turns = Prefetch("turns", Turn.objects.prefetch_related("replies"))
    battles = Battle.objects.filter(voter=voter, task=task)
    return battles.select_related("left__target", "right__target").prefetch_related(
        turns, "extra_sides__contestant__target"
    )


def find_open_battle(voter: Annotator, task: Task) -> Battle | None:
    """Return the battle in which the person has not voted yet; None if there is none."""
    return select_battles(voter, task).filter(ended_at__isnull=True).first()


def count_battles_begun_today(voter: Annotator, task: Task) -> int:
    """Count the person's battles since 00:00 UTC, including those under deleted accounts."""
    begun_battles = Battle.objects.filter(voter=voter, task=task, began_at__gte=get_midnight())
    # Use by deleted accounts of the same person still counts for their quota.
    used_before = SpentQuota.objects.filter(
        person__accounts__user=voter.user_id,
        day=get_today(),
        quota=build_quota_name(BATTLES_LABEL, task.pk),
    )
    numbers = begun_battles.values_list(Value(1)).union(used_before.values_list("number"), all=True)
    return sum(number for (number,) in numbers)


def count_battles_today_by_quota(voter: Annotator) -> dict[str, int]:
    """Count the battles that an annotator began since 00:00 UTC, by the task's quota."""
    begun = Battle.objects.filter(voter=voter, began_at__gte=get_midnight())
    counts = begun.order_by().values_list("task").annotate(Count("pk"))
    return {build_quota_name(BATTLES_LABEL, task): number for task, number in counts}


def find_consent(voter: Annotator, task: Task) -> ReleaseConsent | None:
    """Return the person's answer to the current consent question; None if not answered."""
    answers = ReleaseConsent.objects.filter(voter=voter, task=task, version=CONSENT_VERSION)
    return answers.first()


def find_newest_published_battle(task: Task) -> Battle | None:
    """Return the newest published battle of two models with a vote for one of them.

    None in a sensitive task, whose texts are not shown for entertainment. At most three queries.
    """
    if task.is_sensitive:
        return None
    battles = Battle.objects.filter(
        task=task, release=Battle.Release.RELEASED, winner__in=SIDES, names_itself=False
    )
    # Several answers would not fit beside each other, and a gold pair has no models.
    two_models = battles.filter(gold__isnull=True, ranking__isnull=True)
    first_turns = Prefetch("turns", Turn.objects.filter(number=1).prefetch_related("replies"))
    battle: Battle | None = (
        two_models.select_related("left", "right")
        .prefetch_related(first_turns)
        .order_by("-pk")
        .first()
    )
    return battle


def list_live_contestants(task: Task) -> list[Contestant]:
    """Return the models that battles may draw."""
    live = task.contestants.filter(is_live=True, target__isnull=False)
    return list(live.select_related("target").order_by("pk"))


def choose_next_gold_pair(voter: Annotator, task: Task) -> GoldPair | None:
    """Return the gold pair to show the person next.

    None if no gold pair is due, or if the person has seen all of them. The choice depends on the
    last battle and a secret, so reloading the page does not change it.
    """
    last_battle = Battle.objects.filter(voter=voter, task=task).order_by("-pk").first()
    if last_battle is None:
        return None
    # After a share `gold` of the battles, a gold pair follows.
    if (
        draw_number(f"gold {last_battle.uuid}", settings.SECRET_KEY)
        >= task.config.battles.gold * 2**64
    ):
        return None
    # Once answered, a pair is known, and would only test memory.
    unseen = task.gold_pairs.filter(is_active=True).exclude(battles__voter=voter)
    pks = unseen.values_list("pk", flat=True)
    chosen = min(
        pks, key=lambda pk: draw_number(f"{voter.pk} {pk}", settings.SECRET_KEY), default=0
    )
    return GoldPair.objects.filter(pk=chosen).first()


def draw_pair(task: Task) -> DrawnPair:
    """Draw the models of a new battle and their sides.

    Two models are drawn as a pair. Further ones, up to the arena's number of answers, are drawn
    with equal chances. Raises NoContext if fewer than two models are live and have budget left.
    """
    contestants = list_live_contestants(task)
    spent_targets = find_spent_targets(
        contestant.target for contestant in contestants if contestant.target
    )
    live_ids = [
        contestant.pk for contestant in contestants if contestant.target_id not in spent_targets
    ]
    # Budgets are used up only for now, so people are asked to return.
    if len(contestants) >= 2 > len(live_ids):
        raise NoContext(_("The models have reached their request limit. Come back later."))
    if len(live_ids) < 2:
        raise NoContext(_("This arena needs two working models. Come back later."))
    live_ids = _leave_out_failing(contestants, live_ids)
    chances = _find_chances(task, live_ids)
    (pair,) = _random.choices(list(chances), weights=list(chances.values()))
    other_ids = [pk for pk in live_ids if pk not in pair]
    extra_count = min(task.config.battles.answers - len(SIDES), len(other_ids))
    drawn_ids = [*pair, *_random.sample(other_ids, extra_count)]
    # Random sides, because a voter's preference for one side would favour a model.
    _random.shuffle(drawn_ids)
    left, right, *others = drawn_ids
    chance = compute_shown_chance(chances, drawn_ids)
    return DrawnPair(left, right, chance, len(chances), tuple(others))


def _leave_out_failing(contestants: Sequence[Contestant], live_ids: list[int]) -> list[int]:
    """Return the ids without those of models that keep failing, if at least two are left.

    With fewer, all stay: the writer can then send the message again. One read of the cache.
    """
    target_keys = {each.pk: str(each.target_id) for each in contestants if each.pk in live_ids}
    failing_keys = find_open_breakers(cache, list(target_keys.values()))
    working_ids = [pk for pk in live_ids if target_keys[pk] not in failing_keys]
    return working_ids if len(working_ids) >= len(SIDES) else live_ids


def _find_chances(task: Task, live_ids: Sequence[int]) -> PairChances:
    """Return the probability of each pair of live models, which may be a cached one.

    It is exact in any case, because it is the one that the draw uses, of the pairs that can be
    drawn now. In a large arena a thread computes the probabilities; until it has finished, and if
    the owners want it, all pairs have the same probability.
    """
    pairs = [frozenset(pair) for pair in combinations(live_ids, 2)]
    equal_chances = dict.fromkeys(pairs, 1 / len(pairs))
    if task.config.battles.pairs == "uniform":
        return equal_chances
    # A different set of live models has different probabilities.
    digest = hashlib.sha256(repr(live_ids).encode()).hexdigest()[:16]
    key = f"arena-chances:{task.pk}:{digest}"
    cached_chances = read_or_count_many(
        [key],
        lambda keys: {key: _compute_chances(task, live_ids)},
        lambda keys: task.comparisons.all()[: LARGE_COMPARISONS + 1].count() > LARGE_COMPARISONS,
    ).get(key)
    chances: PairChances = cached_chances.numbers if cached_chances else equal_chances
    return chances


def _compute_chances(task: Task, live_ids: Sequence[int]) -> PairChances:
    """Compute the probabilities of all pairs.

    Imports numpy late, so that a web process loads it only when a pair is drawn.
    """
    import numpy as np

    from leaderboard.arena.battles.pairing import compute_pair_chances
    from leaderboard.arena.report import read_votes

    model_ids, votes = read_votes(task, extra_ids=live_ids)
    pairs, chances = compute_pair_chances(
        len(model_ids), votes, np.searchsorted(model_ids, live_ids)
    )
    chance_by_pair = {}
    for pair, chance in zip(model_ids[pairs].tolist(), chances.tolist(), strict=True):
        chance_by_pair[frozenset(pair)] = chance
    return chance_by_pair


@dataclass(frozen=True)
class ArenaCounts:
    """The size of an arena, for its owners.

    models: live models. waiting: conversations that need the owners' decision.
    """

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
