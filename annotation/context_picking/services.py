"""Writes to assignments. The locks are listed in docs/locking.md."""

import random
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import questions, selectors
from annotation.context_picking.arms import draw_next_arm
from annotation.context_picking.challenges import draw_challenge
from annotation.context_picking.selectors import (
    count_contexts_by_cell,
    count_evidence_by_cell,
    count_goal_uses,
    draw_parent,
    exclude_decided_contexts,
    is_case_decided,
    sort_contexts_by_use,
)
from annotation.models import Assignment, Example, GatePass, ShownExample
from annotation.open_round import describe_closed_round
from annotation.refusals import NoContext, NotAllowed, RoundClosed, UnsupportedField
from annotation.rules.context_draw import draw_context
from annotation.rules.writing_conditions import draw_condition
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator
from tasks.arms import MACHINES
from tasks.config.schema import TaskConfig
from tasks.contexts.media.services import list_digests, touch_media
from tasks.models import Context, Round, Task


def pass_gate(*, annotator: Annotator, task: Task) -> None:
    """Record that the annotator accepts the task's content warning. Takes no lock."""
    GatePass.objects.get_or_create(annotator=annotator, task=task)


def check_supported_inputs(config: TaskConfig) -> None:
    """Check that pages can show all inputs of the configuration. Raises UnsupportedField."""
    if component := config.unsupported_input:
        message = _(
            "This task asks for “%(title)s” (%(type)s), which isn't supported "
            "yet. Choose another task."
        )
        raise UnsupportedField(message % {"title": component.title, "type": component.type})


def assign(
    *, annotator: Annotator, round: Round, is_fresh: bool = False, is_minimal_edit: bool = False
) -> Assignment:
    """Return the annotator's assignment in the round, creating one if needed.

    is_fresh: whether to replace the current one. is_minimal_edit: whether a new one is to change
    an earlier example. Otherwise, a new assignment gets the least used context and goal, or a
    context drawn by expected information if the task's configuration says so. Where people decide,
    is_fresh and is_minimal_edit are ignored: a case is theirs until they have decided it, and
    never again. In a mixed round, a new assignment also gets an arm, and changes no earlier
    example.

    Locks the round, so that simultaneous requests get different contexts. Raises RoundClosed,
    NoContext, UnsupportedField.
    """
    check_supported_inputs(round.task.config)
    current = selectors.find_current_assignment(annotator, round)
    if current and _is_kept(current, is_fresh):
        return current
    with transaction.atomic():
        # Looked for once more under the lock: another tab may have taken one meanwhile.
        locked_round = _lock_open_round(round.pk)
        current = selectors.find_current_assignment(annotator, locked_round)
        if current and _is_kept(current, is_fresh):
            return current
        if current:
            # Left before the next one is made, because assignment_one_current allows one.
            current.left_at = timezone.now()
            current.save(update_fields=["left_at"])
        # An edited text would be in no arm, so in a mixed round it would be a way to choose.
        if is_minimal_edit and not _is_decision(locked_round) and not locked_round.arm_shares:
            return _assign_edit(annotator, locked_round)
        return Assignment.objects.create(
            annotator=annotator,
            round=locked_round,
            **_pick_context(locked_round, annotator, current),
            goal=_draw_goal(locked_round),
            challenge=draw_challenge(locked_round),
            **draw_next_arm(locked_round, annotator)._asdict(),
            writing_condition=draw_condition(
                questions.find_writing_plan(annotator, locked_round), random.SystemRandom().random
            ),
        )


def _is_decision(round: Round) -> bool:
    return round.task.config.verdict.type == "decide"


def _is_kept(assignment: Assignment, is_fresh: bool) -> bool:
    """Return whether the person goes on with the assignment. is_fresh: see `assign`."""
    # Who may skip cases would choose the easy ones, so that no request changes a case.
    if _is_decision(assignment.round):
        return not is_case_decided(assignment)
    return not is_fresh


def _lock_open_round(pk: int) -> Round:
    """Lock the round and return it. Raises RoundClosed unless it is open."""
    # Whoever assigns here waits, and then counts this assignment.
    round = Round.objects.select_for_update(of=("self",)).select_related("task").get(pk=pk)
    if round.state != Round.State.OPEN:
        raise RoundClosed(describe_closed_round(round))
    return round


