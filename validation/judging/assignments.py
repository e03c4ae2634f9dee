"""The examples that assignments give to a validator, and people's progress.

An assignment sets how much of a round's queue a person judges. The examples of a member's share are
reserved for that member until the due date. Answers to gold items count like votes; otherwise the
numbers would reveal which items are gold.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.models import Example, ShownExample
from core.accounts.models import Annotator, User
from core.days import get_today
from tasks.members.assignments.rules import ALL_POSITIONS, AssignmentProgress, Span, compute_spans
from tasks.members.assignments.selectors import (
    PERMISSION_BY_KIND,
    build_span_condition,
    describe_done_count,
    find_applicable_assignment,
    select_current_assignments,
)
from tasks.models import Duty, Round, Task, TaskMember
from tasks.role_permissions import PERMISSIONS_BY_ROLE
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.judging.gold_pause import lock_answers
from validation.judging.queue import ReservedSpan, select_judged_rounds, select_rounds_with_last
from validation.models import GoldAnswer, JudgeLease, QueueItem, Skip, Validation


@dataclass(frozen=True)
class RoundPart:
    """The part of a round's queue that is open to a validator."""

    round: int
    validator: Annotator
    assignment: Duty | None = None
    spans: Sequence[Span] = (ALL_POSITIONS,)
    reserved_spans: Sequence[ReservedSpan] = ()
    """Spans reserved for others; there, only places that these people cannot take are free."""

    def has_room(self) -> bool:
        """Return whether the validator may get another example, in the transaction that leases it.

        If a number limits the assignment, locks the validator, so that two tabs get no more.
        """
        # The usual case, which needs neither a lock nor a query.
        if self.assignment is None or self.assignment.amount is None:
            return True
        # A second tab waits here, and then counts the lease of the first.
        lock_answers(self.validator)
        now = timezone.now()
        # Leased examples count too, because they may still be answered.
        leases = JudgeLease.objects.filter(
            build_span_condition(self.assignment, "example__round"), validator=self.validator
        )
        example_count = (
            _count_judged(self.assignment, self.validator) + leases.filter(until__gt=now).count()
        )
        return example_count < self.assignment.amount

    @property
    def progress_text(self) -> str:
        """Describe the validator's progress with their assignment here; empty without one."""
        return (
            describe_done_count(self.assignment, _count_judged(self.assignment, self.validator))
            if self.assignment
            else ""
        )

    @property
    def is_done(self) -> bool:
        """Return whether the validator has judged as many examples as requested."""
        max_count = self.assignment.amount if self.assignment else None
        return max_count is not None and _count_judged(self.assignment, self.validator) >= max_count  # type: ignore[arg-type]


PartFinder = Callable[[int], RoundPart]
"""A function that returns a validator's part of a round, given the round's id."""


def build_part_finder(validator: Annotator, task: Task) -> PartFinder:
    """Return a function that finds the part of a round that is open to the validator.

    Its first call makes one query, which serves all rounds.
    """
    judge_assignments = _select_judge_assignments(task)

    def find_part(round: int) -> RoundPart:
        assignments = list(judge_assignments)  # read only once
        shares = _find_shares(assignments, round)
        assignment = find_applicable_assignment(assignments, round, validator.user_id)
        # People with a share get its places, and all others the remaining ones.
        if assignment and assignment in shares:
            return RoundPart(round, validator, assignment, shares[assignment])
        return RoundPart(
            round,
            validator,
            assignment,
            reserved_spans=_find_reserved_spans(shares, excluded_judge=validator),
        )

    return find_part


def build_whole_round_finder(validator: Annotator) -> PartFinder:
    """Return a function that opens every round as a whole to the validator.

    It is for tasks without assignments to judge.
    """
    return lambda round: RoundPart(round, validator)


def has_finished_assignment(validator: Annotator, task: Task) -> bool:
    """Return whether the validator has finished their assignment in some round of the task."""
    round_part = build_part_finder(validator, task)
    return any(round_part(round.pk).is_done for round in select_judged_rounds(task))


def _select_judge_assignments(task: Task) -> QuerySet[Duty]:
    assignments = select_current_assignments(task).filter(kind=Duty.Kind.JUDGE)
    return assignments.select_related("person__annotator").order_by("pk")


