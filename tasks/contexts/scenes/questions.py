"""Questions about a scene with their answers, from a small grammar, for training the target."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from .scene import COLOURS, SHAPES, SIZES, Figure, Scene

MAX_COUNT = 6
COUNTS = tuple(map(str, range(MAX_COUNT + 1)))
YES, NO = "yes", "no"
ANSWERS = tuple(chain([YES, NO], COUNTS, COLOURS, SHAPES, SIZES))
"""All possible answers, in the order of the model's outputs."""

KIND_WEIGHTS = {
    "exists": 4, "count": 4, "colour": 4, "shape": 3, "size": 2,
    "where": 3, "exists where": 2, "colour where": 2, "shape where": 2,
}  # fmt: skip
"""The relative frequency of each kind of question."""

RELATIONS: dict[str, Callable[[Figure, Figure], bool]] = {
    "left of": lambda figure, other: figure.column < other.column,
    "right of": lambda figure, other: figure.column > other.column,
    "above": lambda figure, other: figure.row < other.row,
    "below": lambda figure, other: figure.row > other.row,
}


@dataclass(frozen=True)
class Question:
    """A question about one scene.

    `kind` is a key of KIND_WEIGHTS, `answer` one of ANSWERS. The answer depends on the figures in
    `about`; the figures in `marks` say where to look. Training may show both to a model.
    """

    kind: str
    text: str
    answer: str
    about: Sequence[Figure]
    marks: Sequence[Figure] = ()


@dataclass(frozen=True)
class _Description:
    """A description of shapes by their features; None for any value of a feature."""

    size: str | None = None
    colour: str | None = None
    shape: str | None = None

    def find_matching(self, figures: Sequence[Figure]) -> list[Figure]:
        return [figure for figure in figures if self._is_fitting(figure)]

    def _is_fitting(self, figure: Figure) -> bool:
        pairs = (self.size, figure.size), (self.colour, figure.colour), (self.shape, figure.shape)
        return all(feature in (None, figure_feature) for feature, figure_feature in pairs)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.size, self.colour, self.shape or "shape")))

    @property
    def format_with_article(self) -> str:
        """Return the description with its indefinite article, such as "a red circle"."""
        return f"{'an' if str(self)[0] in 'aeiou' else 'a'} {self}"


def iter_questions(scene: Scene, rng: random.Random) -> Iterator[Question]:
    """Yield random questions about a scene endlessly, each with one right answer."""
    kinds, shares = list(KIND_WEIGHTS), list(KIND_WEIGHTS.values())
    while True:
        kind = rng.choices(kinds, shares)[0]
        # A scene may have no question of this kind; then another one is drawn.
        question_parts = _ASKERS[kind](scene.figures, rng)
        if question_parts:
            yield Question(kind, *question_parts)


_Figures = Sequence[Figure]
_AskedQuestion = tuple[str, str, _Figures] | tuple[str, str, _Figures, _Figures] | None
"""The fields of a Question after `kind`; None if the scene has no question of this kind."""


