"""The spelling of reviewers' tags."""

from core.text.words import folded, spaced

LONGEST = 40


def tag_name(text: str) -> str:
    """Return the normalised tag, so that tags that look alike are one. Raises ValueError.

    >>> tag_name("  Off  Topic ")
    'off topic'
    """
    name = spaced(folded(text, compatible=True, points=True))
    if not name or len(name) > LONGEST or not spaced(text).isprintable():
        raise ValueError(f"A tag has 1 to {LONGEST} visible characters.")
    return name
