"""The owners' pages about weak spots: where a model errs more often, and a challenge from it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.failures import services
from dynabench.failures.forms import ChallengeForm, ModelFilter, choose_model
from dynabench.failures.selectors import find_weak_spots, list_searched_models
from tasks.access import find_task, find_task_and_editor, require_permission
from tasks.permissions import can_edit, can_read


@require_safe
def show_weak_spots(request: HttpRequest, code: str) -> HttpResponse:
    """Show the slices on which a model errs more often than on the rest."""
    task = find_task(request, code, can_read)
    models = list_searched_models(task)
    filters = ModelFilter(request, models)
    model = choose_model(models, filters.cleaned_data)
    values = {
        "task": task,
        "models": models,
        "model": model,
        "filters": filters,
        "found": None if model is None else find_weak_spots(task, model),
        "may_offer": can_edit(request.user, task),
    }
    return render(request, "own/weak_spots.html", values)


@require_http_methods(["GET", "HEAD", "POST"])
def show_new_challenge(request: HttpRequest, code: str) -> HttpResponse:
    """Show a form for a challenge, filled in from the address; POST adds it to the task."""
    task, editor = find_task_and_editor(request, code)
    # A challenge starts from a weak spot, so only who may read those gets here.
    require_permission(editor, task, can_read)
    initial = {"name": request.GET.get("name", ""), "sentence": request.GET.get("sentence", "")}
    form = ChallengeForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        with show_as_form_error(form):
            services.offer_challenge(task=task, actor=editor, **form.cleaned_data)
            messages.success(request, _("Challenge added. Writers see it with their next text."))
            return redirect("own-failures:weak-spots", code)
    values = {"task": task, "form": form}
    return render(request, "own/weak_spot_challenge.html", values, status=get_form_status(form))
