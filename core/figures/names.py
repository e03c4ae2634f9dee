"""Names of models beside their points, shortened in the middle so that they stay apart."""

from collections.abc import Sequence

ELLIPSIS = "…"
TAIL_SHARES = (1 / 3, 1 / 2, 2 / 3)
"""The shares of a shortened name's characters that come from its end, the preferred one first."""


def shorten_name(name: str, max_chars: int, tail_share: float = TAIL_SHARES[0]) -> str:
    """Return a name of at most `max_chars` characters, without its middle if it is longer.

    Versions and sizes are at the end of names, so an end that is cut off would make models look
    the same. tail_share: the share of the characters that come from the name's end.

    >>> shorten_name("starter-sentiment-large-v2", 16)
    'starter-se…ge-v2'
    """
    if len(name) <= max_chars:
        return name
    tail_length = int((max_chars - len(ELLIPSIS)) * tail_share)
    head_length = max_chars - len(ELLIPSIS) - tail_length
    return name[:head_length] + ELLIPSIS + name[len(name) - tail_length :]


def shorten_names(names: Sequence[str], max_chars: int) -> list[str]:
    """Return the names of one chart, each of at most `max_chars` characters.

    Different names stay different if they differ in their first or last characters.

    >>> shorten_names(["model-trained-on-round-1-seed-1", "model-trained-on-round-2-seed-1"], 14)
    ['model…1-seed-1', 'model…2-seed-1']
    """
    distinct_count = len(set(names))
    for tail_share in TAIL_SHARES:
        short_names = [shorten_name(name, max_chars, tail_share) for name in names]
        if len(set(short_names)) == distinct_count:
            return short_names
    return [shorten_name(name, max_chars) for name in names]
