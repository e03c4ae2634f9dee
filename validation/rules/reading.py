"""Whether somebody can have read what they judged: rules about times."""

LEAST_SECONDS = 0.6
"""Earlier after an example appears a tap or a key is meant for what stood there before."""


def is_too_soon(seconds: float, items: int = 1) -> bool:
    """Tell whether answers to these items came before anybody can have looked at them.

    >>> is_too_soon(0.5), is_too_soon(0.6), is_too_soon(0.6, items=3)
    (True, False, True)
    """
    return seconds < LEAST_SECONDS * items
