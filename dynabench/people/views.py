"""The pages about a person's own work."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.access import require_annotator
from annotation.context_picking.services import assign_sent_back
from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.htmx import get_form_status, is_htmx_partial, render_page
from core.web.lists import select_rows_after
from core.web.refusals import show_as_message
from dynabench.cards import TaskCard, build_cards, remove_unjudgeable_counts
from dynabench.catches.confirmation import CARD_LIFETIME, find_confirmed_catch
from dynabench.catches.selectors import list_shared_catches, shorten_text
from dynabench.catches.standing import find_standing_catches
from dynabench.people.forms import ExampleFilter, GoalForm
from dynabench.people.play import build_game, list_judged_tasks
from dynabench.people.work import (
    PAGE_SIZE,
    build_chips,
    build_example_rows,
    build_status_conditions,
    build_trend_figure,
    count_examples_by_status,
    find_task_to_continue,
    list_decided_examples,
    select_own_examples,
    sum_tile_counts,
    summarise_today,
)
from leaderboard.people.activity import count_weeks
from leaderboard.people.services import set_weekly_goal
from leaderboard.people.standings import may_use_rankings
from tasks.models import Task
from tasks.permissions import load_tasks_with_roles
from tasks.selectors import find_visible_tasks
from validation.discussion.services import select_unseen_mentions
from validation.judging.assignments import list_assignments
from validation.rewards.scores import compute_agreement_by_task, list_tasks

TEMPLATE_NAME = "me/work.html"
MAX_VISIT_PAUSE, VISIT_WRITE_INTERVAL = timedelta(minutes=30), timedelta(minutes=5)
FIRST_VISIT_LOOK_BACK_TIME = timedelta(days=7)
"""How far back the first visit in a session looks for decisions."""
MAX_FIRST_TASKS = 3
"""The maximum number of tasks offered to somebody who has not written yet."""
MAX_SHARED_CATCHES = 50
"""The maximum number of shared catches that the page lists."""


@require_GET
def show_my_work(request: HttpRequest) -> HttpResponse:
    """Show the outcome of the person's examples and judgements.

    Requests by htmx get only the table.
    """
    annotator = get_annotator(get_person(request))
    if is_htmx_partial(request):
        return render_page(
            request,
            TEMPLATE_NAME,
            _list_own_examples(request, annotator, list_tasks(annotator)),
            block_name="mine",
        )
    return _render_page(request, annotator)


def _render_page(
    request: HttpRequest, annotator: Annotator, form: GoalForm | None = None
) -> HttpResponse:
    # Each is read once and used by several parts of the page.
    tasks, agreement, weeks = (
        list_tasks(annotator),
        compute_agreement_by_task(annotator),
        count_weeks(annotator),
    )
    judged_tasks = list_judged_tasks(tasks, agreement)
    game, initial_goal = None, None
    if may_use_rankings(annotator):
        game = build_game(annotator, tasks, weeks, agreement)
        initial_goal = {"amount": game.goal}
    # Work in sensitive tasks counts for no week and no badge; who does no other has none next.
    is_sensitive_only = bool(tasks) and all(task.is_sensitive for task in tasks)
    own_examples = _list_own_examples(request, annotator, tasks)
    has_examples = bool(own_examples["rows"]) or own_examples["is_filtered"]
    values = {
        **own_examples,
        # Also for people who have only judged so far.
        "start": [] if has_examples else _list_first_tasks(request),
        "has_begun": bool(tasks),
        "news": list_decided_examples(annotator, _find_last_visit(request)),
        "today": summarise_today(annotator, {line.task.pk: line.points for line in judged_tasks}),
        "judged": judged_tasks,
        "drafts": get_person(request).task_drafts.filter(task=None),
        "trend": build_trend_figure(weeks),
        "mentions": select_unseen_mentions().filter(person=annotator),
        "confirmed": find_confirmed_catch(annotator, timezone.now() - CARD_LIFETIME),
        "standing": find_standing_catches(annotator, tasks),
        "shared": [
            (example, shorten_text(example))
            for example in list_shared_catches(annotator, MAX_SHARED_CATCHES)
        ],
        "to_write": find_task_to_continue(get_person(request), annotator),
        "game": game,
        "has_week": game and not (game.is_default and is_sensitive_only),
        "ranked_tasks": [task for task in tasks if game and not task.is_sensitive],
        "goal_form": form or GoalForm(initial=initial_goal),
    }
    return render(request, TEMPLATE_NAME, values, status=get_form_status(form))


def _list_first_tasks(request: HttpRequest) -> list[TaskCard]:
    """Return the cards of open tasks without upsetting content, at most MAX_FIRST_TASKS."""
    person = get_person(request)
    tasks = load_tasks_with_roles(find_visible_tasks(person), person)
    cards = [card for card in build_cards(tasks) if card.is_open and not card.task.is_sensitive]
    return remove_unjudgeable_counts(person, cards[:MAX_FIRST_TASKS])


def _find_last_visit(request: HttpRequest) -> datetime:
    """Return when the previous visit to this page in this session ended, or else a week ago.

    Views less than MAX_VISIT_PAUSE apart are one visit. The session is written at most once per
    VISIT_WRITE_INTERVAL.
    """
    now = timezone.now()
    visit = request.session.get("work-visit") or {}
    last_view = _parse_time(visit.get("last"), now)
    since = _parse_time(visit.get("since"), now)
    if now - last_view > MAX_VISIT_PAUSE:
        since = last_view
    if not visit or now - last_view > VISIT_WRITE_INTERVAL:
        request.session["work-visit"] = {"last": now.isoformat(), "since": since.isoformat()}
    return since


def _parse_time(text: str | None, now: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else now - FIRST_VISIT_LOOK_BACK_TIME


def _list_own_examples(
    request: HttpRequest, annotator: Annotator, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Return the template's values for a page of the person's examples, filtered by the query."""
    filters = ExampleFilter(request, task=[(task.code, task.name) for task in tasks])
    chosen_filters = filters.cleaned_data
    statuses = build_status_conditions(annotator)
    totals = count_examples_by_status(annotator, statuses)
    chips = build_chips(totals, **chosen_filters)
    page = select_rows_after(
        request, select_own_examples(annotator, statuses, **chosen_filters), size=PAGE_SIZE
    )
    return {
        "filters": filters,
        "chips": chips,
        "counts": sum_tile_counts(totals),
        "page": page,
        "rows": build_example_rows(annotator, page.rows),
        "count": next(chip.count for chip in chips if chip.is_shown),
        "is_filtered": bool(filters.chosen_values or page.first),
    }


