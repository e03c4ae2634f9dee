"""Questions on a scene and their answers, from a small grammar; for the training of the target."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from .scene import COLOURS, SHAPES, SIZES, Scene, Thing

LARGEST_COUNT = 6
COUNTS = tuple(map(str, range(LARGEST_COUNT + 1)))
YES, NO = "yes", "no"
ANSWERS = tuple(chain([YES, NO], COUNTS, COLOURS, SHAPES, SIZES))
"""The closed list of answers, in the order of the model's outputs."""

KIND_WEIGHTS = {
    "exists": 4, "count": 4, "colour": 4, "shape": 3, "size": 2,
    "where": 3, "exists where": 2, "colour where": 2, "shape where": 2,
}  # fmt: skip
"""How often each kind of question is asked, next to the others."""

RELATIONS: dict[str, Callable[[Thing, Thing], bool]] = {
    "left of": lambda thing, other: thing.column < other.column,
    "right of": lambda thing, other: thing.column > other.column,
    "above": lambda thing, other: thing.row < other.row,
    "below": lambda thing, other: thing.row > other.row,
}


@dataclass(frozen=True)
class Question:
    """A question about one scene. `kind` is a key of KIND_WEIGHTS, `answer` one of ANSWERS.

    `about` are the shapes on which the answer depends, `marks` those that say where to look.
    Training may show both to a model.
    """

    kind: str
    text: str
    answer: str
    about: Sequence[Thing]
    marks: Sequence[Thing] = ()


@dataclass(frozen=True)
class _Look:
    """A description of shapes by their features; None for any value of a feature."""

    size: str | None = None
    colour: str | None = None
    shape: str | None = None

    def among(self, things: Sequence[Thing]) -> list[Thing]:
        return [thing for thing in things if self._fits(thing)]

    def _fits(self, thing: Thing) -> bool:
        pairs = (self.size, thing.size), (self.colour, thing.colour), (self.shape, thing.shape)
        return all(feature in (None, thing_feature) for feature, thing_feature in pairs)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.size, self.colour, self.shape or "shape")))

    @property
    def one(self) -> str:
        """Return the description with its indefinite article."""
        return f"{'an' if str(self)[0] in 'aeiou' else 'a'} {self}"


def ask_about(scene: Scene, chance: random.Random) -> Iterator[Question]:
    """Yield endless questions about a scene, each with one right answer."""
    kinds, shares = list(KIND_WEIGHTS), list(KIND_WEIGHTS.values())
    while True:
        kind = chance.choices(kinds, shares)[0]
        # A scene may have no question of this kind; then another one is drawn.
        parts = _ASKERS[kind](scene.things, chance)
        if parts:
            yield Question(kind, *parts)


_Things = Sequence[Thing]
_AskedQuestion = tuple[str, str, _Things] | tuple[str, str, _Things, _Things] | None
"""The rest of a Question; None: the scene has none of this kind."""


