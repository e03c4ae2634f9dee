"""Writes about mixed rounds: set, start and end the shares of the arms.

The locks are listed in docs/locking.md.
"""

from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Invalid, Refused
from dynabench.adversaries.fit import check_fits
from dynabench.adversaries.ready_services import list_ready_adversaries, start_ready_adversaries
from dynabench.adversaries.services import find_kind
from tasks.arms import ARMS, DRAFTS, HELPED, MACHINES, PEOPLE, PEOPLE_ARMS, SUGGESTED_ARMS
from tasks.models import Generator, Round, Task


def check_shares(task: Task, shares: Mapping[str, int]) -> None:
    """Check that the task has what the arms need. Raises Refused, and Invalid with the arm."""
    config = task.config
    is_writing_task = config.kind == "examples" and not (config.has_rows_to_judge or config.talk)
    if not is_writing_task or config.verdict.type == "decide":
        raise Refused(_("Mixed rounds need a task in which people write a text."), code="unfit")
    if not any(shares.get(arm) for arm in PEOPLE_ARMS):
        raise Invalid(_("Give people a share in one of their arms."), field=PEOPLE)
    for arm in SUGGESTED_ARMS:
        if shares.get(arm) and not Generator.objects.filter(task=task).exists():
            message = _("Add a suggestion model under Models to fool first, or enter 0.")
            raise Invalid(message, field=arm)
    if shares.get(MACHINES) and not _has_adversary(task):
        raise Invalid(_("Create an adversary first, or enter 0."), field=MACHINES)


def _has_adversary(task: Task) -> bool:
    """Return whether an adversary of the task can run."""
    for adversary in task.adversaries.filter(retired_at=None):
        try:
            check_fits(task, find_kind(adversary))
        except Refused:
            continue
        return True
    return False


@transaction.atomic
def set_arm_shares(*, round: Round, actor: User, shares: Mapping[str, int]) -> Round:
    """Set the parts of each arm, by which people's next texts are assigned. Returns the round.

    People's texts so far keep their arms. Each change begins new urns, and the same shares again
    change nothing. Locks the round. Raises Refused and Invalid.
    """
    check_shares(round.task, shares)
    locked_round = _lock_unfinished_round(round)
    new_shares = {arm: shares.get(arm, 0) for arm in ARMS}
    # A second click must not refill the urns, from which people have drawn.
    if locked_round.arm_shares != new_shares:
        locked_round.arm_shares = new_shares
        locked_round.shares_number += 1
        locked_round.save(update_fields=["arm_shares", "shares_number"])
        log(actor, "round.mixed", locked_round, **new_shares)
    return locked_round


@transaction.atomic
def end_mixing(*, round: Round, actor: User) -> Round:
    """Assign no more arms in a round. Idempotent. Locks the round. Raises Refused.

    Texts that people have begun keep their arms. The round's adversaries go on.
    """
    locked_round = _lock_unfinished_round(round)
    if locked_round.arm_shares:
        locked_round.arm_shares = None
        locked_round.save(update_fields=["arm_shares"])
        log(actor, "round.unmixed", locked_round)
    return locked_round


@transaction.atomic
def start_mixed_round(*, round: Round, actor: User) -> Round:
    """Start an official task's ready adversaries, and give all possible arms the same share.

    A round that is mixed already keeps its shares. Takes the locks of `start_ready_adversaries`,
    then the round's, so that no machine writes before the shares are set. Raises Refused.
    """
    if round.state != Round.State.OPEN:
        raise Refused(_("Open the round first."), code="round_closed")
    if not list_ready_adversaries(round.task):
        raise Refused(_("This task has no ready adversaries."), code="none_ready")
    try:
        start_ready_adversaries(task=round.task, actor=actor)
    except Refused as refusal:
        # Somebody else has just started them.
        if refusal.code != "running":
            raise
    if round.arm_shares:
        return round
    shares = {PEOPLE: 1, MACHINES: 1}
    if Generator.objects.filter(task=round.task).exists():
        shares |= {HELPED: 1, DRAFTS: 1}
    return set_arm_shares(round=round, actor=actor, shares=shares)


def _lock_unfinished_round(round: Round) -> Round:
    """Lock the round and return it. Raises Refused if it is over."""
    locked_round = (
        Round.objects.select_for_update(of=("self",)).select_related("task").get(pk=round.pk)
    )
    if locked_round.state in Round.FINISHED_STATES:
        raise Refused(_("This round is closed. Set the shares of the next one."), code="closed")
    return locked_round
