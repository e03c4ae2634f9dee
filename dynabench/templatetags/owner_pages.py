"""Which pages of a task's owners are offered to whom: a link never leads to a refusal."""

from collections.abc import Mapping

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from dynabench.templatetags.components import tab
from tasks.access import PermissionCheck
from tasks.models import Task
from tasks.permissions import (
    can_edit,
    can_manage,
    can_oversee,
    can_own,
    can_read,
    can_review,
    can_see,
    is_blind_owner,
)

register = template.Library()
OPENS: Mapping[str, PermissionCheck] = {
    "leaderboard:arena": can_see,
    "own:arena": can_manage,
    "own:arena-voters": can_manage,
    "own:arena-conversations": can_review,
    "own:dashboard": can_oversee,
    "own:rounds": can_oversee,
    "own:targets": can_manage,
    "own:review": can_review,
    "own:results": can_read,
    "own:reports": can_review,
    "own:annotators": can_review,
    "own:second-opinion": can_review,
    # It shows what votes would decide, so a blind owner may not see it.
    "own:policy": lambda user, task: can_edit(user, task) and can_read(user, task),
    "evaluation:export": can_read,
    "evaluation:trainings": can_edit,
    "evaluation:sets": can_edit,
    "evaluation:metrics": can_edit,
    "evaluation:own-workers": can_own,
    "evaluation:llm-judges": can_edit,
    "own:config": can_edit,
    # Findings tell of votes, too.
    "own-campaigns:campaigns": lambda user, task: can_own(user, task) and can_read(user, task),
    "own:access": can_manage,
    "own:log": can_read,
    "admin:tasks_task_change": can_read,
}
"""What each view asks of whoever opens it, by the view's name."""


@register.simple_tag(takes_context=True)
def opens(context: Context, view: str) -> bool:
    """Return whether the reader may open this owners' page of the task.

    No query once the reader's role is known.
    """
    return OPENS[view](context["user"], context["task"])


@register.simple_tag(takes_context=True)
def owner_tab(context: Context, view: str, label: str, current_view: str) -> SafeString:
    """Draw an owners' tab; empty if the reader may not open the page."""
    task: Task = context["task"]
    if not OPENS[view](context["user"], task):
        return SafeString("")
    # The admin names a task by its id.
    return tab(view, label, current_view, task.pk if view.startswith("admin:") else task.code)


@register.simple_tag(takes_context=True)
def is_blind(context: Context) -> bool:
    """Return whether the reader owns the page's task and judges it blind, which hides much."""
    return is_blind_owner(context["user"], context["task"])
