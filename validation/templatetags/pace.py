"""What a page tells the browser about the pace of verdicts."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from validation.consensus import reading

register = template.Library()


@register.simple_tag
def fresh(*names: Any) -> SafeString:
    """Return attributes that make an element ignore clicks for a moment after it appears.

    names: identify the content; the same names again do not start another moment.
    """
    return format_html(
        'data-fresh="{}" data-deaf="{}"',
        " ".join(map(str, names)),
        # The browser waits as long as the server asks for.
        round(reading.LEAST_SECONDS * 1000),
    )
