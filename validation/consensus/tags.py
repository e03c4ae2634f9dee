"""The spelling of reviewers' tags."""

from core.text.words import collapse_spaces, fold

MAX_TAG_CHARS = 40


def normalise_tag(text: str) -> str:
    """Return the normalised tag, so that tags that look alike are equal. Raises ValueError.

    >>> normalise_tag("  Off  Topic ")
    'off topic'
    """
    name = collapse_spaces(fold(text, compatible=True, points=True))
    if not name or len(name) > MAX_TAG_CHARS or not collapse_spaces(text).isprintable():
        raise ValueError(f"A tag has 1 to {MAX_TAG_CHARS} visible characters.")
    return name
