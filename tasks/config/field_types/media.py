"""Pictures and recordings. A value names a stored file by its digest, and says in words what it is.

The file itself is `tasks.contexts.media`'s: here nothing is known of it but what the value tells.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from core.text.words import gettext_noop
from tasks.config.components import Component, FieldType, FormInput
from tasks.config.values import format_subject

DIGEST_PATTERN = re.compile(r"[0-9a-f]{64}")
MAX_ALT_CHARS = 500
VALUE_KEYS = {"digest", "alt", "mime", "bytes", "width", "height", "seconds"}


class _Media(FieldType):
    keys = ()
    places = ("context", "input")
    cell = "text"  # the name of a file in the archive
    missing = "Add {title}"
    noun: ClassVar[str]
    mimes: ClassVar[tuple[str, ...]]
    accept: ClassVar[str]
    needs_words: ClassVar[bool]
    bounds: ClassVar[str]

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        # The file behind a link may change or go, and pages load nothing from other hosts.
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return [
                f"{subject} is a link, and pages here show no files of other hosts. Upload the "
                "file, or import an archive that holds it"
            ]
        if isinstance(value, str):
            return [f"{subject} names the file {value:.80}; import an archive that holds it"]
        digest = None
        if isinstance(value, Mapping):
            digest = value.get("digest")
        if (
            not isinstance(digest, str)
            or not DIGEST_PATTERN.fullmatch(digest)
            or value.keys() - VALUE_KEYS
        ):
            return [f"{subject} must be {self.noun}: upload it, and send its digest and alt"]
        # The services fill in what is stored of the digest. Without it there is no such file.
        if "mime" not in value:
            return [f"{subject} is not stored here, or was not used for a day. Add it once more"]
        if value["mime"] not in self.mimes:
            return [f"{subject} must be {self.noun}"]
        return self._check_words(subject, value.get("alt", ""))

    def _check_words(self, subject: str, words: Any) -> list[str]:
        if not isinstance(words, str) or len(words) > MAX_ALT_CHARS:
            return [f"{subject}: describe it in at most {MAX_ALT_CHARS} characters"]
        if self.needs_words and not words.strip():
            return [f"{subject}: say in words what it shows, for people who do not see it"]
        return []

    def form_input(self, component: Component) -> FormInput:
        return FormInput("MediaField", "MediaInput", {"accept": self.accept, "kind": self.element})

    def display(self, component: Component, value: Any) -> str:
        words = value.get("alt") if isinstance(value, Mapping) else value
        return str(words or self.noun) if value else ""

    def described(self, component: Component) -> str:
        return (
            f"{self.noun}: the SHA-256 of its file, {self.bounds}, and `alt`, what it is in words"
        )


class Image(_Media, name="image"):
    """A picture: PNG or JPEG."""

    title = gettext_noop("Picture")
    place = 12
    element = "image"
    noun = "a picture"
    mimes = ("image/png", "image/jpeg")
    accept = "image/png,image/jpeg,image/webp,image/gif"
    needs_words = True
    bounds = "its type, bytes, width and height in pixels"


class Audio(_Media, name="audio"):
    """A recording: WAV of one channel."""

    # Translators: noun: a sound
    title = gettext_noop("Recording")
    place = 13
    element = "audio"
    noun = "a recording"
    mimes = ("audio/wav",)
    accept = "audio/*"
    needs_words = False
    bounds = "its type, bytes and seconds"
