"""Scenes of shapes: data, description in words, and random generation from a seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

SHAPES = ("circle", "square", "triangle", "star")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple")
SIZES = ("small", "large")
GRID_CELLS = 4
"""The number of rows and columns. Each cell has at most one shape."""
MIN_SHAPES, MAX_SHAPES = 3, 8
MAX_JITTER = 2
"""The maximum distance of a shape from the middle of its cell, in sixteenths of a cell."""


@dataclass(frozen=True)
class Figure:
    """A figure in a cell: a shape with a size and a colour.

    column, row: counted from 0, from the left and from the top. offset_x, offset_y: the distance
    from the middle of the cell, in sixteenths of a cell.
    """

    size: str
    colour: str
    shape: str
    column: int
    row: int
    offset_x: int
    offset_y: int


@dataclass(frozen=True)
class Scene:
    """The figures of a picture, row by row."""

    figures: tuple[Figure, ...]


def make_scene(rng: random.Random) -> Scene:
    """Return a random scene with MIN_SHAPES to MAX_SHAPES shapes."""
    # Sorted, so that a scene is described row by row.
    cells = sorted(rng.sample(range(GRID_CELLS * GRID_CELLS), rng.randint(MIN_SHAPES, MAX_SHAPES)))
    figures = []
    for cell in cells:
        figure = Figure(
            size=rng.choice(SIZES),
            colour=rng.choice(COLOURS),
            shape=rng.choice(SHAPES),
            column=cell % GRID_CELLS,
            row=cell // GRID_CELLS,
            offset_x=rng.randint(-MAX_JITTER, MAX_JITTER),
            offset_y=rng.randint(-MAX_JITTER, MAX_JITTER),
        )
        figures.append(figure)
    return Scene(tuple(figures))


def make_scenes(seed: int) -> Iterator[Scene]:
    """Yield random scenes endlessly. The same seed gives the same scenes."""
    rng = random.Random(seed)
    while True:
        yield make_scene(rng)


def describe_scene(scene: Scene) -> str:
    """Return a description of the scene for people who cannot see the picture."""
    descriptions = []
    for figure in scene.figures:
        position = f"row {figure.row + 1}, column {figure.column + 1}"
        descriptions.append(f"{position}: {figure.size} {figure.colour} {figure.shape}")
    return "; ".join(descriptions)
