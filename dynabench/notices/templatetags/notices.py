"""Notices on pages and in mails."""

from typing import Any

from django.template import Library

from dynabench.notices import sentences
from dynabench.notices.inbox import get_menu_number

register = Library()
register.filter("sentence", sentences.build_sentence)
register.filter("address", sentences.get_address)


@register.simple_tag(takes_context=True)
def waiting_number(context: Any) -> int:
    """Return how many items wait for the signed-in person; 0 without a session."""
    request = context.get("request")
    return get_menu_number(request) if getattr(request, "session", None) else 0
