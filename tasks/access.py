"""Check who may use a task's pages and its part of the API."""

from collections.abc import Callable, Collection

from django.core.exceptions import PermissionDenied
from django.db.models import CharField
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from rest_framework.request import Request

from core.accounts.models import User
from core.accounts.people import get_person
from core.data.prepared import PreparedRead, Slot
from core.web.refusals import CurableDenial
from tasks.models import Task
from tasks.permissions import Person, can_edit, can_see, get_role, is_blind_owner

PermissionCheck = Callable[[Person, Task], bool]
ALL_KINDS = ("examples", "arena")
"""All kinds of tasks."""
TASK_BY_CODE = PreparedRead(lambda: Task.objects.filter(code=Slot("code", CharField())))


def find_task(
    request: HttpRequest | Request,
    code: str,
    permission_check: PermissionCheck = can_see,
    *,
    kinds: Collection[str] = ("examples",),
) -> Task:
    """Return the task with this code if the person has the permission.

    kinds: the kinds of tasks that have the page, or ALL_KINDS. Raises Http404 if there is no such
    task, or if it is of another kind. Otherwise raises as `require_permission` does.
    """
    # 1. Find the task: a prepared query, since every page and call begins with it.
    task = TASK_BY_CODE.first(code=code)
    if task is None:
        raise Http404
    # 2. Check the role before the kind, so that an outsider learns neither.
    require_permission(request.user, task, permission_check)
    if kinds is not ALL_KINDS and task.config.kind not in kinds:
        raise Http404
    return task


def require_permission(user: Person, task: Task, permission_check: PermissionCheck) -> None:
    """Raise PermissionDenied for members without this permission, Http404 for everybody else.

    Because of Http404, outsiders do not learn what a task has besides its public pages. Raises
    CurableDenial for an owner who judges blind.
    """
    if permission_check(user, task):
        return
    # To outsiders a task that they may not enter does not exist.
    if not user.is_superuser and get_role(user, task) is None:
        raise Http404
    # An owner who judges blindly can end that at once, so the refusal says where.
    if is_blind_owner(user, task):
        raise CurableDenial(
            _(
                "You judge this task blind. Turn off blind judging under Members to read labels "
                "and votes."
            ),
            page=reverse("own:access", args=[task.code], fragment="blind"),
            link=_("Open Members"),
        )
    raise PermissionDenied(_("Your role in this task doesn't allow this. Ask its owners."))


def find_task_and_editor(
    request: HttpRequest | Request, code: str, *, kinds: Collection[str] = ("examples",)
) -> tuple[Task, User]:
    """Return the task and the person, who must be an editor; see `require_permission`."""
    task = find_task(request, code, can_edit, kinds=kinds)
    return task, get_person(request)
