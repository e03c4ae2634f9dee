"""What a validator may be given by the assignments of a task, and how far people are with them.

An assignment says how much of a round's queue, and no more; the places of a member's share are kept
for that member until the day on which they are due. What is answered to gold items counts like
votes: otherwise the numbers would tell which items are gold.
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
from core.days import today
from tasks.members.assignments.rules import EVERY, Span, Standing, spans
from tasks.members.assignments.selectors import MAY, applying, progress_words, standing_of, within
from tasks.models import Duty, Round, Task, TaskMember
from tasks.roles import PERMISSIONS_BY_ROLE
from validation.decisions.awaited import JUDGED_STATES
from validation.judging.gold import lock_answers
from validation.judging.queue import ReservedSpan, judged_rounds, rounds_with_last
from validation.models import GoldAnswer, JudgeLease, QueueItem, Skip, Validation


@dataclass(frozen=True)
class Part:
    """The part of a round's queue that is open to a validator."""

    round: int
    validator: Annotator
    assignment: Duty | None = None
    spans: Sequence[Span] = (EVERY,)
    kept: Sequence[ReservedSpan] = ()
    """For others; there a place is free once it is none of theirs."""

    def has_room(self) -> bool:
        """Return whether the validator may get another example, in the transaction that leases it.

        If a number limits the assignment, locks the validator, so that two tabs get no more.
        """
        # Mostly so; then there is neither a lock nor a query.
        if self.assignment is None or self.assignment.amount is None:
            return True
        # Of two tabs the second waits here, and counts the lease of the first.
        lock_answers(self.validator)
        now = timezone.now()
        # Leased examples count too, since they may still be answered.
        leases = JudgeLease.objects.filter(
            within(self.assignment, "example__round"), validator=self.validator
        )
        total = _count_given(self.assignment, self.validator) + leases.filter(until__gt=now).count()
        return total < self.assignment.amount

    @property
    def words(self) -> str:
        """Describe the validator's progress with their assignment here; empty without one."""
        return (
            progress_words(self.assignment, _count_given(self.assignment, self.validator))
            if self.assignment
            else ""
        )

    @property
    def is_done(self) -> bool:
        """Return whether the validator has judged as many examples as requested."""
        most = self.assignment.amount if self.assignment else None
        return most is not None and _count_given(self.assignment, self.validator) >= most  # type: ignore[arg-type]


Parts = Callable[[int], Part]
"""By a round's id, what somebody may be given of it."""


def parts_of(validator: Annotator, task: Task) -> Parts:
    """Return the part of each round that is open to the validator, by round id.

    One query for all rounds.
    """
    judge_assignments = _select_judging(task)

    def part(round: int) -> Part:
        assignments = list(judge_assignments)  # read once
        shares = _shares_of(assignments, round)
        assignment = applying(assignments, round, validator.user_id)
        # People with a share get its places, all others what the shares leave.
        if assignment and assignment in shares:
            return Part(round, validator, assignment, shares[assignment])
        return Part(round, validator, assignment, kept=_find_reserved(shares, but=validator))

    return part


def whole_rounds(validator: Annotator) -> Parts:
    """Return every round as a whole, by id: for tasks without assignments to judge."""
    return lambda round: Part(round, validator)


def is_asked_no_more(validator: Annotator, task: Task) -> bool:
    """Return whether the validator has finished their assignment in some round of the task."""
    round_part = parts_of(validator, task)
    return any(round_part(round.pk).is_done for round in judged_rounds(task))


def _select_judging(task: Task) -> QuerySet[Duty]:
    assignments = standing_of(task).filter(kind=Duty.Kind.JUDGE)
    return assignments.select_related("person__annotator").order_by("pk")


def _shares_of(assignments: Collection[Duty], round: int) -> dict[Duty, Sequence[Span]]:
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
            # All shares of a round have one overlap (`tasks.members.assignments.services`).
            shares = [assignment.share or 0 for assignment in round_assignments]
            return dict(
                zip(round_assignments, spans(shares, round_assignments[0].overlap), strict=True)
            )
    return {}


