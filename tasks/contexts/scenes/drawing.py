"""Scenes as pictures. The same scene gives the same pixels with the pinned Pillow."""

import math
from io import BytesIO

from PIL import Image, ImageDraw

from .scene import GRID, Scene, Thing

SIDE = 128
"""Width and height of a picture, in pixels."""
CELL = SIDE // GRID
FINER = 2  # drawn this much larger and then made smaller, so that edges are smooth
RADII = {"small": 7, "large": 11}
PAPER = (246, 245, 240)
INK = {
    "red": (208, 36, 40),
    "orange": (240, 140, 20),
    "yellow": (245, 215, 45),
    "green": (40, 150, 70),
    "blue": (35, 95, 205),
    "purple": (135, 60, 165),
}
CORNERS = {"square": 4, "triangle": 3, "star": 10}


def draw(scene: Scene) -> Image.Image:
    """Draw a scene as an RGB picture of SIDE x SIDE."""
    # Pillow draws without smooth edges, so it draws larger and then reduces.
    large = Image.new("RGB", (SIDE * FINER, SIDE * FINER), PAPER)
    pen = ImageDraw.Draw(large)
    for thing in scene.things:
        _draw_thing(pen, thing)
    return large.reduce(FINER)


def png(scene: Scene) -> bytes:
    """Return a scene as a PNG file."""
    file = BytesIO()
    draw(scene).save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw_thing(pen: ImageDraw.ImageDraw, thing: Thing) -> None:
    x = FINER * (thing.column * CELL + CELL // 2 + thing.aside * CELL // 16)
    y = FINER * (thing.row * CELL + CELL // 2 + thing.down * CELL // 16)
    radius = FINER * RADII[thing.size]
    fill = INK[thing.colour]
    if thing.shape == "circle":
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
        return
    corners = CORNERS[thing.shape]
    first = math.pi / 4 if thing.shape == "square" else -math.pi / 2
    points = []
    for number in range(corners):
        angle = first + number * 2 * math.pi / corners
        # Every second corner of a star lies further inside.
        reach = radius * (0.45 if thing.shape == "star" and number % 2 else 1)
        points.append((round(x + reach * math.cos(angle)), round(y + reach * math.sin(angle))))
    pen.polygon(points, fill=fill)
