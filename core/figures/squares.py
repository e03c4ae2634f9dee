"""Small square heat maps that show how often each true label is judged as each label."""

from collections.abc import Sequence

from django.utils.safestring import SafeString

from core.figures.drawing import draw_decoration
from core.figures.scene import Box, Margins, Scene, Shape

SQUARE_HEIGHT = 96
STEPS = 5
"""The number of shades of a cell."""


def draw_square(rows: Sequence[Sequence[float]]) -> SafeString:
    """Return a heat map of the shares, to show beside a table. Darker cells have higher shares."""
    shapes: list[Shape] = []
    for row_number, shares in enumerate(rows):
        for column_number, share in enumerate(shares):
            width, height = 100 / len(shares), 100 / len(rows)
            position = (column_number * width, row_number * height)
            # A share of 1 belongs to the darkest shade.
            shade = min(STEPS - 1, int(share * STEPS))
            # A gap between cells shows where one ends.
            shapes.append(Box(f"heat-{shade} bar", position, width - 2, height - 2))
    scene = Scene(tuple(shapes), SQUARE_HEIGHT, 0, Margins(0, 0, 0, 0), "square")
    return draw_decoration(scene)