def _find_reserved(shares: Mapping[Duty, Sequence[Span]], but: Annotator) -> list[ReservedSpan]:
    """Return the spans reserved for other people who may judge, until the end of their due date."""
    day = today()
    kept_places: list[ReservedSpan] = []
    for assignment, places in shares.items():
        assert assignment.person is not None  # a share has a person
        is_over = assignment.due_on is not None and assignment.due_on < day
        if assignment.person_id != but.user_id and assignment.person.is_active and not is_over:
            judge = assignment.person.annotator.pk
            kept_places += [ReservedSpan(judge, *span) for span in places]
    return kept_places


def _count_given(assignment: Duty, validator: Annotator) -> int:
    """Count the examples that the validator has judged since the assignment was set, with gold."""
    own_filter = {"validator": validator, "created_at__gte": assignment.set_at}
    votes = Validation.objects.filter(within(assignment, "example__round"), **own_filter).count()
    return (
        votes
        + GoldAnswer.objects.filter(
            within(assignment, "gold__example__round"), **own_filter
        ).count()
    )


# How far people are


@dataclass(frozen=True)
class Progress:
    """An assignment with the amount of work done for it."""

    assignment: Duty
    standing: Standing

    @property
    def state(self) -> str:
        """Return `over`, `done`, `late` or `open`."""
        return self.standing.state(today())


def progress_of(assignments: QuerySet[Duty], me: User | None = None) -> list[Progress]:
    """Return the progress of each assignment. Three queries for any number of assignments.

    For assignments to everybody: the progress of `me`, or else of all people together, without an
    end.
    """
    rows = list(
        assignments.select_related("task", "round", "person__annotator").annotate(
            votes=_count(Validation, "validator", "example__round", me),
            gold=_count(GoldAnswer, "validator", "gold__example__round", me),
            written=_count(Example, "annotator", "round", me, retracted_at=None),
        )
    )
    left = _count_left([assignment for assignment in rows if assignment.share])
    return [
        _progress(assignment, left.get(assignment.pk), is_mine=me is not None)
        for assignment in rows
    ]


def assignments_of(user: User) -> list[Progress]:
    """Return the person's assignments, their own and those to all members, by due date.

    For a task that everybody can see, includes those to everybody, if its round accepts such work
    now or once the person has begun.
    """
    roles = TaskMember.objects.standing().filter(user=user).values_list("task", "role")
    role_by_task = dict(roles)
    able = {
        kind: [task for task, role in role_by_task.items() if may in PERMISSIONS_BY_ROLE[role]]
        for kind, may in MAY.items()
    }
    condition = Q(person=user)
    for kind, tasks in able.items():
        condition |= Q(person=None, kind=kind, task__in=tasks)
    condition |= Q(person=None, task__is_visible=True) & ~Q(task__in=list(role_by_task))
    progresses = progress_of(
        Duty.objects.standing().filter(condition).annotate(is_live=_is_live()), user
    )
    relevant = [
        progress
        for progress in progresses
        if progress.assignment.task_id in role_by_task
        or progress.standing.done
        or _is_open(progress)
    ]
    return sorted(relevant, key=due_before)


def _is_live() -> Q:
    """Return the condition that a round of the assignment's task accepts such work now."""
    rounds = Round.objects.filter(task=OuterRef("task"))
    writing, judging = rounds.filter(state=Round.State.OPEN), rounds.filter(state__in=JUDGED_STATES)
    return Q(Exists(writing), kind=Duty.Kind.WRITE) | Q(Exists(judging), kind=Duty.Kind.JUDGE)


def _is_open(progress: Progress) -> bool:
    assignment: Any = progress.assignment
    return (
        assignment.is_live
        and not assignment.task.is_simulated
        and progress.state in ("open", "late")
    )


