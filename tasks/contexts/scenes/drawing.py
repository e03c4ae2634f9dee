"""Draw scenes as pictures. With the pinned Pillow, equal scenes have equal pixels."""

import math
from io import BytesIO

from PIL import Image, ImageDraw

from .scene import GRID_CELLS, Figure, Scene

SIDE_PIXELS = 128
"""The width and height in pixels of the pictures that models are trained on."""
FILE_SCALE = 4
"""The factor by which files are larger, so that they are sharp on a screen. Models reduce them."""
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


def draw_scene(scene: Scene, scale: int = 1) -> Image.Image:
    """Return a scene as a square RGB picture with sides of SIDE_PIXELS times `scale`."""
    # Pillow draws without smooth edges, so it draws larger and then reduces.
    factor = OVERSAMPLING * scale
    large_image = Image.new("RGB", (SIDE_PIXELS * factor, SIDE_PIXELS * factor), PAPER_COLOUR)
    pen = ImageDraw.Draw(large_image)
    for figure in scene.figures:
        _draw_figure(pen, figure, factor)
    return large_image.reduce(OVERSAMPLING)


def encode_png(scene: Scene) -> bytes:
    """Return a scene as a PNG file."""
    file = BytesIO()
    draw_scene(scene, FILE_SCALE).save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw_figure(pen: ImageDraw.ImageDraw, figure: Figure, factor: int) -> None:
    """Draw one figure on a canvas that is `factor` times as large as SIDE_PIXELS."""
    x = factor * (
        figure.column * CELL_PIXELS + CELL_PIXELS // 2 + figure.offset_x * CELL_PIXELS // 16
    )
    y = factor * (figure.row * CELL_PIXELS + CELL_PIXELS // 2 + figure.offset_y * CELL_PIXELS // 16)
    radius = factor * RADII[figure.size]
    fill = INK_COLOURS[figure.colour]
    if figure.shape == "circle":
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
        return
    corners = CORNER_COUNTS[figure.shape]
    first_angle = math.pi / 4 if figure.shape == "square" else -math.pi / 2
    points = []
    for number in range(corners):
        angle = first_angle + number * 2 * math.pi / corners
        # Every second corner of a star lies further inside.
        reach = radius * (0.45 if figure.shape == "star" and number % 2 else 1)
        points.append((round(x + reach * math.cos(angle)), round(y + reach * math.sin(angle))))
    pen.polygon(points, fill=fill)
