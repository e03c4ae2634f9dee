"""Template tags and filters for notices, on pages and in emails."""

from typing import Any

from django.template import Library

from dynabench.notices import sentences
from dynabench.notices.inbox import get_item_count

register = Library()
register.filter("sentence", sentences.build_sentence)
register.filter("address", sentences.get_address)


@register.simple_tag(takes_context=True, name="waiting_number")
def count_waiting_items(context: Any) -> int:
    """Return how many items wait for the signed-in person; 0 without a session."""
    request = context.get("request")
    return get_item_count(request) if getattr(request, "session", None) else 0
