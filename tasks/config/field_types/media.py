"""Pictures and recordings. A value names a stored file by its digest, and describes it in words.

`tasks.contexts.media` manages the files. This module knows only the values.
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
    sections = ("context", "input")
    cell_type = "text"  # the name of a file in the archive
    missing_message = "Add {title}"
    noun: ClassVar[str]
    mimes: ClassVar[tuple[str, ...]]
    accept: ClassVar[str]
    requires_description: ClassVar[bool]
    file_properties: ClassVar[str]

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        # The file behind a link may change or go, and pages load nothing from other hosts.
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return [
                (
                    f"{subject} is a link, but pages here don't show files of other hosts. "
                    "Upload the file, or import an archive that contains it"
                )
            ]
        if isinstance(value, str):
            return [f"{subject} names the file {value:.80}; import an archive that contains it"]
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
        return self._find_description_errors(subject, value.get("alt", ""))

    def _find_description_errors(self, subject: str, description: Any) -> list[str]:
        if not isinstance(description, str) or len(description) > MAX_ALT_CHARS:
            return [f"{subject}: describe it in at most {MAX_ALT_CHARS} characters"]
        if self.requires_description and not description.strip():
            return [f"{subject}: say in words what it shows, for people who do not see it"]
        return []

    def build_form_input(self, component: Component) -> FormInput:
        return FormInput("MediaField", "MediaInput", {"accept": self.accept, "kind": self.element})

    def display(self, component: Component, value: Any) -> str:
        description = value.get("alt") if isinstance(value, Mapping) else value
        return str(description or self.noun) if value else ""

    def describe_value(self, component: Component) -> str:
        properties = self.file_properties
        return f"{self.noun}: the SHA-256 of its file, {properties}, and `alt`, what it is in words"


class Image(_Media, name="image"):
    """A field with a picture, PNG or JPEG."""

    title = gettext_noop("Picture")
    place = 12
    element = "image"
    noun = "a picture"
    mimes = ("image/png", "image/jpeg")
    accept = "image/png,image/jpeg,image/webp,image/gif"
    requires_description = True
    file_properties = "its type, bytes, width and height in pixels"


class Audio(_Media, name="audio"):
    """A field with a recording, a WAV file with one channel."""

    # Translators: noun: a sound
    title = gettext_noop("Recording")
    place = 13
    element = "audio"
    noun = "a recording"
    mimes = ("audio/wav",)
    accept = "audio/*"
    requires_description = False
    file_properties = "its type, bytes and seconds"
