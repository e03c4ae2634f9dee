"""Files from strangers as pictures and recordings of one form each; no Django, no database.

What is stored is re-encoded from what was decoded, so nothing else of a file survives:
no location, no second file behind the first. Run it in `core.files.bounded`.
"""

import wave
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from core.text.words import gettext_noop

MAX_BYTES = 10 * 10**6
MAX_PIXELS = 40 * 10**6
MAX_SECONDS = 60
SAMPLE_RATE_HZ = 16_000
"""Samples a second of a stored recording, which has one channel of 16 bits."""
LOSSLESS_FORMATS = ("PNG", "GIF")
FORMATS = (*LOSSLESS_FORMATS, "JPEG", "WEBP")
ALLOWED_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK")
CONTAINERS = "wav,w64,aiff,flac,ogg,mp3,aac,amr,mov,matroska,asf,caf"
"""Formats, as FFmpeg calls them, that phones and browsers record."""

ABOUT_KEYS = ("width", "height", "seconds")

TOO_MANY_BYTES = gettext_noop("It is larger than 10 MB. Save it smaller.")
NO_PICTURE = gettext_noop("It is no picture that can be read. Send a PNG, JPEG, WebP or GIF file.")
TOO_MANY_PIXELS = gettext_noop("It has more than 40 megapixels. Scale it down.")
ANIMATED = gettext_noop("It moves, and models are asked about one picture. Send a single frame.")
DEEP = gettext_noop("Its colours cannot be read. Save it with 8 bits a channel.")
NO_SOUND = gettext_noop("It is no recording that can be read. Send a WAV, MP3, M4A or Ogg file.")
TOO_LONG = gettext_noop("It is longer than 60 seconds. Cut it.")


class BadMedia(Exception):
    """Raised for a file that is refused; the message gives the reason and what to send instead."""


@dataclass(frozen=True)
class Decoded:
    """A picture or recording in its stored form. about: `width` and `height`, or `seconds`."""

    data: bytes
    mime: str
    about: Mapping[str, Any] = field(default_factory=dict)


def decode_picture(data: bytes) -> Decoded:
    """Convert a picture to an upright one on white: PNG if it was PNG or GIF, else JPEG.

    Raises BadMedia.
    """
    from PIL import Image, ImageOps

    # Pillow raises an error at twice this number. The check below refuses the rest.
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as picture:
            _check_picture(picture)
            # Cameras store pictures as the sensor has them, and say in EXIF how to turn them.
            upright_picture = ImageOps.exif_transpose(picture)
            kind = "JPEG"
            if picture.format in LOSSLESS_FORMATS:
                kind = "PNG"
    except Image.DecompressionBombError:
        raise BadMedia(TOO_MANY_PIXELS) from None
    except (OSError, SyntaxError, ValueError, EOFError):  # what Pillow raises on damaged files
        raise BadMedia(NO_PICTURE) from None
    plain_picture = _flatten_on_white(upright_picture)
    # Otherwise Pillow would write along what it kept of the file, such as its colour profile.
    plain_picture.info.clear()
    file = BytesIO()
    plain_picture.save(file, kind, **({"quality": 90} if kind == "JPEG" else {}))
    if file.tell() > MAX_BYTES:
        raise BadMedia(TOO_MANY_BYTES)
    about = {"width": plain_picture.width, "height": plain_picture.height}
    return Decoded(file.getvalue(), f"image/{kind.lower()}", about)


def _check_picture(picture: Any) -> None:
    """Check a picture before any of it is decoded. Raises BadMedia."""
    if picture.width * picture.height > MAX_PIXELS:
        raise BadMedia(TOO_MANY_PIXELS)
    if getattr(picture, "is_animated", False) and picture.format != "MPO":  # of some phones
        raise BadMedia(ANIMATED)
    if picture.mode not in ALLOWED_MODES:
        raise BadMedia(DEEP)


def _flatten_on_white(picture: Any) -> Any:
    """Convert to RGB on white, because people and models would see transparency differently."""
    from PIL import Image

    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    white = Image.new("RGB", clear.size, "white")
    white.paste(clear, mask=clear.getchannel("A"))
    return white


def decode_recording(data: bytes) -> Decoded:
    """Convert the sound of a file to WAV: one channel, 16,000 samples per second, 16 bits.

    The length is measured on the decoded samples, not read from the file. Raises BadMedia.
    """
    import av

    file, samples = BytesIO(), 0
    try:
        with (
            # Only containers of sound: FFmpeg also reads playlists, which name other files.
            av.open(BytesIO(data), options={"format_whitelist": CONTAINERS}) as container,
            wave.open(file, "wb") as wave_file,
        ):
            wave_file.setparams((1, 2, SAMPLE_RATE_HZ, 0, "NONE", ""))
            # Cut at the limit while decoding, so that an endless file costs a minute of samples at
            # most.
            for frame in _resample(container):
                samples += frame.samples
                if samples > MAX_SECONDS * SAMPLE_RATE_HZ:
                    raise BadMedia(TOO_LONG)
                wave_file.writeframesraw(bytes(frame.planes[0])[: 2 * frame.samples])
    except (av.FFmpegError, IndexError, ValueError):  # no sound at all: there is no first stream
        raise BadMedia(NO_SOUND) from None
    if not samples:
        raise BadMedia(NO_SOUND)
    return Decoded(file.getvalue(), "audio/wav", {"seconds": round(samples / SAMPLE_RATE_HZ, 2)})


def _resample(container: Any) -> Iterator[Any]:
    """Yield the decoded sound in chunks, in the stored format."""
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    for frame in container.decode(container.streams.audio[0]):
        yield from resampler.resample(frame)
    yield from resampler.resample(None)  # what it still holds


DECODERS: Mapping[str, Callable[[bytes], Decoded]] = {
    "image": decode_picture,
    "audio": decode_recording,
}
"""By the type of field."""
