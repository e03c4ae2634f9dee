"""The owners' page of an arena's LLM judges: new ones, and what both orders say about each."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from leaderboard.arena.judges import services
from leaderboard.arena.judges.forms import ArenaJudgeForm
from leaderboard.arena.judges.page import build_judge_cards
from leaderboard.arena.judges.selectors import find_arena_judges
from leaderboard.arena.judges.verdicts import MIN_BATTLES
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_edit
from tasks.targets.contact_pages import show_test_result


def _find_arena(request: HttpRequest, code: str) -> Task:
    return find_task(request, code, can_edit, kinds=("arena",))


@require_http_methods(["GET", "HEAD", "POST"])
def show_arena_judges(request: HttpRequest, code: str) -> HttpResponse:
    """Show an arena's LLM judges with their agreement. A POST creates one."""
    task, user = _find_arena(request, code), get_person(request)
    form = ArenaJudgeForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            judge = services.create_arena_judge(task=task, actor=user, **form.cleaned_data)
            show_test_result(request, judge.name, services.contact_arena_judge(judge, user))
            return redirect("own:arena-judges", code)
    values = {
        "task": task,
        "form": form,
        "judges": build_judge_cards(find_arena_judges(task)),
        "least": MIN_BATTLES,
    }
    return render(request, "own/arena_judges.html", values, status=get_form_status(form))


@require_POST
def rerun_arena_judge(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Queue a judge again for new battles."""
    judge = get_object_or_404(_find_arena(request, code).arena_judges, pk=pk)
    with show_as_message(request):
        services.rerun_arena_judge(judge=judge, actor=get_person(request))
    return redirect("own:arena-judges", code)


@require_POST
def switch_arena_judge(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show a judge's ranking on the leaderboard, or stop showing it."""
    judge = get_object_or_404(_find_arena(request, code).arena_judges, pk=pk)
    with show_as_message(request):
        services.show_arena_judge(
            judge=judge, actor=get_person(request), is_shown="on" in request.POST
        )
    return redirect("own:arena-judges", code)
