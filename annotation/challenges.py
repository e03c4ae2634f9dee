"""Challenges: something to try of which a round has little yet. People may leave them."""

import random
from time import perf_counter

from django.core.cache import cache
from django.db.models import Count

from annotation.models import Example
from tasks.models import Round

KEPT_SECONDS = 30
KEPT_TIMES = 50
"""In a large round the counts are kept longer: for so many times as long as counting took."""


def next_challenge(round: Round) -> str | None:
    """The challenge with the fewest verified examples, by chance among equals; None: the task
    has none."""
    names = list(round.task.config.challenges)
    if not names:
        return None
    verified = verified_by_challenge(round)
    fewest = min(verified.get(name, 0) for name in names)
    return random.choice([name for name in names if verified.get(name, 0) == fewest])


def verified_by_challenge(round: Round) -> dict[str, int]:
    """How many verified examples each challenge has, now or a little ago.

    Consensus is a later stage's row; `consensus` is the name that it gives its link here.
    """
    found: dict[str, int] | None = cache.get(key := f"challenges:{round.pk}")
    if found is None:
        started = perf_counter()
        verified = Example.objects.filter(
            round=round,
            challenge__isnull=False,
            retracted_at__isnull=True,
            by_program=False,
            consensus__is_verified=True,
        )
        found = dict(verified.values_list("challenge").annotate(Count("pk")).order_by())
        cache.set(key, found, max(KEPT_SECONDS, KEPT_TIMES * (perf_counter() - started)))
    return found