def _pick_context(
    round: Round, annotator: Annotator, previous_assignment: Assignment | None
) -> dict[str, Any]:
    """Return the columns of an assignment that say which context it has, and how it was drawn.

    Call it with the round locked. Raises NoContext.
    """
    contexts = round.contexts.filter(is_retired=False)
    if _is_decision(round):
        contexts = exclude_decided_contexts(contexts, annotator)
    previous_id = previous_assignment.context_id if previous_assignment else None
    if round.task.config.context_picking == "information":
        return _draw_context(round, contexts, previous_id)
    # Two, so that a person who asks for another context gets another one where there is one.
    candidates = list(sort_contexts_by_use(contexts)[:2])
    if not candidates:
        raise _build_no_context(round)
    if len(candidates) == 2 and candidates[0].pk == previous_id:
        return {"context": candidates[1]}
    return {"context": candidates[0]}


def _draw_context(
    round: Round, contexts: QuerySet[Context], previous_id: int | None
) -> dict[str, Any]:
    """Draw one of the contexts by expected information, another one than before if there is one.

    Returns and raises as `_pick_context`. Three queries, and one more if the previous context is
    the only one; the evidence is cached.
    """
    # Excluded before the draw: drawing once more would change the probabilities.
    choices = contexts.exclude(pk=previous_id) if previous_id else contexts
    context_counts = count_contexts_by_cell(choices)
    if not context_counts and previous_id:
        choices = contexts
        context_counts = count_contexts_by_cell(choices)
    if not context_counts:
        raise _build_no_context(round)
    draw = draw_context(context_counts, count_evidence_by_cell(round))
    return {
        "context": choices.filter(tag=draw.cell).order_by("pk")[draw.position],
        "context_probability": draw.probability,
        "context_choices": draw.choices,
    }


def _build_no_context(round: Round) -> NoContext:
    message = _("No texts are left in round %(number)d. Come back when the owners add some.")
    return NoContext(message % {"number": round.number})


def _draw_goal(round: Round, previous_goal: str = "") -> str:
    """Draw the least assigned goal; ties are broken at random.

    previous_goal: avoided if possible.
    """
    choices = [value for value in round.task.config.goal_choices if value != previous_goal]
    if not choices:
        return previous_goal
    uses = count_goal_uses(round)
    fewest = min(uses.get(value, 0) for value in choices)
    return random.choice([value for value in choices if uses.get(value, 0) == fewest])


def _assign_edit(annotator: Annotator, round: Round) -> Assignment:
    """Assign an example of an earlier round to change. Raises NoContext.

    Call it with the round locked.
    """
    parent = draw_parent(annotator, round)
    if parent is None:
        raise NoContext(
            _("Examples to edit appear after an earlier round is released. Write your own instead.")
        )
    note_shown_examples(annotator=annotator, examples=[parent.pk], way=ShownExample.Way.EDIT)
    return Assignment.objects.create(
        annotator=annotator,
        round=round,
        context=_copy_context(parent.context, round),
        goal=_draw_goal(round, previous_goal=parent.goal),
        parent=parent,
        challenge=draw_challenge(round),
    )


def _copy_context(context: Context, round: Round) -> Context:
    """Return the locked round's own copy of an earlier round's context, creating it if missing.

    A new copy is retired from the start. It is assigned only to people who edit an example about
    the original.
    """
    copied_values = {name: getattr(context, name) for name in ("fields", "tag", "metadata")}
    return Context.objects.get_or_create(
        round=round, digest=context.digest, defaults={**copied_values, "is_retired": True}
    )[0]


def assign_next(*, annotator: Annotator, round: Round | None, requested_kind: str) -> Assignment:
    """Assign the kind of work that a person requests.

    requested_kind: `current` for their assignment, or another `context`, `goal` or `edit`. Raises
    RoundClosed (also if round is None), NoContext, UnsupportedField.
    """
    if round is None:
        raise RoundClosed(_("No round is open. Come back when the next one opens."))
    is_minimal_edit = requested_kind == "edit"
    is_fresh = is_minimal_edit or requested_kind == "context"
    assignment = assign(
        annotator=annotator, round=round, is_fresh=is_fresh, is_minimal_edit=is_minimal_edit
    )
    return change_goal(assignment=assignment) if requested_kind == "goal" else assignment


