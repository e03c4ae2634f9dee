"""Optional challenges: kinds of examples of which a round has few."""

import random

from django.db.models import Count

from annotation.models import Example
from annotation.questions import build_verified_condition
from core.data.adaptive_cache import read_or_count
from tasks.models import Round


def draw_challenge(round: Round) -> str | None:
    """Draw the challenge with the fewest verified examples; ties are broken at random.

    None if the task has no challenges.
    """
    names = list(round.task.config.challenges)
    if not names:
        return None
    verified_counts = count_verified_by_challenge(round)
    fewest = min(verified_counts.get(name, 0) for name in names)
    # By chance, so that two people at once are not led to the same one.
    return random.choice([name for name in names if verified_counts.get(name, 0) == fewest])


def count_verified_by_challenge(round: Round) -> dict[str, int]:
    """Count the verified examples of each challenge; cached for a short time."""
    verified_examples = Example.objects.filter(
        round=round,
        challenge__isnull=False,
        retracted_at__isnull=True,
        by_program=False,
    ).filter(build_verified_condition())
    rows = verified_examples.values_list("challenge").annotate(Count("pk")).order_by()
    return read_or_count(f"challenges:{round.pk}", lambda: dict(rows))
