"""What simulated people write: short texts about places, whose true label is known.

A text takes one of the pool's ways of saying something, such as irony. Every round draws from the
same pool; nothing in it knows a model or the number of the round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

LABELS = ("positive", "negative", "neutral")
PLAIN = "plain"
IDEA_POOL: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("pool.yaml").read_text())
OPENED, CLOSED = 0.3, 0.3  # shares of texts with something before and after


@dataclass(frozen=True)
class Idea:
    """A way of writing for a label. hard: how likely an average reader misreads it (0-1)."""

    way: str
    label: str
    pattern: str
    hard: float


def _all_ideas() -> Iterator[Idea]:
    """Yield all ideas."""
    for way, about in IDEA_POOL["ways"].items():
        for label in LABELS:
            for pattern in about.get(label, ()):
                yield Idea(way, label, pattern, about["hard"])


IDEAS: Sequence[Idea] = list(_all_ideas())


def build_contexts(chance: Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield rows of contexts to import: a prompt, its tag, and the place it is about."""
    places = []
    for tag, names in IDEA_POOL["subjects"].items():
        places += [(tag, name) for name in names]
    chance.shuffle(places)
    for tag, place in places[:number]:
        prompt = f"We were at the {place} on {chance.choice(IDEA_POOL['day'])}."
        yield {"prompt": prompt, "tag": tag, "metadata": {"place": place}}


def write_idea(idea: Idea, place: str, chance: Random) -> str:
    """Return the idea as a text about the place."""
    large_number, small_number = chance.randint(8, 30), chance.randint(2, 7)
    good_word = chance.choice(IDEA_POOL["good"])
    words = {
        "it": f"the {place}",
        "kind": place,
        "good": good_word,
        "Good": good_word.capitalize(),
        "bad": chance.choice(IDEA_POOL["bad"]),
        "day": chance.choice(IDEA_POOL["day"]),
        "n": large_number,
        "m": small_number,
    }
    text = idea.pattern.format(**words)
    # Both are drawn before either is used: the order of draws decides what a seed gives.
    opener = closer = ""
    if chance.random() < OPENED:
        opener = chance.choice(IDEA_POOL["openers"])
    if chance.random() < CLOSED:
        closer = chance.choice(IDEA_POOL["closers"])
    if not opener:
        text = text[0].upper() + text[1:]
    return opener + text + closer.format(**words)
