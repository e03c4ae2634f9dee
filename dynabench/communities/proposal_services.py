"""Writes about proposals: of communities, and of tasks for a community."""

from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.proposal_services import check_decision, lock_waiting_proposal, store_decision
from core.accounts.services import log
from core.errors import Refused
from core.text.taken_names import check_name
from dynabench.communities.models import (
    Community,
    CommunityProposal,
    CommunityTask,
    ProposedTask,
)
from dynabench.communities.permissions import (
    JOINED_STATE,
    can_manage,
    can_propose,
    find_visible_communities,
)
from tasks.mails import build_decision_text, mail_administrators, mail_person
from tasks.making.proposal_services import (
    decide_proposal,
    mail_decision,
    request_approval,
)
from tasks.models import TaskProposal

State = CommunityProposal.State
DECISION_MESSAGES = {
    "approved": gettext_noop("Proposal approved."),
    "declined": gettext_noop("Proposal declined."),
}
"""The confirmation shown to the person who decided, by the proposal's new state."""


@transaction.atomic
def propose_community(*, proposer: User, name: str, slug: str, goal: str) -> CommunityProposal:
    """Store a proposal and email the administrators.

    Locks the proposer, so that parallel requests do not exceed the limit of pending
    proposals. Raises Refused.
    """
    locked_proposer = User.objects.select_for_update(of=("self",), no_key=True).get(pk=proposer.pk)
    if not can_propose(locked_proposer):
        raise Refused(_("Confirm your email address first."), code="communities", status=403)
    _check_slug(slug)
    name = check_name(name)
    _check_pending_count(
        CommunityProposal.objects.filter(proposer=locked_proposer, state=State.WAITING).count()
    )
    proposal = CommunityProposal.objects.create(
        proposer=locked_proposer, name=name, slug=slug, goal=goal
    )
    log(proposer, "community.proposed", proposal)
    page = f"{settings.SITE_URL}/communities/proposals/{proposal.pk}/"

    def write_mail() -> tuple[str, str]:
        subject = _("New community proposal: %(name)s") % {"name": name}
        return subject, build_decision_text(goal, page)

    mail_administrators(write_mail)
    return proposal


def _check_pending_count(count: int) -> None:
    """Check that a person with `count` pending proposals may make another. Raises Refused."""
    if count >= settings.NEW_TASKS_AT_ONCE:
        message = _("You have %(number)d open proposals. Wait until one of them is decided.")
        raise Refused(message % {"number": count}, code="quota")


def _check_slug(slug: str) -> None:
    """Check that a slug is free and not reserved for a page of the site. Raises Refused."""
    # These are addresses of pages beside the communities.
    if slug in ("proposals", "new") or Community.objects.filter(slug=slug).exists():
        raise Refused(_("This URL name is taken. Choose another one."), code="exists", field="slug")


@transaction.atomic
def decide_community(
    *, proposal: CommunityProposal, actor: User, approve: bool, reason: str, slug: str
) -> CommunityProposal:
    """Approve a proposal, which creates the community, or decline it; email the proposer.

    The community is initially unlisted and owned by the proposer. Locks the proposal, so
    that two administrators do not create two communities. Raises Refused or Invalid.
    """
    may_decide = actor.is_superuser
    check_decision(may_decide=may_decide, approve=approve, reason=reason, code="communities")
    locked_proposal = lock_waiting_proposal(
        CommunityProposal.objects.select_related("proposer"), proposal
    )
    if approve:
        _check_slug(slug)
        # Unlisted, until its owner has written its page.
        locked_proposal.community = Community.objects.create(slug=slug, name=locked_proposal.name)
        locked_proposal.community.owners.add(locked_proposal.proposer)
    store_decision(
        locked_proposal, actor=actor, approve=approve, reason=reason, result_field="community"
    )
    log(actor, f"community.{locked_proposal.state}", locked_proposal, reason=reason)
    page = f"/communities/{slug}/manage/" if approve else "/communities/"
    mail_decision(
        locked_proposal.proposer,
        locked_proposal.name,
        is_approved=approve,
        reason=reason,
        page=page,
    )
    return locked_proposal


@transaction.atomic
def request_task_approval(
    *, community: Community | None, actor: User, **request: Any
) -> TaskProposal:
    """Request the approval of a task. If a community is given, its owners may decide on it, too.

    They and the administrators are emailed. A second request replaces the first one's community.
    request: the other arguments of `request_approval`. Takes the locks of `request_approval`.
    Raises Refused.
    """
    if community is None:
        proposal = request_approval(actor=actor, **request)
        # A second request replaces the first, which may have named a community.
        ProposedTask.objects.filter(proposal=proposal).delete()
        return proposal
    if not find_visible_communities(actor).filter(pk=community.pk).exists():
        raise Refused(
            _("This community doesn't exist. Choose another."), code="community", field="community"
        )
    proposal = request_approval(actor=actor, **request)
    ProposedTask.objects.update_or_create(proposal=proposal, defaults={"community": community})
    page = f"{settings.SITE_URL}/new/proposals/{proposal.pk}/"

    def write_mail() -> tuple[str, str]:
        names = {"community": community.name, "name": proposal.name}
        subject = _("Task for approval in %(community)s: %(name)s") % names
        return subject, build_decision_text(proposal.goal, page)

    # `request_approval` has written to the administrators.
    for owner in community.owners.filter(is_active=True, is_superuser=False):
        mail_person(owner, write_mail)
    return proposal


def can_decide_task(user: User, proposal: TaskProposal) -> bool:
    """Return whether the person may decide on a proposed task.

    Administrators may, and the owners of the community for which it is proposed.
    """
    link = ProposedTask.objects.filter(proposal=proposal).select_related("community").first()
    return user.is_superuser or bool(link and can_manage(user, link.community))


@transaction.atomic
def decide_task(
    *, proposal: TaskProposal, actor: User, approve: bool, reason: str, code: str = ""
) -> TaskProposal:
    """Decide on a proposed task; if approved, it joins the community it was proposed for.

    Takes the locks of `decide_proposal`. Raises ConfigError or Refused.
    """
    if not can_decide_task(actor, proposal):
        raise Refused(
            _("You can't decide this proposal. Ask an administrator."), code="new_tasks", status=403
        )
    decided_proposal = decide_proposal(
        proposal=proposal, actor=actor, approve=approve, reason=reason, code=code, is_allowed=True
    )
    link = ProposedTask.objects.filter(proposal=proposal).first()
    # Its owners have decided, so they are not asked again whether it may join.
    if link and decided_proposal.task and approve:
        defaults = {"state": JOINED_STATE}
        CommunityTask.objects.update_or_create(
            community=link.community, task=decided_proposal.task, defaults=defaults
        )
    return decided_proposal
