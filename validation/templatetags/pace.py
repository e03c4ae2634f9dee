"""A template tag that keeps people from answering before they can have read an example."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from validation.consensus import reading

register = template.Library()


@register.simple_tag
def ignore_early_clicks(*names: Any) -> SafeString:
    """Return attributes that make an element ignore clicks for a moment after it appears.

    names: identify the content. If it appears again with the same names, clicks are not ignored.
    """
    return format_html(
        'data-fresh="{}" data-deaf="{}"',
        " ".join(map(str, names)),
        # The browser waits as long as the server requires.
        round(reading.MIN_READING_SECONDS * 1000),
    )
