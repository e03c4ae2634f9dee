"""Evidence of how a text was typed, as the browser reports it. Owners see it; nothing is refused.

Pasting is allowed: assistive technology and input methods paste, and so do people who write
elsewhere. A browser without JavaScript reports nothing, which is unknown and counts for nothing.
"""

import math
import re
from collections.abc import Mapping

MAX_SECONDS = 86_400.0  # seconds

# An address with a dot behind the @; nine digits or more, which may stand in groups but are no
# decimal such as 3.14159265.
_ADDRESS_REGEX = r"[\w.+-]+@[\w-]+\.\w+"
_DECIMAL_REGEX = r"(?:0|[1-9]\d*)\.\d+(?![()/.-]{0,2}\d)"
_PHONE_REGEX = rf"(?<![\w.,])(?!{_DECIMAL_REGEX})\+?\d(?:[ ()/.-]{{0,2}}\d){{8,}}"
_PERSONAL_PATTERN = re.compile(f"{_ADDRESS_REGEX}|{_PHONE_REGEX}")


def read_typing_evidence(
    sent_values: Mapping[str, str], characters: int
) -> dict[str, float] | None:
    """Return the typing evidence, or None if the browser sent incomplete or invalid values.

    Keys of the result: `pasted` and `characters` (counts), `first_input` (seconds until the first
    input) and `active` (seconds of typing).
    """
    try:
        pasted_characters, first_input_seconds, active_seconds = (
            float(sent_values[n]) for n in ("pasted", "first_input", "active")
        )
    except (KeyError, ValueError):
        return None
    if not all(
        math.isfinite(value) and value >= 0
        for value in (pasted_characters, first_input_seconds, active_seconds)
    ):
        return None
    return {
        # What was pasted may have been deleted again, so more can be pasted than is left.
        "pasted": min(pasted_characters, characters),
        "characters": characters,
        "first_input": min(first_input_seconds, MAX_SECONDS),
        "active": min(active_seconds, MAX_SECONDS),
    }


def contains_contact_details(text: str) -> bool:
    """Return whether the text seems to contain an email address or a phone number."""
    return _PERSONAL_PATTERN.search(text) is not None