def _find_shares(assignments: Collection[Duty], round: int) -> dict[Duty, Sequence[Span]]:
    """Return the spans of queue keys of each share of a round.

    Shares of all rounds apply if the round has none of its own.
    """
    for round_id in (round, None):
        round_assignments = [
            assignment
            for assignment in assignments
            if assignment.share and assignment.round_id == round_id
        ]
        if round_assignments:
            # All shares of a round have the same overlap (`tasks.members.assignments.services`).
            share_sizes = [assignment.share or 0 for assignment in round_assignments]
            return dict(
                zip(
                    round_assignments,
                    compute_spans(share_sizes, round_assignments[0].overlap),
                    strict=True,
                )
            )
    return {}


def _find_reserved_spans(
    shares: Mapping[Duty, Sequence[Span]], excluded_judge: Annotator
) -> list[ReservedSpan]:
    """Return the spans reserved for other people who may judge, until the end of their due date."""
    today = get_today()
    reserved_spans: list[ReservedSpan] = []
    for assignment, spans in shares.items():
        assert assignment.person is not None  # each share belongs to a person
        is_over = assignment.due_on is not None and assignment.due_on < today
        if (
            assignment.person_id != excluded_judge.user_id
            # Others may take the places of an inactive account, because nobody can judge with it.
            and assignment.person.is_active
            and not is_over
        ):
            judge = assignment.person.annotator.pk
            reserved_spans += [ReservedSpan(judge, *span) for span in spans]
    return reserved_spans


def _count_judged(assignment: Duty, validator: Annotator) -> int:
    """Count the examples, including gold items, that the validator has judged for the assignment.

    Only examples of the assignment's rounds count, and only votes cast since it was set.
    """
    own_filter = {"validator": validator, "created_at__gte": assignment.set_at}
    vote_count = Validation.objects.filter(
        build_span_condition(assignment, "example__round"), **own_filter
    ).count()
    return (
        vote_count
        + GoldAnswer.objects.filter(
            build_span_condition(assignment, "gold__example__round"), **own_filter
        ).count()
    )


# People's progress


@dataclass(frozen=True)
class AssignmentRow:
    """An assignment with the amount of work done for it."""

    assignment: Duty
    progress: AssignmentProgress

    @property
    def state(self) -> str:
        """Return `over`, `done`, `late` or `open`."""
        return self.progress.get_state(get_today())


def list_assignment_rows(
    assignments: QuerySet[Duty], viewer: User | None = None
) -> list[AssignmentRow]:
    """Return the progress of each assignment. Three queries for any number of assignments.

    For an assignment to everybody, counts the work of `viewer`. Without a viewer, counts the work
    of all people, and gives no required number.
    """
    assignment_list = list(
        assignments.select_related("task", "round", "person__annotator").annotate(
            votes=_build_count_subquery(Validation, "validator", "example__round", viewer),
            gold=_build_count_subquery(GoldAnswer, "validator", "gold__example__round", viewer),
            written=_build_count_subquery(Example, "annotator", "round", viewer, retracted_at=None),
        )
    )
    left_counts = _count_left_examples(
        [assignment for assignment in assignment_list if assignment.share]
    )
    return [
        _build_row(assignment, left_counts.get(assignment.pk), is_mine=viewer is not None)
        for assignment in assignment_list
    ]


def list_assignments(user: User) -> list[AssignmentRow]:
    """Return the person's assignments, their own and those to all members, by due date.

    Assignments to everybody are included for visible tasks, if a round accepts such work now or the
    person has begun.
    """
    roles = TaskMember.objects.select_effective().filter(user=user).values_list("task", "role")
    role_by_task = dict(roles)
    tasks_by_kind = {
        kind: [
            task for task, role in role_by_task.items() if permission in PERMISSIONS_BY_ROLE[role]
        ]
        for kind, permission in PERMISSION_BY_KIND.items()
    }
    condition = Q(person=user)
    for kind, tasks in tasks_by_kind.items():
        condition |= Q(person=None, kind=kind, task__in=tasks)
    condition |= Q(person=None, task__is_visible=True) & ~Q(task__in=list(role_by_task))
    rows = list_assignment_rows(
        Duty.objects.select_current().filter(condition).annotate(is_live=_build_live_condition()),
        user,
    )
    relevant_rows = [
        row
        for row in rows
        if row.assignment.task_id in role_by_task or row.progress.done_count or _is_open(row)
    ]
    return sorted(relevant_rows, key=build_due_date_key)


def _build_live_condition() -> Q:
    """Return the condition that a round of the assignment's task accepts such work now."""
    rounds = Round.objects.filter(task=OuterRef("task"))
    writing, judging = (
        rounds.filter(state=Round.State.OPEN),
        rounds.filter(state__in=JUDGED_ROUND_STATES),
    )
    return Q(Exists(writing), kind=Duty.Kind.WRITE) | Q(Exists(judging), kind=Duty.Kind.JUDGE)