@require_GET
def show_my_assignments(request: HttpRequest) -> HttpResponse:
    """Show the person's assignments in all tasks, earliest deadline first."""
    return render(request, "me/assignments.html", {"rows": list_assignments(get_person(request))})


@require_POST
def correct_example(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Let the person correct an example that a reviewer sent back: redirect to the write page."""
    rows = Example.objects.select_related("round__task", "context", "parent")
    example = get_object_or_404(rows, uuid=uuid, annotator__user=get_person(request))
    task = example.round.task
    with show_as_message(request):
        # Refused if its round is over, or if it is sent back no longer.
        assign_sent_back(annotator=require_annotator(request, task), example=example)
        return redirect(f"{reverse('annotation:write', args=[task.code])}?retry={uuid}")
    return redirect("me:work")


@require_POST
def set_goal(request: HttpRequest) -> HttpResponse:
    """Set the person's weekly goal. Raises Http404 for people who may not use rankings."""
    annotator = get_annotator(get_person(request))
    if not may_use_rankings(annotator):
        raise Http404
    form = GoalForm(request.POST)
    if not form.is_valid():
        return _render_page(request, annotator, form)
    set_weekly_goal(annotator=annotator, amount=form.cleaned_data["amount"])
    messages.success(request, _("Weekly goal saved."))
    return redirect("me:work")