def _progress(assignment: Any, left_count: int | None, *, is_mine: bool) -> Progress:
    done_count = (
        assignment.written
        if assignment.kind == Duty.Kind.WRITE
        else assignment.votes + assignment.gold
    )
    amount = assignment.amount if left_count is None else done_count + left_count
    if assignment.person_id is None and not is_mine:
        amount = None
    is_over = bool(assignment.ended_at) or _is_over(assignment.round, assignment.kind)
    return Progress(assignment, Standing(done_count, amount, assignment.due_on, is_over))


def _is_over(round: Round | None, kind: str) -> bool:
    if round is None:
        return False
    if kind == Duty.Kind.JUDGE:
        return round.state == Round.State.RELEASED
    return round.state in (Round.State.CLOSED, Round.State.RELEASED)


def _count(model: Any, person_field: str, round: str, me: User | None, **also: Any) -> Any:
    """Count rows since the assignment was set, in its rounds, by me, its person or everybody."""
    # An assignment of everybody names no person: then each row matches by its own author.
    person = me.pk if me else Coalesce(OuterRef("person"), F(f"{person_field}__user"))
    rows = model.objects.filter(
        **{f"{round}__task": OuterRef("task"), "created_at__gte": OuterRef("set_at"), **also},
        # An assignment for all rounds names none: then each row matches by its own round.
        **{round: Coalesce(OuterRef("round"), F(round)), f"{person_field}__user": person},
    ).order_by()
    # A plain function: `Count` would group by row, and so count one at a time.
    return Subquery(rows.annotate(n=Func(F("pk"), function="COUNT")).values("n"))


def _count_left(shares: Sequence[Duty]) -> dict[int, int]:
    """Count by assignment the examples of a member's share that they can judge now. Three queries.

    Without examples that are not queued yet, which no query can count.
    """
    tasks = {assignment.task_id for assignment in shares}
    if not tasks:
        return {}
    standing = Duty.objects.standing().filter(task__in=tasks, share__isnull=False)
    all_of_them = list(standing.order_by("pk"))
    unknown: set[int] = set()
    conditions: dict[int, Q] = {}
    for round in rounds_with_last(Round.objects.filter(task__in=tasks)):
        assignments = [
            assignment for assignment in all_of_them if assignment.task_id == round.task_id
        ]
        for assignment, places in _shares_of(assignments, round.pk).items():
            # New examples may fall into the share or not, so its rest is not known.
            if round.last and round.last > round.seen:
                unknown.add(assignment.pk)
            for span in places:
                conditions[assignment.pk] = conditions.get(assignment.pk, Q()) | Q(
                    round=round, key__range=span
                )
    answerable = {
        assignment.pk: conditions[assignment.pk]
        for assignment in shares
        if assignment.pk in conditions.keys() - unknown
    }
    persons = {assignment.pk: assignment.person_id for assignment in shares}
    waiting_items = QueueItem.objects.filter(free__gt=0, example__retracted_at=None)
    # One query for all assignments; the name of a column gives the assignment's id back.
    aggregates = {
        f"of_{pk}": Count("pk", filter=places & _build_untouched(persons[pk]))
        for pk, places in answerable.items()
    }
    return {int(name[3:]): n for name, n in waiting_items.aggregate(**aggregates).items()}


def _build_untouched(person: int | None) -> Q:
    """Return the condition that the person has not written, seen, judged or skipped an item."""
    own_filter = {"example": OuterRef("pk"), "validator__user": person}
    shown_elsewhere = ShownExample.objects.filter(example=OuterRef("pk"), annotator__user=person)
    return Q(
        ~Exists(Validation.objects.filter(**own_filter)),
        ~Exists(Skip.objects.filter(**own_filter)),
        ~Exists(shown_elsewhere),
        ~Q(author__user=person) | Q(author=None),
    )


def due_before(progress: Progress) -> date:
    """Return a sort key by due date; assignments without one come last."""
    return progress.assignment.due_on or date.max
