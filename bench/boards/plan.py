"""Which models stand on the boards, and what is asked of them: fixed before any was trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHOT_COUNT = 6
Steps = tuple[tuple[str, ...], ...]
"""Which stages a model is trained on, one training after another."""


@dataclass(frozen=True)
class Entry:
    """A model of a board. kind: how it is made, a key of MAKERS. seed: of its training."""

    name: str
    kind: str
    steps: Steps = ()
    seed: int = 0

    @property
    def trained_on(self) -> str:
        """Its training data, as it stands on the model's card."""
        return ", then ".join(" and ".join(stages) for stages in self.steps)


def list_entries(stages: Sequence[str]) -> list[Entry]:
    """The models of a task with these stages, two or three, in the order of their collection."""
    one, two = stages[:2]
    every = tuple(stages)
    both = [Entry(f"MiniLM, {one} + {two}", "minilm", ((one, two),))] if len(every) > 2 else []
    return [
        Entry("majority", "majority", ((one,),)),
        Entry(f"bag of words, {one}", "words", ((one,),)),
        Entry("bag of words, all", "words", (every,)),
        Entry(f"hashed n-grams, {one}", "grams", ((one,),)),
        Entry("hashed n-grams, all", "grams", (every,)),
        Entry("starter", "starter"),
        Entry("starter, int8", "starter-int8"),
        Entry("MiniLM frozen, all", "frozen", (every,)),
        Entry(f"MiniLM, {one}", "minilm", ((one,),)),
        Entry(f"MiniLM, {two}", "minilm", ((two,),)),
        Entry(f"MiniLM, {one} then {two}", "minilm", ((one,), (two,))),
        *both,
        Entry("MiniLM, all", "minilm", (every,)),
        Entry("MiniLM, all, seed 1", "minilm", (every,), seed=1),
        Entry("MiniLM, all, int8", "minilm-int8", (every,)),
        Entry("SmolLM2, no example", "language-model"),
        Entry(f"SmolLM2, {SHOT_COUNT} examples", "language-model", ((one,),)),
    ]


class Question(NamedTuple):
    """A question: how many points a model gains on some sets over another one."""

    question: str
    before: str
    after: str
    sets: tuple[str, ...]


def list_questions(
    stages: Sequence[str], sets: Sequence[str], everything: Sequence[str]
) -> list[Question]:
    """What the page answers; it was fixed before any model was trained.

    sets: those that were collected like the stages, in the same order. everything: all sets that
    count.
    """
    (one, two), (first, second) = stages[:2], sets[:2]
    both = f"{one} + {two}" if len(stages) > 2 else "all"
    every = tuple(everything)
    found = [Question("next", "starter", f"MiniLM, {one}", (second,))]
    if len(stages) > 2:
        found.append(Question("next", f"MiniLM, {one}", f"MiniLM, {both}", (sets[2],)))
    return [
        *found,
        Question("own", f"MiniLM, {one}", f"MiniLM, {both}", (second,)),
        Question("forgotten", f"MiniLM, {one}", f"MiniLM, {one} then {two}", (first,)),
        Question("forgotten", f"MiniLM, {one}", f"MiniLM, {both}", (first,)),
        Question("seed", "MiniLM, all", "MiniLM, all, seed 1", every),
        Question("int8", "MiniLM, all", "MiniLM, all, int8", every),
        Question("shots", "SmolLM2, no example", f"SmolLM2, {SHOT_COUNT} examples", every),
    ]
