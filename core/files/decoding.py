"""Convert strangers' files to one form of pictures and of recordings. No Django, no database.

A stored file is encoded from the decoded data, so that nothing else of the original remains, such
as a location or a second file appended to the first. Run it in `core.files.bounded`.
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
"""Samples per second of a stored recording, which has one channel of 16 bits."""
LOSSLESS_FORMATS = ("PNG", "GIF")
FORMATS = (*LOSSLESS_FORMATS, "JPEG", "WEBP")
ALLOWED_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK")
CONTAINERS = "wav,w64,aiff,flac,ogg,mp3,aac,amr,mov,matroska,asf,caf"
"""FFmpeg's names of the container formats that phones and browsers record."""

MEASURE_KEYS = ("width", "height", "seconds")
"""The keys of `DecodedMedia.about`."""

TOO_MANY_BYTES_MESSAGE = gettext_noop("The file is larger than 10 MB. Save it at a smaller size.")
NO_PICTURE_MESSAGE = gettext_noop(
    "This isn't a readable image. Send a PNG, JPEG, WebP or GIF file."
)
TOO_MANY_PIXELS_MESSAGE = gettext_noop("The image has more than 40 megapixels. Scale it down.")
ANIMATED_MESSAGE = gettext_noop(
    "The image is animated, but models see only a single picture. Send one frame."
)
TOO_DEEP_MESSAGE = gettext_noop(
    "The image's colours can't be read. Save it with 8 bits per channel."
)
NO_SOUND_MESSAGE = gettext_noop(
    "This isn't a readable recording. Send a WAV, MP3, M4A or Ogg file."
)
TOO_LONG_MESSAGE = gettext_noop("The recording is longer than 60 seconds. Shorten it.")


class BadMedia(Exception):
    """Raised if a file is refused. The message gives the reason and what to send instead."""


@dataclass(frozen=True)
class DecodedMedia:
    """A picture or recording in its stored form.

    about: `width` and `height` of a picture in pixels, or `seconds` of a recording.
    """

    data: bytes
    mime: str
    about: Mapping[str, Any] = field(default_factory=dict)


def decode_picture(data: bytes) -> DecodedMedia:
    """Convert a picture to an upright one on white: PNG if it was PNG or GIF, otherwise JPEG.

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
            format_name = "JPEG"
            if picture.format in LOSSLESS_FORMATS:
                format_name = "PNG"
    except Image.DecompressionBombError:
        raise BadMedia(TOO_MANY_PIXELS_MESSAGE) from None
    except (OSError, SyntaxError, ValueError, EOFError):  # what Pillow raises on damaged files
        raise BadMedia(NO_PICTURE_MESSAGE) from None
    plain_picture = _flatten_on_white(upright_picture)
    # Otherwise Pillow would write along what it kept of the file, such as its colour profile.
    plain_picture.info.clear()
    file = BytesIO()
    plain_picture.save(file, format_name, **({"quality": 90} if format_name == "JPEG" else {}))
    if file.tell() > MAX_BYTES:
        raise BadMedia(TOO_MANY_BYTES_MESSAGE)
    about = {"width": plain_picture.width, "height": plain_picture.height}
    return DecodedMedia(file.getvalue(), f"image/{format_name.lower()}", about)


def _check_picture(picture: Any) -> None:
    """Check a picture's size and mode before it is decoded. Raises BadMedia."""
    if picture.width * picture.height > MAX_PIXELS:
        raise BadMedia(TOO_MANY_PIXELS_MESSAGE)
    if getattr(picture, "is_animated", False) and picture.format != "MPO":  # of some phones
        raise BadMedia(ANIMATED_MESSAGE)
    if picture.mode not in ALLOWED_MODES:
        raise BadMedia(TOO_DEEP_MESSAGE)


def _flatten_on_white(picture: Any) -> Any:
    """Convert a picture to RGB on white, because viewers show transparency in different ways."""
    from PIL import Image

    if not picture.has_transparency_data:
        return picture.convert("RGB")
    transparent_picture = picture.convert("RGBA")
    white = Image.new("RGB", transparent_picture.size, "white")
    white.paste(transparent_picture, mask=transparent_picture.getchannel("A"))
    return white


def decode_recording(data: bytes) -> DecodedMedia:
    """Convert the sound of a file to WAV: one channel, 16,000 samples per second, 16 bits.

    The length is measured on the decoded samples, not read from the file. Raises BadMedia.
    """
    import av

    output, sample_count = BytesIO(), 0
    try:
        with (
            # Only containers of sound: FFmpeg also reads playlists, which name other files.
            av.open(BytesIO(data), options={"format_whitelist": CONTAINERS}) as container,
            wave.open(output, "wb") as wave_file,
        ):
            # One channel, two bytes per sample; the number of frames is written at the end.
            wave_file.setparams((1, 2, SAMPLE_RATE_HZ, 0, "NONE", ""))
            # Cut at the limit while decoding, so that an endless file costs a minute of samples at
            # most.
            for frame in _iter_resampled_chunks(container):
                sample_count += frame.samples
                if sample_count > MAX_SECONDS * SAMPLE_RATE_HZ:
                    raise BadMedia(TOO_LONG_MESSAGE)
                wave_file.writeframesraw(bytes(frame.planes[0])[: 2 * frame.samples])
    except (av.FFmpegError, IndexError, ValueError):  # no sound at all: there is no first stream
        raise BadMedia(NO_SOUND_MESSAGE) from None
    if not sample_count:
        raise BadMedia(NO_SOUND_MESSAGE)
    return DecodedMedia(
        output.getvalue(), "audio/wav", {"seconds": round(sample_count / SAMPLE_RATE_HZ, 2)}
    )


def _iter_resampled_chunks(container: Any) -> Iterator[Any]:
    """Yield the decoded sound in chunks, in the stored format."""
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    for frame in container.decode(container.streams.audio[0]):
        yield from resampler.resample(frame)
    yield from resampler.resample(None)  # what it still holds


DECODERS: Mapping[str, Callable[[bytes], DecodedMedia]] = {
    "image": decode_picture,
    "audio": decode_recording,
}
"""The function that decodes files of a field, by field type."""
