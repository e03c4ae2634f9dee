"""What one person proposes and another approves or declines, once and with a reason.

A proposal of a task, of a community or of a metric has its own table, whose rows have `reason`,
`decided_by` and `decided_at`. The state of a row says whether it waits.
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
    """Raise Refused for people who may not decide, and Invalid for a refusal without a reason.

    may_decide: whether the person may. code: of the refusal in the API.
    """
    if not may_decide:
        raise Refused(_("Only administrators decide."), code=code, status=403)
    if not approve and not reason.strip():
        raise Invalid(_("Give a reason; the proposer reads it."), field="reason")


def lock_waiting(rows: QuerySet[Proposal], proposal: Model) -> Proposal:
    """Lock a proposal that waits, so that it is decided once, and return it. Raises Refused."""
    locked_proposal = rows.select_for_update(of=("self",), no_key=True).get(pk=proposal.pk)
    # Read under the lock: another person, or the proposer, may have been first.
    if locked_proposal.state != WAITING:  # type: ignore[attr-defined]
        raise is_over()
    return locked_proposal


def decision_values(actor: User, reason: str) -> dict[str, Any]:
    """Return the values that a decision stores, beside the state."""
    return {"reason": reason, "decided_by": actor, "decided_at": timezone.now()}


def store_decision(
    locked_proposal: Any, *, actor: User, approve: bool, reason: str, result_field: str
) -> None:
    """Store a decision in a row that is locked. result_field: the field with what came of it."""
    locked_proposal.state = APPROVED if approve else DECLINED
    values = decision_values(actor, reason)
    for name, value in values.items():
        setattr(locked_proposal, name, value)
    locked_proposal.save(update_fields=[result_field, "state", *values])


def is_over() -> Refused:
    """Return the refusal of a proposal that does not wait any more."""
    return Refused(_("The proposal is decided or withdrawn already."), code="decided")
