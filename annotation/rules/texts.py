"""What a written answer holds: another text, or what a pattern describes. Pure."""

import unicodedata

import regex

PATTERN_SECONDS = 0.5  # that one search may take


def contains(text: str, wanted: str) -> bool:
    """Whether the text holds the other one, whatever case, spaces and forms of letters.

    Only whole words count, so that 12 is not in 3120; nothing is in every text.

    >>> contains("It was  PARIS, in 1889.", "paris, in")
    True
    """
    words = regex.escape(_plain(wanted))
    return regex.search(rf"(?<!\w)(?:{words})(?!\w)", _plain(text)) is not None


def matches(text: str, pattern: str) -> bool | None:
    """Whether the pattern is found in the text; None: no search came to an end in time.

    Raises ValueError for a pattern that is none.
    """
    try:
        return regex.search(pattern, text, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        return None
    except regex.error as error:
        raise ValueError(str(error)) from None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
