"""Template tags about the owners' pages of a task, so that no link leads to a refusal."""

from django import template
from django.template import Context

from dynabench.manage.navigation import PAGE_PERMISSIONS, SideList, build_side_list
from tasks.permissions import is_blind_owner

register = template.Library()


@register.simple_tag(takes_context=True, name="opens")
def can_open_page(context: Context, view: str) -> bool:
    """Return whether the reader may open this owners' page of the task.

    Takes no query once the reader's role is known.
    """
    return PAGE_PERMISSIONS[view](context["user"], context["task"])


@register.simple_tag(takes_context=True, name="side_list")
def get_side_list(context: Context) -> SideList:
    """Return the list at the side of an owners' page, with what waits and the next step."""
    match = context["request"].resolver_match
    return build_side_list(context["user"], context["task"], match.view_name)


@register.simple_tag(takes_context=True)
def is_blind(context: Context) -> bool:
    """Return whether the reader owns the page's task and judges it blind.

    Blind owners do not see labels and votes.
    """
    return is_blind_owner(context["user"], context["task"])
