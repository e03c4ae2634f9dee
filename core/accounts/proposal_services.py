"""Approve or decline proposals, each once and with a reason for a refusal.

Proposals of tasks, communities and metrics have tables of their own. Their rows have `state`,
`reason`, `decided_by` and `decided_at`.
"""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Invalid, Refused

WAITING, APPROVED, DECLINED = "waiting", "approved", "declined"
Proposal = TypeVar("Proposal", bound=Model)


def check_decision(*, may_decide: bool, approve: bool, reason: str, code: str) -> None:
    """Check that a person may make this decision, and that a refusal has a reason.

    Raises Refused if they may not decide, and Invalid if the reason is missing. may_decide: whether
    the person may decide. code: the error code in the API.
    """
    if not may_decide:
        raise Refused(
            _("You can't decide this proposal. Ask an administrator."), code=code, status=403
        )
    if not approve and not reason.strip():
        raise Invalid(_("Enter a reason. The proposer will read it."), field="reason")


def lock_waiting_proposal(rows: QuerySet[Proposal], proposal: Model) -> Proposal:
    """Lock a waiting proposal and return it, so that it is decided only once.

    Raises Refused if it has been decided or withdrawn.
    """
    locked_proposal = rows.select_for_update(of=("self",), no_key=True).get(pk=proposal.pk)
    # Read under the lock: another person, or the proposer, may have been first.
    if locked_proposal.state != WAITING:  # type: ignore[attr-defined]
        raise build_decided_error()
    return locked_proposal


def build_decision_values(actor: User, reason: str) -> dict[str, Any]:
    """Return the field values that a decision stores in addition to the state."""
    return {"reason": reason, "decided_by": actor, "decided_at": timezone.now()}


def store_decision(
    locked_proposal: Any, *, actor: User, approve: bool, reason: str, result_field: str
) -> None:
    """Store a decision in a locked row.

    result_field: the field that refers to what an approval created.
    """
    locked_proposal.state = APPROVED if approve else DECLINED
    values = build_decision_values(actor, reason)
    for name, value in values.items():
        setattr(locked_proposal, name, value)
    locked_proposal.save(update_fields=[result_field, "state", *values])


def build_decided_error() -> Refused:
    """Return the Refused error for a proposal that is no longer waiting."""
    return Refused(_("This proposal has already been decided or withdrawn."), code="decided")
