"""Tries of made-up authors, for tests of slices: texts of common words, some about a subject."""

import random

from dynabench.failures.rules.records import Try

COMMON_WORDS = tuple(f"word{number}" for number in range(120))
SUBJECTS = {
    "food": ("soup", "waiter", "dinner", "menu", "kitchen"),
    "sport": ("goal", "team", "referee", "match", "coach"),
    "travel": ("train", "hotel", "luggage", "airport", "ticket"),
}


def write_tries(
    seed: int,
    *,
    authors: int = 24,
    per_author: int = 30,
    error_rate: float = 0.25,
    weak_subject: str = "",
    weak_rate: float = 0.25,
) -> list[Try]:
    """Return tries whose errors depend on the author's skill and on the weak subject alone."""
    generator = random.Random(seed)
    tries = []
    for author in range(authors):
        skill = generator.uniform(0.6, 1.4)
        favourite = generator.choice(sorted(SUBJECTS))
        for _number in range(per_author):
            subject = favourite if generator.random() < 0.5 else generator.choice(sorted(SUBJECTS))
            rate = weak_rate if subject == weak_subject else error_rate
            words = generator.sample(COMMON_WORDS, 8) + generator.sample(SUBJECTS[subject], 3)
            tries.append(
                Try(
                    key=len(tries),
                    author=author,
                    words=frozenset(words),
                    is_error=generator.random() < rate * skill,
                    values={"label": generator.choice(("positive", "negative"))},
                )
            )
    return tries
