"""Putting another target in the place of a broken one, in a round that was opened."""

from django.db import transaction
from django.utils.translation import gettext as _

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from tasks.models import Round, RoundTarget, TargetModel
from tasks.services import RoundError, check_asked
from tasks.targets.ask_before_opening import Silent, ask_targets
from tasks.targets.fixed import lifted

State = Round.State


def replace_target(
    *, round: Round, old: TargetModel, new: TargetModel, actor: User | None
) -> RoundTarget:
    """Let another target of the task take the place of one, while nothing was collected.

    The new one is asked first: call it outside transactions. Locks the round, then the targets. The
    log has both names and the versions that answered last (none where none did). Raises RoundError.
    """
    _check_replaceable(round, old, new)
    try:
        version = ask_targets([new], round)[new.name]
    except Silent as error:
        raise RoundError(str(error)) from None
    with transaction.atomic():
        locked = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
        locked.task = round.task
        _check_replaceable(locked, old, new)
        entry = locked.round_targets.get(target=old)
        with lifted(Round.objects.filter(pk=locked.pk)):
            RoundTarget.objects.filter(pk=entry.pk).update(target=new)
        check_asked([new])
        entry.target = new
        last = old.versions.order_by("pk").last()
        before = {"target": old.name, "version": last.digest if last else ""}
        after = {"target": new.name, "version": version}
        log(actor, "round.target_replaced", locked, before=before, after=after)
    return entry


def _check_replaceable(round: Round, old: TargetModel, new: TargetModel) -> None:
    if round.state not in (State.OPEN, State.PAUSED, State.CLOSED) or not round.opened_at:
        raise RoundError(_("Only a round that was opened needs this. Change the round's plan."))
    if round.examples.exists():
        raise RoundError(_("The round has examples against its targets. Plan a new round."))
    names = set(round.targets.values_list("name", flat=True))
    if old.name not in names:
        raise RoundError(_("%(name)s is no target of the round.") % {"name": old.name})
    if new.task_id != round.task_id or new.name in names:
        raise RoundError(_("Choose another target of the task for it."))
