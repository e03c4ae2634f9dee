"""Scenes of shapes: what is in a picture, as data, in words, and how it is drawn by a seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

SHAPES = ("circle", "square", "triangle", "star")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple")
SIZES = ("small", "large")
GRID_CELLS = 4
"""Cells in a row and in a column; each holds at most one shape."""
FEWEST, MOST = 3, 8
MAX_JITTER = 2
"""How far a shape stands from the middle of its cell at most, in sixteenths of a cell."""


@dataclass(frozen=True)
class Thing:
    """A shape in a cell. Columns count from the left, rows from the top, both from 0.

    `aside` and `down` are its offsets from the middle of the cell, in sixteenths of a cell.
    """

    size: str
    colour: str
    shape: str
    column: int
    row: int
    aside: int
    down: int


@dataclass(frozen=True)
class Scene:
    """The shapes of a picture, row by row."""

    things: tuple[Thing, ...]


def make_scene(chance: random.Random) -> Scene:
    """Return a random scene of FEWEST to MOST shapes."""
    # Sorted, so that a scene is described row by row.
    cells = sorted(chance.sample(range(GRID_CELLS * GRID_CELLS), chance.randint(FEWEST, MOST)))
    things = []
    for cell in cells:
        thing = Thing(
            size=chance.choice(SIZES),
            colour=chance.choice(COLOURS),
            shape=chance.choice(SHAPES),
            column=cell % GRID_CELLS,
            row=cell // GRID_CELLS,
            aside=chance.randint(-MAX_JITTER, MAX_JITTER),
            down=chance.randint(-MAX_JITTER, MAX_JITTER),
        )
        things.append(thing)
    return Scene(tuple(things))


def make_scenes(seed: int) -> Iterator[Scene]:
    """Yield endless scenes, the same ones for the same seed."""
    chance = random.Random(seed)
    while True:
        yield make_scene(chance)


def describe_scene(scene: Scene) -> str:
    """Return a description of the scene for people who cannot see the picture."""
    descriptions = []
    for thing in scene.things:
        place = f"row {thing.row + 1}, column {thing.column + 1}"
        descriptions.append(f"{place}: {thing.size} {thing.colour} {thing.shape}")
    return "; ".join(descriptions)
