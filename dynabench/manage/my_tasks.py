"""The page of all tasks that a person helps to run, `/manage/`: the start page of owners."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.accounts.models import User
from core.accounts.people import get_person
from core.web.lists import ListFilter, list_page
from dynabench.cards import measure_progress
from dynabench.notices.manage_counts import count_waiting_work, renew_manage_entry
from dynabench.waiting import count_waiting_metrics, count_waiting_proposals
from evaluation.submissions.selectors import count_submitted_models
from leaderboard.models import Battle
from tasks.budgets import BudgetLine
from tasks.models import Round, Task, TaskMember
from tasks.permissions import (
    READERS,
    cache_roles,
    can_manage,
    can_read,
    can_review,
    is_task_creation_offered,
)
from validation.statistics.cache import get_headline_numbers

PAGE_SIZE = 50
RECENT_TIME = timedelta(days=7)
LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED)


class ScopeFilter(ListFilter):
    """A form for administrators to show all tasks, or only tasks where they have a role."""

    scope = forms.ChoiceField(
        choices=[("", _("All tasks")), ("mine", _("Tasks I have a role in"))],
        required=False,
        label=_("Show"),
    )


@dataclass(frozen=True)
class TaskRow:
    """A row of the table: a task with what the reader may know about it.

    A value is None if the reader may not know it or there is none. round: the open or paused round,
    or else the newest. tries: the number of examples in the round. progress: the round's limit that
    is nearest to being reached. review, reports: the numbers of examples and reports that await a
    decision. models: how many were submitted within a week. last_at: when people last wrote an
    example or began a battle.
    """

    task: Task
    round: Round | None
    tries: int | None
    progress: BudgetLine | None
    review: int | None
    reports: int | None
    models: int | None
    last_at: datetime | None


@require_safe
def show_my_tasks(request: HttpRequest) -> HttpResponse:
    """Show the tasks that the person helps to run, and the work that waits in each."""
    user = get_person(request)
    filters = ScopeFilter(request) if user.is_superuser else None
    shows_all = filters is not None and not filters.cleaned_data["scope"]
    page = list_page(request, _find_tasks(user, shows_all=shows_all), size=PAGE_SIZE)
    values: dict[str, Any] = {
        "page": page,
        "rows": _build_rows(user, page.rows),
        "filters": filters,
        "offers_new": is_task_creation_offered(user),
        # So that the header says what this page says.
        "entry": renew_manage_entry(request),
    }
    if user.is_superuser:
        values |= {"proposals": count_waiting_proposals(), "metrics": count_waiting_metrics()}
    return render(request, "own/manage.html", values)


def _find_tasks(user: User, *, shows_all: bool) -> QuerySet[Task]:
    """Return the page's tasks, ordered by name, each with the start of its last battle.

    shows_all: whether to return all tasks instead of the person's own.
    """
    tasks = Task.objects.all()
    if not shows_all:
        members = (
            TaskMember.objects.select_colleagues()
            .select_effective()
            .filter(user=user, role__in=READERS)
        )
        tasks = tasks.filter(pk__in=members.values("task"))
    battles = Battle.objects.filter(task=OuterRef("pk")).order_by("-pk")
    last_battle_at = Subquery(battles.values("began_at")[:1])
    return tasks.annotate(last_battle_at=last_battle_at).order_by("name", "pk")


def _build_rows(user: User, tasks: Sequence[Task]) -> list[TaskRow]:
    """Return the table's rows. At most seven queries, whatever the number of tasks."""
    if not tasks:
        return []
    cache_roles(user, tasks)
    rounds_by_task, last_example_times = _find_shown_rounds(tasks)
    numbers_by_round = get_headline_numbers(list(rounds_by_task.values()))
    work_by_task = count_waiting_work([task.pk for task in tasks if can_review(user, task)])
    model_counts = count_submitted_models(timezone.now() - RECENT_TIME)
    rows = []
    for task in tasks:
        round = rounds_by_task.get(task.pk)
        tries, progress = None, None
        # A large round is counted for the first time by a worker.
        if round and round.pk in numbers_by_round:
            numbers = numbers_by_round[round.pk]
            tries = numbers.numbers["collected"]
            progress = _find_progress(user, task, measure_progress(round, numbers))
        review, reports = None, None
        if can_review(user, task):
            work = work_by_task[task.pk]
            review, reports = work.undecided_count, work.report_count
        models = None
        if can_manage(user, task):
            models = model_counts.get(task.pk, 0)
        # An arena has battles. The annotation is no attribute that the model declares.
        last_at = last_example_times.get(task.pk, vars(task)["last_battle_at"])
        rows.append(TaskRow(task, round, tries, progress, review, reports, models, last_at))
    return rows


def _find_shown_rounds(tasks: Sequence[Task]) -> tuple[dict[int, Round], dict[int, datetime]]:
    """Return each task's shown round, and the time of each task's last example, by task id.

    The shown round is the open or paused one, or else the newest. One query.
    """
    # The newest of a round comes from the index, whatever the number of its examples.
    examples = Example.objects.filter(round=OuterRef("pk")).order_by("-pk")
    last_example_at = Subquery(examples.values("created_at")[:1])
    rounds: QuerySet[Any, Any] = Round.objects.filter(task__in=tasks).defer("description")
    task_by_id = {task.pk: task for task in tasks}
    shown_rounds: dict[int, Round] = {}
    last_example_times: dict[int, datetime] = {}
    for round in rounds.annotate(last_example_at=last_example_at).order_by("number"):
        task_id = round.task_id
        round.task = task_by_id[task_id]  # saves a query for each
        earlier_round = shown_rounds.get(task_id)
        follows_live_round = earlier_round is not None and earlier_round.state in LIVE_STATES
        if round.state in LIVE_STATES or not follows_live_round:
            shown_rounds[task_id] = round
        if round.last_example_at:
            last_example_times[task_id] = max(
                round.last_example_at, last_example_times.get(task_id, round.last_example_at)
            )
    return shown_rounds, last_example_times


def _find_progress(user: User, task: Task, lines: Sequence[BudgetLine]) -> BudgetLine | None:
    """Return the round's limit that is nearest to being reached; None if there is none.

    People who may not read the task only see the limit of tries.
    """
    # Catches depend on votes, which an owner who judges blind must not learn.
    lines = [line for line in lines if line.name == "collected" or can_read(user, task)]
    return max(lines, key=lambda line: line.used / line.limit, default=None)
