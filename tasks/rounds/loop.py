"""The targets of a round. Once it has opened, only a broken target may be replaced."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.forms.models import model_to_dict
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from tasks.models import Round, RoundTarget, TargetModel, Task
from tasks.questions import has_examples
from tasks.rounds.target_triggers import lift_triggers
from tasks.targets.ask_before_opening import SilentTargets, ask_targets
from tasks.targets.services import store_target_changes
from tasks.targets.sources import find_outside_folder

State = Round.State


class RoundError(Refused):
    """Raised if a round cannot change to the requested state. The message gives the reason."""

    code = "state"
    field = "state"


def list_targets_in_loop(round: Round) -> list[TargetModel]:
    """Return the round's current targets in order."""
    entries = RoundTarget.objects.filter(round=round).select_related("target")
    return [entry.target for entry in entries]


def set_targets(round: Round, targets: Iterable[TargetModel]) -> dict[str, Any]:
    """Set exactly these targets, as Model A, Model B, … in this order; return what to log.

    Raises Refused if this changes the targets of an opened round. The caller holds the round's
    lock. Locks the targets, so that none is deleted at the same time.
    """
    # A list, since it is compared and then written: the caller may give a generator.
    new_targets = list(targets)
    old_targets = list_targets_in_loop(round)
    if new_targets == old_targets:
        return {}
    if round.has_fixed_targets:
        message = _(
            "A round's models can't change once it has opened. Plan a new round, or replace a "
            "broken model before anything is collected."
        )
        raise Refused(message, code="fixed")
    # Locked in the order of their ids: a target that is deleted at this moment is noticed, and two
    # owners who name the same targets do not wait for each other.
    ids = {target.pk for target in new_targets}
    rows = TargetModel.objects.filter(pk__in=ids).order_by("pk")
    if len(rows.select_for_update(of=("self",), no_key=True)) < len(ids):
        message = _("A model has been deleted. Check the round's models again.")
        raise Refused(message, code="target")
    # All rows are replaced: the position tells which target is Model A.
    round.round_targets.all().delete()
    round_targets = []
    for position, target in enumerate(new_targets):
        round_targets.append(RoundTarget(round=round, target=target, position=position))
    RoundTarget.objects.bulk_create(round_targets)
    return {
        "targets": {
            "before": [target.name for target in old_targets],
            "after": [target.name for target in new_targets],
        }
    }


def check_unchanged(targets: Sequence[TargetModel]) -> None:
    """Raise RoundError if a target has changed since it answered. Locks the targets.

    The lock keeps each target unchanged until the round is stored as opened.
    """
    rows = TargetModel.objects.filter(pk__in=[target.pk for target in targets]).order_by("pk")
    current_targets = {
        target.pk: target for target in rows.select_for_update(of=("self",), no_key=True)
    }
    for target in targets:
        # All settings are compared, since any of them may change what answers.
        if model_to_dict(current_targets[target.pk]) != model_to_dict(target):
            values = {"target": target.name}
            raise RoundError(_("%(target)s was changed at the same time. Try again.") % values)


@transaction.atomic
def register_target(
    *,
    task: Task,
    name: str,
    round: Round | None = None,
    actor: User | None = None,
    **fields: Any,
) -> TargetModel:
    """Create or update the task's target `name`, and add it to the round if one is given.

    Only the site's own commands and jobs call this, so any folder they name is allowed. Locks the
    round, then the target. Raises Refused.
    """
    if "source" in fields:
        fields["allowed_folder"] = find_outside_folder(fields["source"])
    if round is not None:
        round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    target, is_created = task.targets.get_or_create(name=name, defaults=fields)
    log_details: dict[str, Any] = {"fields": sorted(fields)}
    if not is_created:
        target, log_details = store_target_changes(target, fields)
    if round is not None:
        round_targets = list_targets_in_loop(round)
        log_details["round"] = str(round)
        if target not in round_targets:
            log_details |= set_targets(round, [*round_targets, target])
    log(actor, "target.registered" if is_created else "target.changed", target, **log_details)
    return target


def replace_target(
    *, round: Round, old_target: TargetModel, new_target: TargetModel, actor: User | None
) -> RoundTarget:
    """Replace a target of a round that has no examples yet.

    The new target must answer first, so call this outside transactions. Locks the round, then the
    targets. The log records both names and, if known, the version of each that last answered.
    Raises Refused.
    """
    _check_replaceable(round, old_target, new_target)
    try:
        # 1. Ask the new target, before any lock: it may take many seconds.
        version = ask_targets([new_target], round)[new_target.name]
    except SilentTargets as error:
        raise Refused(str(error), code="fixed") from None
    with transaction.atomic():
        # 2. Under the lock check again: somebody may have written an example by now.
        locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
        locked_round.task = round.task
        _check_replaceable(locked_round, old_target, new_target)
        entry = locked_round.round_targets.get(target=old_target)
        # 3. Exchange the target, for which the trigger on fixed targets is lifted.
        with lift_triggers(Round.objects.filter(pk=locked_round.pk)):
            RoundTarget.objects.filter(pk=entry.pk).update(target=new_target)
        # 4. Make sure that the new target is still what answered.
        check_unchanged([new_target])
        entry.target = new_target
        # 5. Log both versions, so that a reader of the data knows what people could have met.
        last_version = old_target.versions.order_by("pk").last()
        before = {"target": old_target.name, "version": last_version.digest if last_version else ""}
        after = {"target": new_target.name, "version": version}
        log(actor, "round.target_replaced", locked_round, before=before, after=after)
    return entry


def _check_replaceable(round: Round, old_target: TargetModel, new_target: TargetModel) -> None:
    if round.state not in (State.OPEN, State.PAUSED, State.CLOSED) or not round.opened_at:
        raise Refused(
            _("This round hasn't opened yet. Change the round's plan instead."),
            code="fixed",
        )
    if has_examples(round):
        raise Refused(_("This round already has examples. Plan a new round."), code="fixed")
    names = set(round.targets.values_list("name", flat=True))
    if old_target.name not in names:
        raise Refused(
            _("%(name)s isn't a model of this round.") % {"name": old_target.name}, code="fixed"
        )
    if new_target.task_id != round.task_id or new_target.name in names:
        raise Refused(_("Choose a different model from this task."), code="fixed")
