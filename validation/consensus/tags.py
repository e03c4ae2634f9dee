"""The spelling of reviewers' tags."""

from core.text.words import folded, spaced

MAX_TAG_CHARS = 40


def normalise_tag(text: str) -> str:
    """Return the normalised tag, so that tags that look alike are one. Raises ValueError.

    >>> normalise_tag("  Off  Topic ")
    'off topic'
    """
    name = spaced(folded(text, compatible=True, points=True))
    if not name or len(name) > MAX_TAG_CHARS or not spaced(text).isprintable():
        raise ValueError(f"A tag has 1 to {MAX_TAG_CHARS} visible characters.")
    return name
