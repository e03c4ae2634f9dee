"""Plan rounds and change their plans."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max, ProtectedError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.services import log
from core.data.rows import save_changed_fields
from core.errors import Refused
from tasks.contexts.media.services import delete_unreferenced_file, list_context_digests
from tasks.contexts.services import store_contexts
from tasks.models import Round, TargetModel, Task
from tasks.permissions import can_own
from tasks.rounds.loop import set_targets
from tasks.rounds.states import close_round_if_due
from tasks.rounds.target_triggers import lift_triggers
from tasks.selectors import PLANNED_STATES

NO_CONTEXTS_MESSAGE = gettext_noop(
    "Round %(number)d has no texts that you can copy. Choose another round."
)


@transaction.atomic
def plan_round(
    *,
    task: Task,
    actor: User | None,
    fields: Mapping[str, Any],
    targets: Iterable[TargetModel] = (),
    parents: Iterable[Round] = (),
    contexts_of: Round | None = None,
) -> Round:
    """Create the task's next round as a draft, optionally with another round's contexts.

    Locks the task, so that parallel requests get different numbers. Raises Refused for an arena, or
    if there are no contexts to copy.
    """
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if task.config.kind == "arena":
        raise Refused(_("Arenas don't have rounds. Import comparisons instead."), code="arena")
    # Under the task's lock, so that two owners get two numbers.
    last_number = task.rounds.aggregate(last=Max("number"))["last"] or 0
    round = Round.objects.create(task=task, number=last_number + 1, **fields)
    log_details = set_targets(round, targets)
    round.parents.set(parents)
    _copy_contexts(contexts_of, round, actor)
    log(actor, "round.created", round, fields=sorted(fields), **log_details)
    return round


def _copy_contexts(source: Round | None, round: Round, actor: User | None) -> None:
    """Copy the contexts that are not retired from another round; skip those that exist already.

    Raises Refused if all are retired, as in imported history.
    """
    if source is None:
        return
    # Imported history has only retired contexts: they were written about elsewhere.
    if not source.contexts.filter(is_retired=False).exists():
        raise Refused(
            _(NO_CONTEXTS_MESSAGE) % {"number": source.number},
            code="contexts_of",
            field="contexts_of",
        )
    rows = (
        {**context.fields, "tag": context.tag, "metadata": context.metadata}
        for context in source.contexts.filter(is_retired=False).order_by("pk").iterator()
    )
    file_name = f"(texts of round {source.number})"
    store_contexts(round=round, rows=rows, file_name=file_name, actor=actor)


@transaction.atomic
def change_round(
    *,
    round: Round,
    actor: User,
    fields: Mapping[str, Any],
    targets: Iterable[TargetModel] | None = None,
    parents: Iterable[Round] | None = None,
    contexts_of: Round | None = None,
) -> Round:
    """Change a round's plan, and close the round if its new budget is reached. Locks the round.

    Omitted arguments keep their values. Once the round has been opened, its rule does not change
    and no contexts are copied. Raises Refused if the round was released, or if the targets of an
    opened round would change.
    """
    locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    # Its data is published as it was collected, by this plan.
    if locked_round.state == Round.State.RELEASED:
        raise Refused(
            _("This round is released and can't change. Plan a new round instead."), code="released"
        )
    # The rule decided what is stored as fooling, so it stays once people have written.
    fixed_fields = ("rule",) if locked_round.opened_at else ()
    changes = {}
    for name, value in fields.items():
        if name not in fixed_fields:
            changes[name] = value
    log_details: dict[str, Any] = {"fields": save_changed_fields(locked_round, changes)}
    if targets is not None:
        log_details |= set_targets(locked_round, targets)
    if not locked_round.opened_at:
        _copy_contexts(contexts_of, locked_round, actor)
    if parents is not None:
        locked_round.parents.set(parents)
    log(actor, "round.changed", locked_round, **log_details)
    # A smaller budget may be reached already.
    return close_round_if_due(round=locked_round)


@transaction.atomic
def add_target_to_planned_round(*, target: TargetModel, actor: User) -> Round | None:
    """Add a target to the first planned round without targets; return the round or None.

    Locks the planned rounds, so that only one of two targets is added, and none to a round that is
    being opened.
    """
    planned_rounds = target.task.rounds.filter(state__in=PLANNED_STATES).order_by("number")
    # Locked one after the other: of two targets that are registered at once, one joins the round,
    # and neither joins one that is being opened.
    for round in planned_rounds.select_for_update(of=("self",)):
        if not round.round_targets.exists():
            log(actor, "round.changed", round, fields={}, **set_targets(round, [target]))
            return round
    return None


@transaction.atomic
def delete_round(*, round: Round, actor: User) -> None:
    """Delete a round in which nothing was written, with its contexts. Locks the round.

    Raises Refused if the actor does not own the task, or if something was written. Also raises it
    while the round is live, because people may be writing.
    """
    locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    message = _(
        "You can delete a round only before it opens and while it has no examples. Close the "
        "round instead."
    )
    # People may be writing in a live round, and nothing tells until they send it.
    live_states = (Round.State.OPEN, Round.State.PAUSED)
    if locked_round.state in live_states or not can_own(actor, locked_round.task):
        raise Refused(message, code="round")
    log(actor, "round.deleted", locked_round)
    # Read before the contexts go with the round: afterwards nobody knows which files they named.
    fields = list(locked_round.contexts.values_list("fields", flat=True))
    try:
        # The trigger would refuse to delete the targets of a round that was opened once.
        with lift_triggers(Round.objects.filter(pk=locked_round.pk)):
            locked_round.delete()
    except ProtectedError:  # an example, or a dataset
        raise Refused(message, code="round") from None
    # After the contexts, since a file that one of them still names would be kept.
    for digest in list_context_digests(fields):
        delete_unreferenced_file(task=round.task, digest=digest)
