"""Scenes as pictures. The same scene gives the same pixels with the pinned Pillow."""

import math
from io import BytesIO

from PIL import Image, ImageDraw

from .scene import GRID_CELLS, Scene, Thing

SIDE_PIXELS = 128
"""Width and height of a picture, in pixels."""
CELL_PIXELS = SIDE_PIXELS // GRID_CELLS
OVERSAMPLING = 2  # drawn this much larger and then made smaller, so that edges are smooth
RADII = {"small": 7, "large": 11}
PAPER_COLOUR = (246, 245, 240)
INK_COLOURS = {
    "red": (208, 36, 40),
    "orange": (240, 140, 20),
    "yellow": (245, 215, 45),
    "green": (40, 150, 70),
    "blue": (35, 95, 205),
    "purple": (135, 60, 165),
}
CORNER_COUNTS = {"square": 4, "triangle": 3, "star": 10}


def draw(scene: Scene) -> Image.Image:
    """Draw a scene as an RGB picture of SIDE_PIXELS x SIDE_PIXELS."""
    # Pillow draws without smooth edges, so it draws larger and then reduces.
    large_image = Image.new(
        "RGB", (SIDE_PIXELS * OVERSAMPLING, SIDE_PIXELS * OVERSAMPLING), PAPER_COLOUR
    )
    pen = ImageDraw.Draw(large_image)
    for thing in scene.things:
        _draw_thing(pen, thing)
    return large_image.reduce(OVERSAMPLING)


def encode_png(scene: Scene) -> bytes:
    """Return a scene as a PNG file."""
    file = BytesIO()
    draw(scene).save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw_thing(pen: ImageDraw.ImageDraw, thing: Thing) -> None:
    x = OVERSAMPLING * (
        thing.column * CELL_PIXELS + CELL_PIXELS // 2 + thing.aside * CELL_PIXELS // 16
    )
    y = OVERSAMPLING * (thing.row * CELL_PIXELS + CELL_PIXELS // 2 + thing.down * CELL_PIXELS // 16)
    radius = OVERSAMPLING * RADII[thing.size]
    fill = INK_COLOURS[thing.colour]
    if thing.shape == "circle":
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
        return
    corners = CORNER_COUNTS[thing.shape]
    first_angle = math.pi / 4 if thing.shape == "square" else -math.pi / 2
    points = []
    for number in range(corners):
        angle = first_angle + number * 2 * math.pi / corners
        # Every second corner of a star lies further inside.
        reach = radius * (0.45 if thing.shape == "star" and number % 2 else 1)
        points.append((round(x + reach * math.cos(angle)), round(y + reach * math.sin(angle))))
    pen.polygon(points, fill=fill)
