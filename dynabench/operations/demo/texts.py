"""What simulated people write: short texts about places, whose true label is known.

A text uses one of the pool's ways of saying something, such as irony. Every round draws from the
same pool, which depends on no model and no round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

LABELS = ("positive", "negative", "neutral")
PLAIN_STYLE = "plain"
IDEA_POOL: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("pool.yaml").read_text())
OPENER_SHARE, CLOSER_SHARE = 0.3, 0.3  # shares of texts with something before and after


@dataclass(frozen=True)
class Idea:
    """A way of writing for a label.

    pattern: the text, with placeholders. difficulty: how likely an average reader misreads it
    (0-1).
    """

    way: str
    label: str
    pattern: str
    difficulty: float


def _iterate_ideas() -> Iterator[Idea]:
    """Yield all ideas of the pool."""
    for way, way_data in IDEA_POOL["ways"].items():
        for label in LABELS:
            for pattern in way_data.get(label, ()):
                yield Idea(way, label, pattern, way_data["hard"])


IDEAS: Sequence[Idea] = list(_iterate_ideas())


def build_contexts(rng: Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield rows of contexts to import: each a prompt, its tag, and the place that it is about."""
    names_by_tag = []
    for tag, names in IDEA_POOL["subjects"].items():
        names_by_tag += [(tag, name) for name in names]
    rng.shuffle(names_by_tag)
    for tag, place_name in names_by_tag[:count]:
        prompt = f"We were at the {place_name} on {rng.choice(IDEA_POOL['day'])}."
        yield {"prompt": prompt, "tag": tag, "metadata": {"place": place_name}}


def write_idea(idea: Idea, place_name: str, rng: Random) -> str:
    """Return the idea as a text about the place."""
    large_number, small_number = rng.randint(8, 30), rng.randint(2, 7)
    good_word = rng.choice(IDEA_POOL["good"])
    words = {
        "it": f"the {place_name}",
        "kind": place_name,
        "good": good_word,
        "Good": good_word.capitalize(),
        "bad": rng.choice(IDEA_POOL["bad"]),
        "day": rng.choice(IDEA_POOL["day"]),
        "n": large_number,
        "m": small_number,
    }
    text = idea.pattern.format(**words)
    # Both are drawn before either is used: the order of draws decides what a seed gives.
    opener = closer = ""
    if rng.random() < OPENER_SHARE:
        opener = rng.choice(IDEA_POOL["openers"])
    if rng.random() < CLOSER_SHARE:
        closer = rng.choice(IDEA_POOL["closers"])
    if not opener:
        text = text[0].upper() + text[1:]
    return opener + text + closer.format(**words)
