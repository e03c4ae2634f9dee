"""What a written answer holds: another text, or what a pattern describes. Pure."""

import regex

from core.text.words import composed, holds

PATTERN_SECONDS = 0.5  # that one search may take


def contains(text: str, wanted: str, language: str = "") -> bool:
    """Whether the text holds the other one as words of its own; see `holds`.

    >>> contains("It was  PARIS, in 1889.", "paris, in")
    True
    """
    return holds(text, wanted, language=language)


def matches(text: str, pattern: str) -> bool | None:
    """Whether the pattern is found in the text's NFC; None: no search came to an end in time.

    Raises ValueError for a pattern that is none.
    """
    try:
        return regex.search(pattern, composed(text), timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        return None
    except regex.error as error:
        raise ValueError(str(error)) from None
