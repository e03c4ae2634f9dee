"""Template tags for the header of every page: the current item, and the entry for task owners."""

from django import template
from django.template import Context

from dynabench.notices.manage_counts import ManageEntry, get_manage_entry

register = template.Library()
SECTIONS_BY_FIRST_PART = {
    "": "tasks",
    "t": "tasks",
    "communities": "tasks",
    "leaderboards": "leaderboards",
    "m": "leaderboards",
    "me": "work",
    "manage": "manage",
    "own": "manage",
    "new": "manage",
    "metrics": "manage",
    "help": "help",
    "docs": "help",
    "account": "account",
    "accounts": "account",
}
"""The current item of the header, by the first part of the URL's path."""
BOARD_PARTS = frozenset({"leaderboard", "arena", "models", "people"})
"""The third parts of paths of a task's pages that belong to its leaderboard."""
ACCOUNT_PARTS = frozenset({"news", "models", "teams", "data"})
"""The parts after /me/ in the paths of pages in the account menu."""


@register.simple_tag(takes_context=True, name="site_section")
def get_site_section(context: Context) -> str:
    """Return the header's item to which the page belongs; "" if there is none."""
    request = context.get("request")
    # Pages of errors are rendered without a request.
    return find_section(request.path) if request else ""


def find_section(path: str) -> str:
    """Return the header's item to which a path belongs; "" if there is none.

    >>> find_section("/t/nli/leaderboard/compare/")
    'leaderboards'
    """
    first, second, third, *_rest = [*path.strip("/").split("/"), "", ""]
    if first == "t" and third in BOARD_PARTS:
        return "leaderboards"
    if first == "me" and second in ACCOUNT_PARTS:
        return "account"
    return SECTIONS_BY_FIRST_PART.get(first, "")


@register.simple_tag(takes_context=True, name="manage_entry")
def find_manage_entry(context: Context) -> ManageEntry:
    """Return the header's entry for people who run tasks. It is not offered without a session."""
    request = context.get("request")
    # Pages of errors are rendered without a request, and some requests have no session.
    if request is None or not hasattr(request, "session") or not request.user.is_authenticated:
        return ManageEntry()
    return get_manage_entry(request)
