"""Store requests to open tasks to non-members, and administrators' decisions about them."""

from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.proposal_services import (
    build_decided_error,
    check_decision,
    lock_waiting_proposal,
    store_decision,
)
from core.accounts.services import log
from core.data.rows import save_changed_fields
from core.errors import Refused
from tasks.mails import build_decision_text, mail_administrators, mail_person
from tasks.making.services import find_source, make_own_task
from tasks.making.templates import Source, get_source_text, rename_config
from tasks.models import Task, TaskProposal
from tasks.permissions import check_owner, needs_approval
from tasks.services import change_task, check_task_name

State = TaskProposal.State


@transaction.atomic
def request_approval(
    *, task: Task, actor: User, goal: str, people: str, show: bool = True
) -> TaskProposal:
    """Ask administrators by mail to let a task open to non-members; return the request.

    show: whether the task becomes visible to everybody once it is approved. A task has one request,
    which is reopened if it was declined or withdrawn. Locks the request, so that only one of two
    owners asks, and then the task names if `show`. Raises Refused, Invalid.
    """
    check_owner(actor, task)
    if not needs_approval(task):
        raise Refused(_("This task doesn't need approval."), code="approved")
    values: dict[str, Any] = {
        "name": task.name,
        "wanted_code": task.code,
        "goal": goal,
        "people": people,
    }
    values |= {"proposer": actor, "show": show}
    rows = TaskProposal.objects.select_for_update(of=("self",), no_key=True)
    # Of two owners who ask at once, one creates the row, and the other one finds it waiting.
    request, is_new = rows.get_or_create(task=task, defaults=values)
    if not is_new and request.state == State.WAITING:
        raise Refused(_("This task is already waiting for approval."), code="waiting")
    if show:
        check_task_name(task.name, "show", task)
    reset_values: dict[str, Any] = {
        "state": State.WAITING,
        "reason": "",
        "decided_by": None,
        "decided_at": None,
    }
    reset_values["created_at"] = timezone.now()
    save_changed_fields(request, values | reset_values)
    # Logged and mailed also when it is asked again.
    log(actor, "proposal.made", request)
    page = settings.SITE_URL + reverse("proposal", args=[request.pk])

    def write() -> tuple[str, str]:
        subject = _("A task needs your approval: %(name)s") % {"name": task.name}
        return subject, build_decision_text(goal, page)

    mail_administrators(write)
    return request


@transaction.atomic
def decide_proposal(
    *,
    proposal: TaskProposal,
    actor: User,
    approve: bool,
    reason: str,
    code: str = "",
    is_allowed: bool = False,
) -> TaskProposal:
    """Approve a task, which opens it to non-members, or decline it; mail the proposer.

    A proposal from an earlier release has no task, and approving it creates the task with this
    code. is_allowed: whether the caller has checked the actor's permission; otherwise only
    administrators may decide. Locks the proposal, so that it is decided once, then the task. Raises
    ConfigError, Refused, Invalid.
    """
    may_decide = actor.is_superuser or is_allowed
    check_decision(may_decide=may_decide, approve=approve, reason=reason, code="new_tasks")
    locked_proposal = lock_waiting_proposal(
        TaskProposal.objects.select_related("proposer", "task"), proposal
    )
    if approve and locked_proposal.task:
        _open_to_others(locked_proposal.task, actor, locked_proposal.show)
    elif approve:
        locked_proposal.task = _create_proposed_task(locked_proposal, code)
    store_decision(
        locked_proposal, actor=actor, approve=approve, reason=reason, result_field="task"
    )
    log(actor, f"proposal.{locked_proposal.state}", locked_proposal, reason=reason)
    task = locked_proposal.task
    page = reverse("own:access", args=[task.code]) if task else reverse("new")
    mail_decision(
        locked_proposal.proposer,
        locked_proposal.name,
        is_approved=approve,
        reason=reason,
        page=page,
    )
    return locked_proposal


def _open_to_others(task: Task, actor: User, show: bool) -> None:
    """Mark a task as approved and, if `show`, make it visible. Locks the task."""
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    save_changed_fields(locked_task, {"is_unapproved": False})
    if show:
        change_task(task=locked_task, actor=actor, fields={"is_visible": True})


def _create_proposed_task(proposal: TaskProposal, code: str) -> Task:
    """Create the task of a proposal from an earlier release."""
    source = find_source(proposal.kind, proposal.source, proposal.proposer)
    text = rename_config(proposal.config_text or _get_source_text(source), proposal.name)
    task_values: dict[str, Any] = {"creator": proposal.proposer, "code": code, "is_approved": True}
    return make_own_task(text=text, source=source, **task_values)[0]


@transaction.atomic
def withdraw_proposal(*, proposal: TaskProposal, actor: User) -> None:
    """Withdraw the actor's own pending proposal with a single update. No lock. Raises Refused."""
    own_requests = TaskProposal.objects.filter(pk=proposal.pk, proposer=actor, state=State.WAITING)
    # The condition is part of the update: it hits no row once the proposal is decided.
    if not own_requests.update(state=State.WITHDRAWN, decided_at=timezone.now()):
        raise build_decided_error()
    log(actor, "proposal.withdrawn", proposal)


def _get_source_text(source: Source | None) -> str:
    if source is None:
        raise Refused(_("The template you chose no longer exists. Choose another."), code="source")
    return get_source_text(source)


def mail_decision(proposer: User, name: str, *, is_approved: bool, reason: str, page: str) -> None:
    """Mail the decision on a proposal to its proposer.

    page: the path of the page on which to continue.
    """

    def write() -> tuple[str, str]:
        values = {"name": name}
        if is_approved:
            subject = _("“%(name)s” was approved") % values
            decision = _("Your proposal “%(name)s” was approved.") % values
        else:
            subject = _("“%(name)s” was declined") % values
            decision = _("Your proposal “%(name)s” was declined.") % values
        paragraphs = [decision, f"{settings.SITE_URL}{page}\n"]
        if reason:
            paragraphs.insert(1, reason)
        return subject, "\n\n".join(paragraphs)

    mail_person(proposer, write)
