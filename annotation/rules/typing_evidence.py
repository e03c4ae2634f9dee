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
_ADDRESS = r"[\w.+-]+@[\w-]+\.\w+"
_DECIMAL = r"(?:0|[1-9]\d*)\.\d+(?![()/.-]{0,2}\d)"
_PHONE = rf"(?<![\w.,])(?!{_DECIMAL})\+?\d(?:[ ()/.-]{{0,2}}\d){{8,}}"
_PERSONAL = re.compile(f"{_ADDRESS}|{_PHONE}")


def read_typing_evidence(
    sent_values: Mapping[str, str], characters: int
) -> dict[str, float] | None:
    """Return the pasted share of `characters`, and seconds to the first input and of typing.

    None if the browser reported incomplete or invalid values.
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


def looks_personal(text: str) -> bool:
    """Return whether the text seems to contain an email address or a phone number."""
    return _PERSONAL.search(text) is not None
