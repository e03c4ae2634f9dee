"""Pictures in requests: from their text to the numbers that a model takes, within bounds."""

import base64
import binascii
import warnings
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .errors import wrong_field
from .spec import PictureSettings

MOST_BYTES = 10 * 2**20
MOST_PIXELS = 40_000_000
FORMATS = ("PNG", "JPEG", "WEBP")
PAPER = (255, 255, 255)  # behind what is transparent


def pixels_of(text: str, field: str, settings: PictureSettings) -> NDArray[np.float32]:
    """Decode a picture in base64, with or without a `data:…;base64,` prefix, to [3, side, side].

    The picture is resized to a square. Raises BadRequestError.
    """
    image = _opened(text, field)
    try:
        image.draft("RGB", (settings.side, settings.side))  # of a JPEG, so much is decoded
        return squared(_on_paper(image), settings)
    except Exception:  # Pillow raises many kinds on broken files
        raise wrong_field(field, "is a broken picture. Save it again.") from None


def squared(image: Image.Image, settings: PictureSettings) -> NDArray[np.float32]:
    """Return an RGB picture as normalised pixels [3, side, side]."""
    small = image.resize((settings.side, settings.side), Image.Resampling.BICUBIC)
    shares = np.asarray(small, np.float32) / np.float32(255)
    scaled = (shares - np.array(settings.mean, np.float32)) / np.array(settings.std, np.float32)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def _opened(text: str, field: str) -> Image.Image:
    """Open a picture without decoding it, and check its format, size and frames.

    Raises BadRequestError.
    """
    _, comma, after = text.partition(",")
    base64_text = after if comma and text.startswith("data:") else text
    # Checked on the text, before it is decoded: base64 makes four letters of three bytes.
    if len(base64_text) > (MOST_BYTES + 2) // 3 * 4:
        raise wrong_field(field, f"is a picture of more than {MOST_BYTES // 2**20} MiB.")
    try:
        data = base64.b64decode(base64_text, validate=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # see MOST_PIXELS
            image = Image.open(BytesIO(data), formats=FORMATS)
    except binascii.Error:
        raise wrong_field(field, "must be a picture in base64.") from None
    except Exception:  # Pillow raises many kinds on strange files
        raise wrong_field(field, f"is no picture of the formats {', '.join(FORMATS)}.") from None
    if image.width * image.height > MOST_PIXELS:
        raise wrong_field(
            field, f"has {image.width} × {image.height} pixels; at most 40 million are read."
        )
    if getattr(image, "is_animated", False):
        raise wrong_field(field, "is animated; send a still picture.")
    return image


def _on_paper(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    rgba_image = image.convert("RGBA")
    # Transparent parts have any colour, often black, under which writing is lost.
    paper = Image.new("RGBA", rgba_image.size, (*PAPER, 255))
    return Image.alpha_composite(paper, rgba_image).convert("RGB")
