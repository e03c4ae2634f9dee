"""Writes: proposals of tasks, and what the administrators decide about them."""

from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Invalid, Refused
from dynabench.lib.taken_names import checked_name
from tasks.mails import mail_administrators, mail_person
from tasks.making.services import check_code, find_source, make_own_task
from tasks.making.templates import Source, kind_of, renamed, text_in
from tasks.models import TaskProposal
from tasks.permissions import can_propose_tasks

State = TaskProposal.State


@transaction.atomic
def propose_task(
    *,
    proposer: User,
    source: Source | None,
    name: str,
    code: str,
    goal: str,
    people: str,
    config_text: str = "",
) -> TaskProposal:
    """Store a proposal and mail the administrators; without a text it is the source's.

    Locks the proposer, so that many tabs do not exceed what may wait. Raises Refused.
    """
    locked = User.objects.select_for_update(of=("self",), no_key=True).get(pk=proposer.pk)
    if not can_propose_tasks(locked):
        raise Refused(_("Confirm your e-mail address first."), code="new_tasks", status=403)
    check_code(code)
    name = checked_name(name)
    check_waiting(TaskProposal.objects.filter(proposer=locked, state=State.WAITING).count())
    about = {"name": name, "wanted_code": code, "goal": goal, "people": people}
    about |= {"kind": kind_of(source), "source": source.code if source else ""}
    made = TaskProposal.objects.create(proposer=locked, config_text=config_text, **about)
    log(proposer, "proposal.made", made)
    page = settings.SITE_URL + reverse("proposal", args=[made.pk])
    mail_administrators(f"Dynabench: a task is proposed: {name}", f"{goal}\n\nDecide: {page}\n")
    return made


def check_waiting(number: int) -> None:
    """Whether somebody with so many proposals that wait may make another. Raises Refused."""
    if number >= settings.NEW_TASKS_AT_ONCE:
        said = _("You have %(number)d proposals that wait. Wait until one of them is decided.")
        raise Refused(said % {"number": number}, code="quota")


@transaction.atomic
def decide_proposal(
    *,
    proposal: TaskProposal,
    actor: User,
    approve: bool,
    reason: str,
    code: str,
    is_allowed: bool = False,
) -> TaskProposal:
    """Approve a proposal, which makes its task once, or decline it; the proposer gets a mail.

    code: of the task, which may be another than the wanted one. is_allowed: the caller knows that
    the actor decides about this one; else only administrators do. Locks the proposal, so that two
    of them do not make two tasks. Raises ConfigError, Refused.
    """
    if not (actor.is_superuser or is_allowed):
        raise Refused(_("Only administrators decide."), code="new_tasks", status=403)
    rows = TaskProposal.objects.select_related("proposer")
    locked = rows.select_for_update(of=("self",), no_key=True).get(pk=proposal.pk)
    if locked.state != State.WAITING:
        raise _is_over()
    if not approve and not reason.strip():
        raise Invalid(_("Give a reason; the proposer reads it."), field="reason")
    if approve:
        source = find_source(locked.kind, locked.source, locked.proposer)
        text = renamed(locked.config_text or _text_in(source), locked.name)
        about: dict[str, Any] = {"maker": locked.proposer, "code": code, "is_approved": True}
        locked.task = make_own_task(text=text, source=source, **about)[0]
    locked.state = State.APPROVED if approve else State.DECLINED
    locked.reason, locked.decided_by, locked.decided_at = reason, actor, timezone.now()
    locked.save(update_fields=["task", "state", "reason", "decided_by", "decided_at"])
    log(actor, f"proposal.{locked.state}", locked, reason=reason)
    task = locked.task
    page = reverse("own:dashboard", args=[task.code]) if task else reverse("new")
    tell_proposer(locked.proposer, locked.name, locked.state, reason, page)
    return locked


@transaction.atomic
def withdraw_proposal(*, proposal: TaskProposal, actor: User) -> None:
    """Take back one's own proposal while it waits. One update, no lock. Raises Refused."""
    mine = TaskProposal.objects.filter(pk=proposal.pk, proposer=actor, state=State.WAITING)
    if not mine.update(state=State.WITHDRAWN, decided_at=timezone.now()):
        raise _is_over()
    log(actor, "proposal.withdrawn", proposal)


def _is_over() -> Refused:
    return Refused(_("The proposal is decided or withdrawn already."), code="decided")


def _text_in(source: Source | None) -> str:
    if source is None:
        raise Refused(_("What the task should begin as is not there any more."), code="source")
    return text_in(source)


def tell_proposer(proposer: User, name: str, state: str, reason: str, page: str) -> None:
    """Mail what became of a proposal. page: the path where it goes on."""
    words = [f"Your proposal “{name}” is {state}.", reason]
    text = "\n\n".join([*filter(None, words), f"{settings.SITE_URL}{page}"])
    mail_person(proposer, f"Dynabench: {name} is {state}", f"{text}\n")