def _ask_exists(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    searched_description = _choose_description(figures, rng)
    text = rng.choice(("Is there {}?", "Do you see {}?", "Can you see {} in the picture?"))
    matching_figures = searched_description.find_matching(figures)
    return (
        text.format(searched_description.format_with_article),
        _format_yes_no(matching_figures),
        matching_figures,
    )


def _ask_count(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    # All shapes, some shapes that are described wholly, or those with one feature.
    searched_description = rng.choice(
        (_Description(), _choose_description(figures, rng), _choose_feature(figures, rng))
    )
    text = rng.choice(("How many {}s are there?", "How many {}s do you see?"))
    matching_figures = searched_description.find_matching(figures)
    # The model has an output for each number up to this one.
    if len(matching_figures) > MAX_COUNT:
        return None
    return text.format(searched_description), str(len(matching_figures)), matching_figures


def _ask_colour(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    figure = rng.choice(figures)
    # Never by its colour, which would give the answer away.
    searched_description = _Description(
        rng.choice((None, figure.size)), None, rng.choice((None, figure.shape))
    )
    if len(searched_description.find_matching(figures)) != 1:
        return None
    text = rng.choice(
        ("What colour is the {}?", "What color is the {}?", "Which colour is the {}?")
    )
    return text.format(searched_description), figure.colour, [figure]


def _ask_shape(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    figure = rng.choice(figures)
    # By its colour, since the shape is what is asked.
    searched_description = _Description(rng.choice((None, figure.size)), figure.colour)
    if len(searched_description.find_matching(figures)) != 1:
        return None
    text = rng.choice(("Which shape is {}?", "What shape is {}?")).format(figure.colour)
    return (
        f"What is the {searched_description}?" if searched_description.size else text,
        figure.shape,
        [figure],
    )


def _ask_size(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    figure = rng.choice(figures)
    # Without the size, which is what is asked.
    searched_description = _Description(None, rng.choice((None, figure.colour)), figure.shape)
    if len(searched_description.find_matching(figures)) != 1:
        return None
    text = rng.choice(("Is the {} small or large?", "How large is the {}?"))
    return text.format(searched_description), figure.size, [figure]


def _ask_where(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    subject, landmark = rng.sample(figures, 2)
    searched_description = _Description(None, subject.colour, subject.shape)
    landmark_description = _Description(None, landmark.colour, landmark.shape)
    # With two shapes of one look the question would have no single answer.
    if (
        len(searched_description.find_matching(figures)) != 1
        or len(landmark_description.find_matching(figures)) != 1
    ):
        return None
    name = rng.choice(list(RELATIONS))
    answer = _format_yes_no(RELATIONS[name](subject, landmark))
    return (
        f"Is the {searched_description} {name} the {landmark_description}?",
        answer,
        [subject],
        [landmark],
    )


def _ask_exists_where(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    place_choice = _choose_place(figures, rng)
    if not place_choice:
        return None
    position_words, other_figures, landmark = place_choice
    # Mostly a shape of that place, so that the answer is not nearly always no.
    searched_description = _choose_feature(other_figures or figures, rng)
    matching_figures = searched_description.find_matching(other_figures)
    return (
        f"Is there {searched_description.format_with_article} {position_words}?",
        _format_yes_no(matching_figures),
        matching_figures,
        [landmark],
    )


def _ask_colour_where(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    return _ask_unique_where(figures, rng, "colour")


def _ask_shape_where(figures: Sequence[Figure], rng: random.Random) -> _AskedQuestion:
    return _ask_unique_where(figures, rng, "shape")


def _ask_unique_where(
    figures: Sequence[Figure], rng: random.Random, feature: str
) -> _AskedQuestion:
    """Return a question about a feature of a shape in a place, or None if it is ambiguous."""
    place_choice = _choose_place(figures, rng)
    if not place_choice or not place_choice[1]:
        return None
    position_words, other_figures, landmark = place_choice
    figure = rng.choice(other_figures)
    description = {
        "colour": _Description(shape=figure.shape),
        "shape": _Description(colour=figure.colour),
    }[feature]
    if len(description.find_matching(other_figures)) != 1:
        return None
    answer: str = getattr(figure, feature)
    text = "What is the {} {}?"
    if feature == "colour":
        text = "What colour is the {} {}?"
    return text.format(description, position_words), answer, [figure], [landmark]


def _choose_place(
    figures: Sequence[Figure], rng: random.Random
) -> tuple[str, list[Figure], Figure] | None:
    """Choose a figure and a place relative to it, such as left of it.

    Returns the place as a phrase, the figures there, and the chosen figure; None if its colour and
    shape are not unique.
    """
    landmark = rng.choice(figures)
    mark_description = _Description(None, landmark.colour, landmark.shape)
    if len(mark_description.find_matching(figures)) != 1:
        return None
    name = rng.choice(list(RELATIONS))
    placed_figures = []
    for figure in figures:
        if RELATIONS[name](figure, landmark):
            placed_figures.append(figure)
    return f"{name} the {mark_description}", placed_figures, landmark


def _choose_description(figures: Sequence[Figure], rng: random.Random) -> _Description:
    """Return a random description with colour, shape and sometimes size.

    Half of the time it describes an existing shape.
    """
    figure = rng.choice(figures)
    # A size is said in one of three questions, since most people leave it out.
    size = rng.choice((None, None, figure.size))
    colour, shape = figure.colour, figure.shape
    if rng.random() < 0.5:  # probably something that is not there
        colour, shape = rng.choice(((rng.choice(COLOURS), shape), (colour, rng.choice(SHAPES))))
    return _Description(size, colour, shape)


def _choose_feature(figures: Sequence[Figure], rng: random.Random) -> _Description:
    """Return a random description with a colour or a shape, usually one that occurs."""
    figure = rng.choice(figures)
    if rng.random() < 0.3:
        # One that need not be there. Its place does not matter, as only its look is taken.
        figure = Figure(figure.size, rng.choice(COLOURS), rng.choice(SHAPES), 0, 0, 0, 0)
    return rng.choice((_Description(colour=figure.colour), _Description(shape=figure.shape)))


def _format_yes_no(is_true: object) -> str:
    if is_true:
        return YES
    return NO


_ASKERS: dict[str, Callable[[Sequence[Figure], random.Random], _AskedQuestion]] = {
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