def _ask_exists(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    look = _choose_look(things, chance)
    text = chance.choice(("Is there {}?", "Do you see {}?", "Can you see {} in the picture?"))
    matching = look.among(things)
    return text.format(look.one), _format_yes_no(matching), matching


def _ask_count(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    # All shapes, some shapes that are described wholly, or those with one feature.
    look = chance.choice((_Look(), _choose_look(things, chance), _choose_feature(things, chance)))
    text = chance.choice(("How many {}s are there?", "How many {}s do you see?"))
    matching_things = look.among(things)
    # The model has an output for each number up to this one.
    if len(matching_things) > LARGEST_COUNT:
        return None
    return text.format(look), str(len(matching_things)), matching_things


def _ask_colour(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    thing = chance.choice(things)
    # Never by its colour, which would give the answer away.
    look = _Look(chance.choice((None, thing.size)), None, chance.choice((None, thing.shape)))
    if len(look.among(things)) != 1:
        return None
    text = chance.choice(
        ("What colour is the {}?", "What color is the {}?", "Which colour is the {}?")
    )
    return text.format(look), thing.colour, [thing]


def _ask_shape(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    thing = chance.choice(things)
    # By its colour, since the shape is what is asked.
    look = _Look(chance.choice((None, thing.size)), thing.colour)
    if len(look.among(things)) != 1:
        return None
    text = chance.choice(("Which shape is {}?", "What shape is {}?")).format(thing.colour)
    return f"What is the {look}?" if look.size else text, thing.shape, [thing]


def _ask_size(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    thing = chance.choice(things)
    # Without the size, which is what is asked.
    look = _Look(None, chance.choice((None, thing.colour)), thing.shape)
    if len(look.among(things)) != 1:
        return None
    text = chance.choice(("Is the {} small or large?", "How large is the {}?"))
    return text.format(look), thing.size, [thing]


def _ask_where(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    subject, landmark = chance.sample(things, 2)
    look = _Look(None, subject.colour, subject.shape)
    landmark_look = _Look(None, landmark.colour, landmark.shape)
    # With two shapes of one look the question would have no single answer.
    if len(look.among(things)) != 1 or len(landmark_look.among(things)) != 1:
        return None
    name = chance.choice(list(RELATIONS))
    answer = _format_yes_no(RELATIONS[name](subject, landmark))
    return f"Is the {look} {name} the {landmark_look}?", answer, [subject], [landmark]


def _ask_exists_where(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    place_choice = _choose_place(things, chance)
    if not place_choice:
        return None
    place, other_things, mark = place_choice
    # Mostly a shape of that place, so that the answer is not nearly always no.
    look = _choose_feature(other_things or things, chance)
    matching_things = look.among(other_things)
    return f"Is there {look.one} {place}?", _format_yes_no(matching_things), matching_things, [mark]


def _ask_colour_where(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    return _ask_unique_where(things, chance, "colour")


def _ask_shape_where(things: Sequence[Thing], chance: random.Random) -> _AskedQuestion:
    return _ask_unique_where(things, chance, "shape")


def _ask_unique_where(
    things: Sequence[Thing], chance: random.Random, feature: str
) -> _AskedQuestion:
    """Return a question about the only shape of its kind in a place, or None."""
    place_choice = _choose_place(things, chance)
    if not place_choice or not place_choice[1]:
        return None
    place, other_things, mark = place_choice
    thing = chance.choice(other_things)
    hidden = {"colour": _Look(shape=thing.shape), "shape": _Look(colour=thing.colour)}[feature]
    if len(hidden.among(other_things)) != 1:
        return None
    answer: str = getattr(thing, feature)
    text = "What is the {} {}?"
    if feature == "colour":
        text = "What colour is the {} {}?"
    return text.format(hidden, place), answer, [thing], [mark]


def _choose_place(
    things: Sequence[Thing], chance: random.Random
) -> tuple[str, list[Thing], Thing] | None:
    """Choose a place next to a shape that is unique by colour and shape.

    Returns the place as a phrase, the shapes in it, and the unique shape; None if the chosen shape
    is not unique.
    """
    mark = chance.choice(things)
    mark_look = _Look(None, mark.colour, mark.shape)
    if len(mark_look.among(things)) != 1:
        return None
    name = chance.choice(list(RELATIONS))
    placed_things = []
    for thing in things:
        if RELATIONS[name](thing, mark):
            placed_things.append(thing)
    return f"{name} the {mark_look}", placed_things, mark


def _choose_look(things: Sequence[Thing], chance: random.Random) -> _Look:
    """Choose a description with colour, shape and sometimes size, which fits half of the time."""
    thing = chance.choice(things)
    # A size is said in one of three questions, since most people leave it out.
    size = chance.choice((None, None, thing.size))
    colour, shape = thing.colour, thing.shape
    if chance.random() < 0.5:  # probably something that is not there
        colour, shape = chance.choice(
            ((chance.choice(COLOURS), shape), (colour, chance.choice(SHAPES)))
        )
    return _Look(size, colour, shape)


def _choose_feature(things: Sequence[Thing], chance: random.Random) -> _Look:
    """Choose a description with a colour or a shape, usually one that occurs."""
    thing = chance.choice(things)
    if chance.random() < 0.3:
        # One that need not be there. Its place does not matter, as only its look is taken.
        thing = Thing(thing.size, chance.choice(COLOURS), chance.choice(SHAPES), 0, 0, 0, 0)
    return chance.choice((_Look(colour=thing.colour), _Look(shape=thing.shape)))


def _format_yes_no(is_true: object) -> str:
    if is_true:
        return YES
    return NO


_ASKERS: dict[str, Callable[[Sequence[Thing], random.Random], _AskedQuestion]] = {
    "exists": _ask_exists,
    "count": _ask_count,
    "colour": _ask_colour,
    "shape": _ask_shape,
    "size": _ask_size,
    "where": _ask_where,
    "exists where": _ask_exists_where,
    "colour where": _ask_colour_where,
    "shape where": _ask_shape_where,
}
