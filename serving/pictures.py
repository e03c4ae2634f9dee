"""Decode pictures in requests to a model's pixel values, within limits."""

import base64
import binascii
import warnings
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .errors import build_wrong_field_error
from .spec import PictureSettings

MAX_BYTES = 10 * 2**20
MAX_PIXELS = 40_000_000
ALLOWED_FORMATS = ("PNG", "JPEG", "WEBP")
BACKGROUND_COLOUR = (255, 255, 255)  # behind what is transparent


def read_pixels(text: str, field: str, settings: PictureSettings) -> NDArray[np.float32]:
    """Decode a picture in base64, with or without a `data:…;base64,` prefix, to [3, side, side].

    The picture is resized to a square. Raises BadRequestError.
    """
    image = _open_picture(text, field)
    try:
        image.draft("RGB", (settings.side, settings.side))  # of a JPEG, so much is decoded
        return normalise_pixels(_put_on_white(image), settings)
    except Exception:  # Pillow raises many kinds on broken files
        raise build_wrong_field_error(field, "is a broken picture. Save it again.") from None


def normalise_pixels(image: Image.Image, settings: PictureSettings) -> NDArray[np.float32]:
    """Return an RGB picture, resized to a square, as normalised pixels [3, side, side]."""
    small = image.resize((settings.side, settings.side), Image.Resampling.BICUBIC)
    shares = np.asarray(small, np.float32) / np.float32(255)
    scaled = (shares - np.array(settings.mean, np.float32)) / np.array(settings.std, np.float32)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def _open_picture(text: str, field: str) -> Image.Image:
    """Open a picture without decoding it, and check its format, size and frames.

    Raises BadRequestError.
    """
    _, comma, encoded_part = text.partition(",")
    base64_text = encoded_part if comma and text.startswith("data:") else text
    # Checked on the text, before it is decoded: base64 makes four letters of three bytes.
    if len(base64_text) > (MAX_BYTES + 2) // 3 * 4:
        raise build_wrong_field_error(field, f"is a picture of more than {MAX_BYTES // 2**20} MiB.")
    try:
        data = base64.b64decode(base64_text, validate=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # see MAX_PIXELS
            image = Image.open(BytesIO(data), formats=ALLOWED_FORMATS)
    except binascii.Error:
        raise build_wrong_field_error(field, "must be a picture in base64.") from None
    except Exception:  # Pillow raises many kinds on strange files
        raise build_wrong_field_error(
            field, f"is no picture of the formats {', '.join(ALLOWED_FORMATS)}."
        ) from None
    if image.width * image.height > MAX_PIXELS:
        raise build_wrong_field_error(
            field, f"has {image.width} × {image.height} pixels; at most 40 million are read."
        )
    if getattr(image, "is_animated", False):
        raise build_wrong_field_error(field, "is animated; send a still picture.")
    return image


def _put_on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    rgba_image = image.convert("RGBA")
    # Transparent parts have any colour, often black, under which writing is lost.
    background = Image.new("RGBA", rgba_image.size, (*BACKGROUND_COLOUR, 255))
    return Image.alpha_composite(background, rgba_image).convert("RGB")
