"""Marks the words of pure rules for translators; imports nothing, so that any rule may use it."""


def gettext_noop(text: str) -> str:
    """A constant that the catalogue of interface texts holds; `{% translate %}` shows it."""
    return text
