"""Describe in our own words what is wrong with data that a library cannot read."""

from json import JSONDecodeError


def describe_damage(error: BaseException) -> str:
    """Return a clause for people about a damaged file, instead of a library's message.

    >>> describe_damage(ValueError("not enough values to unpack (expected 2, got 1)"))
    'its contents are damaged'
    """
    if isinstance(error, RecursionError):
        return "brackets within brackets too many times"
    if isinstance(error, JSONDecodeError):
        return f"line {error.lineno}, column {error.colno} is not JSON"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, EOFError):
        return "it ends too early"
    return "its contents are damaged"
