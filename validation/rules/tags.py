"""How reviewers' tags are written."""

import unicodedata

LONGEST = 40


def tag_name(text: str) -> str:
    """The tag as it is stored, so that those that look alike are one. Raises ValueError.

    >>> tag_name("  Off  Topic ")
    'off topic'
    """
    name = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    if not name or len(name) > LONGEST or not name.isprintable():
        raise ValueError(f"A tag has 1 to {LONGEST} visible characters.")
    return name