def _is_open(row: AssignmentRow) -> bool:
    assignment: Any = row.assignment
    return assignment.is_live and not assignment.task.is_simulated and row.state in ("open", "late")


def _build_row(assignment: Any, left_count: int | None, *, is_mine: bool) -> AssignmentRow:
    done_count = (
        assignment.written
        if assignment.kind == Duty.Kind.WRITE
        else assignment.votes + assignment.gold
    )
    amount = assignment.amount if left_count is None else done_count + left_count
    if assignment.person_id is None and not is_mine:
        amount = None
    is_over = bool(assignment.ended_at) or _is_over(assignment.round, assignment.kind)
    return AssignmentRow(
        assignment, AssignmentProgress(done_count, amount, assignment.due_on, is_over)
    )


def _is_over(round: Round | None, kind: str) -> bool:
    if round is None:
        return False
    if kind == Duty.Kind.JUDGE:
        return round.state == Round.State.RELEASED
    return round.state in Round.FINISHED_STATES


def _build_count_subquery(
    model: Any, person_field: str, round: str, viewer: User | None, **conditions: Any
) -> Any:
    """Count rows in the assignment's rounds since it was set.

    They are the rows of `viewer`. Without a viewer, they are those of the assigned person. For an
    assignment to everybody, they are then those of all people.
    """
    # An assignment for everybody names no person, so each row matches by its own author.
    person = viewer.pk if viewer else Coalesce(OuterRef("person"), F(f"{person_field}__user"))
    rows = model.objects.filter(
        **{f"{round}__task": OuterRef("task"), "created_at__gte": OuterRef("set_at"), **conditions},
        # An assignment for all rounds names no round, so each row matches by its own round.
        **{round: Coalesce(OuterRef("round"), F(round)), f"{person_field}__user": person},
    ).order_by()
    # A plain function, because `Count` would group by row and count 1 for each.
    return Subquery(rows.annotate(n=Func(F("pk"), function="COUNT")).values("n"))


def _count_left_examples(shares: Sequence[Duty]) -> dict[int, int]:
    """Return how many examples of a member's share they can judge now, by assignment id.

    Left out are shares that examples may still enter, because no query can count these. Three
    queries.
    """
    tasks = {assignment.task_id for assignment in shares}
    if not tasks:
        return {}
    current_assignments = Duty.objects.select_current().filter(task__in=tasks, share__isnull=False)
    shared_assignments = list(current_assignments.order_by("pk"))
    unknown_ids: set[int] = set()
    conditions: dict[int, Q] = {}
    for round in select_rounds_with_last(Round.objects.filter(task__in=tasks)):
        round_assignments = [
            assignment for assignment in shared_assignments if assignment.task_id == round.task_id
        ]
        for assignment, condition in _find_shares(round_assignments, round.pk).items():
            # New examples may or may not belong to the share, so its remainder is unknown.
            if round.last and round.last > round.seen:
                unknown_ids.add(assignment.pk)
            for span in condition:
                conditions[assignment.pk] = conditions.get(assignment.pk, Q()) | Q(
                    round=round, key__range=span
                )
    conditions_by_assignment = {
        assignment.pk: conditions[assignment.pk]
        for assignment in shares
        if assignment.pk in conditions.keys() - unknown_ids
    }
    people = {assignment.pk: assignment.person_id for assignment in shares}
    waiting_items = QueueItem.objects.filter(free__gt=0, example__retracted_at=None)
    # One query for all assignments; the column's name contains the assignment's id.
    aggregates = {
        f"of_{assignment_id}": Count(
            "pk", filter=condition & _build_untouched_condition(people[assignment_id])
        )
        for assignment_id, condition in conditions_by_assignment.items()
    }
    return {int(name[3:]): count for name, count in waiting_items.aggregate(**aggregates).items()}


def _build_untouched_condition(person: int | None) -> Q:
    """Return the condition that the person has not written, seen, judged or skipped an item."""
    own_filter = {"example": OuterRef("pk"), "validator__user": person}
    shown_elsewhere = ShownExample.objects.filter(example=OuterRef("pk"), annotator__user=person)
    return Q(
        ~Exists(Validation.objects.filter(**own_filter)),
        ~Exists(Skip.objects.filter(**own_filter)),
        ~Exists(shown_elsewhere),
        ~Q(author__user=person) | Q(author=None),
    )


def build_due_date_key(row: AssignmentRow) -> date:
    """Return a sort key by due date; assignments without one come last."""
    return row.assignment.due_on or date.max
