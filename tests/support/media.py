"""Small pictures and recordings, as files that people send and as what is stored of them."""

import math
import struct
import wave
from hashlib import sha256
from io import BytesIO

from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from core.files.decoding import decode_picture, decode_recording
from tasks.contexts.media.services import store_decoded


def png(colour="red", size=(8, 6), kind="PNG", **how):
    """A picture of one colour."""
    file = BytesIO()
    Image.new("RGB", size, colour).save(file, kind, **how)
    return file.getvalue()


def wav(seconds=0.2, rate=8000):
    """A tone."""
    file = BytesIO()
    tone = (int(9000 * math.sin(place / 5)) for place in range(int(seconds * rate)))
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, rate, 0, "NONE", ""))
        written.writeframes(b"".join(struct.pack("<h", one) for one in tone))
    return file.getvalue()


FILES = {"image": png(), "audio": wav()}
DECODED = {"image": decode_picture(FILES["image"]), "audio": decode_recording(FILES["audio"])}
WORDS = {"image": "A red stripe", "audio": "A low tone"}


def value(kind):
    """What a field holds of the file of this kind."""
    found = DECODED[kind]
    about = {"mime": found.mime, "bytes": len(found.data), **found.about}
    return {"digest": sha256(found.data).hexdigest(), **about, "alt": WORDS[kind]}


def sent(name, kind):
    """What the form sends for a field of this kind."""
    file = SimpleUploadedFile(f"my.{kind}", FILES[kind], content_type="text/html")
    return {f"{name}_file": file, f"{name}_alt": f" {WORDS[kind]} "}


def stored(task, kind):
    """The value of a field whose file is stored."""
    store_decoded(task=task, decoded_file=DECODED[kind])
    return value(kind)
