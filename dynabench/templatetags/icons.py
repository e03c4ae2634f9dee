"""A template tag for the icons next to words."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# Lines of 1.5 px in a square of 16 by 16, drawn without fill in the colour of the text (`.icon`).
PATHS = {
    "check": "M3 8.5l3.5 3.5L13 4.5",
    "chevron": "M6 3.5L10.5 8 6 12.5",
    "circle": "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 000-11z",
    "clock": "M8 2a6 6 0 100 12A6 6 0 008 2zM8 4.8V8l2.3 1.6",
    "copy": "M5.5 5.5h7.5V14H5.5zM3 10.5V2h7.5",
    "dots": "M3 8h.01M8 8h.01M13 8h.01",
    "download": "M8 2.5v8M4.8 7.5L8 10.7l3.2-3.2M3 13.5h10",
    "eye": "M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8z"
    "M8 6.2a1.8 1.8 0 100 3.6 1.8 1.8 0 000-3.6z",
    "filter": "M2.5 4h11M4.5 8h7M6.5 12h3",
    "flag": "M4 14V2.5h7.5L10 5.5l1.5 3H4",
    "key": "M10.5 2a3.5 3.5 0 100 7 3.5 3.5 0 000-7zM8 8l-5.5 5.5M4.5 11.5L6 13",
    "link": "M6.8 9.2l2.4-2.4M7.5 4.5l1.3-1.3a2.8 2.8 0 014 4L11.5 8.5"
    "M8.5 11.5l-1.3 1.3a2.8 2.8 0 01-4-4L4.5 7.5",
    "model": "M3.5 5.5h9v8h-9zM8 5.5V2.8M6.2 8.8v1.4M9.8 8.8v1.4",
    "pencil": "M2.5 13.5l.8-3L10.8 3l2.2 2.2-7.5 7.5zM9.3 4.5l2.2 2.2",
    "people": "M6 3a2.3 2.3 0 100 4.6A2.3 2.3 0 006 3zM1.8 13.2c0-2.4 1.9-3.7 4.2-3.7"
    "s4.2 1.3 4.2 3.7M10.3 3.2a2.2 2.2 0 010 4.2M12 9.8c1.4.5 2.3 1.6 2.3 3.4",
    "plus": "M8 3v10M3 8h10",
    "search": "M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM10.3 10.3L14 14",
    "skip": "M3 3.5L8.5 8 3 12.5zM12.5 3.5v9",
    "text": "M3 4h10M3 8h10M3 12h6",
    "trash": "M2.5 4.5h11M6 4.5V2.5h4v2M4 4.5l.6 9h6.8l.6-9M6.8 7v4M9.2 7v4",
    "undo": "M5.5 3L2.5 6l3 3M2.5 6h6.2a3.7 3.7 0 010 7.4H6",
    "warning": "M8 2.2L14.5 13.5h-13zM8 6.5v3.2M8 11.6h.01",
    "x": "M4 4l8 8M12 4l-8 8",
}


@register.simple_tag(name="icon")
def draw_icon(name: str) -> SafeString:
    """Return the icon `name` as inline SVG, hidden from screen readers.

    Words next to the icon say the same. Raises KeyError if there is no icon of this name.
    """
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{}"/></svg>',
        PATHS[name],
    )
