"""Search in a written answer for another text or for a pattern. Pure."""

import regex

from core.text.words import compose, contains_phrase

PATTERN_SECONDS = 0.5  # that one search may take


def contains_text(text: str, sought: str, language: str = "") -> bool:
    """Return whether the text contains the phrase as whole words; see `contains_phrase`.

    >>> contains_text("It was  PARIS, in 1889.", "paris, in")
    True
    """
    return contains_phrase(text, sought, language=language)


def matches_pattern(text: str, pattern: str) -> bool | None:
    """Return whether the pattern matches somewhere in the NFC-normalised text.

    None if the search timed out. Raises ValueError for an invalid pattern.
    """
    try:
        # Owners write patterns, and one that backtracks must not hold a thread of the server.
        return regex.search(pattern, compose(text), timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        return None
    except regex.error as error:
        raise ValueError(str(error)) from None