def assign_chosen(*, annotator: Annotator, context: Context, goal: str) -> Assignment:
    """Assign a context and a goal that the site chose for one of its own programs.

    In a mixed round it is in the arm of machines. Their other assignment in the round ends. Locks
    the round. Raises RoundClosed.
    """
    with transaction.atomic():
        round = _lock_open_round(context.round_id)
        arm = MACHINES if round.arm_shares else ""
        current = selectors.find_current_assignment(annotator, round)
        if current and (current.context_id, current.goal, current.arm) == (context.pk, goal, arm):
            return current
        if current:
            # As in `assign`: the constraint allows one current assignment.
            current.left_at = timezone.now()
            current.save(update_fields=["left_at"])
        return Assignment.objects.create(
            annotator=annotator, round=round, context=context, goal=goal, arm=arm
        )


def assign_sent_back(*, annotator: Annotator, example: Example) -> Assignment:
    """Assign a sent-back example to its author, with its context and goal.

    Their other current assignment in the round ends. Locks the round. Raises NotAllowed,
    RoundClosed.
    """
    with transaction.atomic():
        round = _lock_open_round(example.round_id)
        # Under the lock, as the reviewer may have decided otherwise since the page was shown.
        if not selectors.is_sent_back(example):
            raise NotAllowed(_("A reviewer has changed the decision. There's nothing left to fix."))
        current = selectors.find_current_assignment(annotator, round)
        if current and current.mends_id == example.pk:
            return current
        if current:
            # As in `assign`: the constraint allows one current assignment.
            current.left_at = timezone.now()
            current.save(update_fields=["left_at"])
        parent, support = example.parent, example.support or {}
        return Assignment.objects.create(
            annotator=annotator,
            round=round,
            context=example.context,
            # As the example that it replaces: how its context was drawn does not change.
            context_probability=example.context_probability,
            context_choices=example.context_choices,
            goal=example.goal,
            # Only another person's text is one to change minimally; one's own was edited freely.
            parent=parent if parent and parent.annotator_id != annotator.pk else None,
            challenge=example.challenge,
            mends=example,
            # A corrected text stays in its arm, and is no further draw.
            arm=support.get("arm", ""),
            arm_probability=support.get("arm_probability"),
        )


def change_goal(*, assignment: Assignment) -> Assignment:
    """Draw another goal for the same context. Locks the round. Raises RoundClosed."""
    with transaction.atomic():
        round = _lock_open_round(assignment.round_id)
        assignment.goal = _draw_goal(round, previous_goal=assignment.goal)
        # The draft was written for the former goal.
        assignment.draft_asked_at = None
        assignment.save(update_fields=["goal", "draft_asked_at"])
    return assignment


def use_saved_text_as_draft(
    *, assignment: Assignment, goal: str, inputs: Mapping[str, Any]
) -> Assignment:
    """Make a text saved in practice the draft, with the goal for which it was written.

    If the task no longer has that goal, the assignment's goal stays. Locks the round. Raises
    RoundClosed.
    """
    with transaction.atomic():
        round = _lock_open_round(assignment.round_id)
        if goal in round.task.config.goal_choices:
            assignment.goal = goal
            assignment.save(update_fields=["goal"])
        save_draft(assignment=assignment, inputs=inputs)
    return assignment


def save_draft(*, assignment: Assignment, inputs: Mapping[str, Any]) -> None:
    """Save the text typed so far; the last save wins.

    After the round has closed, `draft_saved_at` is not changed, because it shows who was
    writing at that time.
    """
    # Files that a draft names must not be deleted as unused ones.
    touch_media(task=assignment.round.task, digests=list_digests(inputs.values()))
    assignment.draft = dict(inputs)
    if assignment.round.state != Round.State.CLOSED:
        assignment.draft_saved_at = timezone.now()
    # No other column: another tab may have ended the assignment since it was read.
    assignment.save(update_fields=["draft", "draft_saved_at"])
