"""A template filter that reads the names in the plan of a study as words."""

from django import template

register = template.Library()


@register.filter("as_words")
def read_name(name: str) -> str:
    """Return a name of a plan as people typed it: with_a_model is With a model."""
    words = name.replace("_", " ")
    # Only the first letter: a name may contain GPT.
    return words[:1].upper() + words[1:]
