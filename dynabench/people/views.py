"""The pages about a person's own work."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.access import require_annotator
from annotation.context_picking.services import assign_sent_back
from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.people import person
from core.accounts.services import annotator_of
from core.web.htmx import form_status, htmx_partial, render_page
from core.web.lists import rows_after
from core.web.refusals import as_message
from dynabench.people.forms import ExampleFilter, GoalForm
from dynabench.people.play import build_game, list_judged_tasks
from dynabench.people.work import (
    PAGE_SIZE,
    build_chips,
    build_example_rows,
    build_status_conditions,
    count_by_status,
    draw_trend,
    select_own_examples,
    sum_tiles,
    summarise_today,
)
from leaderboard.people.activity import count_weeks
from leaderboard.people.services import set_weekly_goal
from leaderboard.people.standings import may_play
from tasks.models import Round, Task, TaskMember
from tasks.permissions import READERS, is_offered_new_tasks
from validation.discussion.services import unseen_mentions
from validation.judging.assignments import assignments_of
from validation.rewards.scores import agreement_by_task, tasks_of

TEMPLATE = "me/work.html"


@require_GET
def my_work(request: HttpRequest) -> HttpResponse:
    """Show the outcome of the person's examples and judgements; to htmx only the table."""
    me = annotator_of(person(request))
    if htmx_partial(request):
        return render_page(
            request, TEMPLATE, _list_own_examples(request, me, tasks_of(me)), part="mine"
        )
    return _render_page(request, me)


def _render_page(request: HttpRequest, me: Annotator, form: GoalForm | None = None) -> HttpResponse:
    # Each is read once and used by several parts of the page.
    tasks, agreement, weeks = tasks_of(me), agreement_by_task(me), count_weeks(me)
    judged_tasks = list_judged_tasks(tasks, agreement)
    game, goal_now = None, None
    if may_play(me):
        game = build_game(me, tasks, weeks, agreement)
        goal_now = {"amount": game.goal}
    # Work in sensitive tasks counts for no week and no badge; who does no other has none next.
    is_sensitive_only = bool(tasks) and all(task.is_sensitive for task in tasks)
    values = {
        **_list_own_examples(request, me, tasks),
        "today": summarise_today(me, {line.task.pk: line.points for line in judged_tasks}),
        "judged": judged_tasks,
        "offers_new": is_offered_new_tasks(request.user),
        "drafts": person(request).task_drafts.filter(task=None),
        "trend": draw_trend(weeks),
        "mentions": unseen_mentions().filter(person=me),
        "game": game,
        "has_week": game and (game.goal is not None or not is_sensitive_only),
        "ranked_tasks": [task for task in tasks if game and not task.is_sensitive],
        "goal_form": form or GoalForm(initial=goal_now),
    }
    return render(request, TEMPLATE, values, status=form_status(form))


def _list_own_examples(
    request: HttpRequest, me: Annotator, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Return a page of the person's examples, filtered by the query."""
    filters = ExampleFilter(request, task=[(task.code, task.name) for task in tasks])
    chosen_filters = filters.cleaned_data
    statuses = build_status_conditions(me)
    totals = count_by_status(me, statuses)
    chips = build_chips(totals, **chosen_filters)
    page = rows_after(request, select_own_examples(me, statuses, **chosen_filters), size=PAGE_SIZE)
    return {
        "filters": filters,
        "chips": chips,
        "counts": sum_tiles(totals),
        "page": page,
        "rows": build_example_rows(me, page.rows),
        "count": next(chip.count for chip in chips if chip.is_shown),
        "is_filtered": bool(filters.chosen or page.first),
    }


@require_GET
def run_tasks(request: HttpRequest) -> HttpResponse:
    """Show the tasks that the person helps to run, with what is open in each."""
    roles = TaskMember.objects.colleagues().standing().filter(user=person(request))
    rows = roles.filter(role__in=READERS).select_related("task").order_by("task__name")
    # Two queries for the rounds of all tasks.
    rounds = Prefetch("task__rounds", Round.objects.order_by("-number"))
    values = {
        "rows": rows.prefetch_related(rounds),
        "offers_new": is_offered_new_tasks(request.user),
    }
    return render(request, "me/run_tasks.html", values)


@require_GET
def my_assignments(request: HttpRequest) -> HttpResponse:
    """Show the person's assignments in all tasks, earliest deadline first."""
    return render(request, "me/assignments.html", {"rows": assignments_of(person(request))})


@require_POST
def correct_example(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Reopen an example of the person that a reviewer sent back for correction."""
    rows = Example.objects.select_related("round__task", "context", "parent")
    example = get_object_or_404(rows, uuid=uuid, annotator__user=person(request))
    task = example.round.task
    with as_message(request):
        # Refused if its round is over, or if it is sent back no longer.
        assign_sent_back(annotator=require_annotator(request, task), example=example)
        return redirect(f"{reverse('annotation:write', args=[task.code])}?retry={uuid}")
    return redirect("me:work")


@require_POST
def set_goal(request: HttpRequest) -> HttpResponse:
    """Set the person's weekly goal."""
    me = annotator_of(person(request))
    if not may_play(me):
        raise Http404
    form = GoalForm(request.POST)
    if not form.is_valid():
        return _render_page(request, me, form)
    set_weekly_goal(annotator=me, amount=form.cleaned_data["amount"])
    messages.success(request, _("Your weekly goal is saved."))
    return redirect("me:work")
