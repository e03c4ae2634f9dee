"""Pages on which a task's owners train its next target."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.figures.figure import index_figures
from core.figures.rows import PERCENT_AXIS, draw_axis
from core.web.figure_files import respond_with_figure
from core.web.htmx import get_form_status, render_page
from core.web.lists import list_page
from core.web.refusals import show_as_form_error
from evaluation.models import TrainingRun
from evaluation.training.figures import build_training_figure, draw_tests
from evaluation.training.forms import RegisterForm, TrainingForm
from evaluation.training.services import register_trained_target, request_training
from tasks.access import find_task_and_editor

PAGE_SIZE = 50


@require_http_methods(["GET", "POST"])
def show_trainings(request: HttpRequest, code: str) -> HttpResponse:
    """Show the training runs of a task and the form that requests another one."""
    task, user = find_task_and_editor(request, code)
    form = TrainingForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            run = request_training(task=task, actor=user, **form.arguments)
            return redirect("evaluation:training", code=code, pk=run.pk)
    # Reports and uploaded rows may take megabytes, and the list shows neither.
    runs = task.training_runs.defer("report", "rows").select_related("target", "round")
    values = {"task": task, "form": form, "page": list_page(request, runs, size=PAGE_SIZE)}
    return render(request, "evaluation/trainings.html", values, status=get_form_status(form))


@require_http_methods(["GET", "POST"])
def show_training(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show a training run: its progress, report, and the form that makes its model a target."""
    task, user = find_task_and_editor(request, code)
    rows = TrainingRun.objects.select_related("target", "round")
    run = get_object_or_404(rows, pk=pk, task=task)
    form = RegisterForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            target = register_trained_target(run=run, actor=user, **form.cleaned_data)
            names = {"target": target, "number": form.cleaned_data["number"]}
            messages.success(
                request, _("%(target)s is now a model to fool in round %(number)d.") % names
            )
            return redirect("evaluation:training", code=code, pk=pk)
    values = {"task": task, "run": run, "form": form, "report": run.report}
    values |= _describe_report(run, code)
    values["page"] = list_page(request, values.pop("examples", ()), size=PAGE_SIZE)
    return render_page(
        request,
        "evaluation/training.html",
        values,
        block_name="training",
        status=get_form_status(form),
    )


@require_safe
def download_training_chart(request: HttpRequest, code: str, pk: int, format: str) -> HttpResponse:
    """Return the chart of a finished training run as a file. For the task's editors."""
    task, _user = find_task_and_editor(request, code)
    run = get_object_or_404(task.training_runs, pk=pk, state=TrainingRun.State.DONE)
    return respond_with_figure(
        request,
        index_figures([_describe_report(run, code)["figure"]]),
        "before-and-after",
        format,
        prefix=f"{task.code}-training-{pk}",
        page=reverse("evaluation:training", args=[code, pk]),
    )


def _describe_report(run: TrainingRun, code: str) -> dict[str, Any]:
    """Return the template values of the report's chart and examples; {} until the run is done."""
    if run.state != TrainingRun.State.DONE:
        return {}
    metric = _("Token F1") if run.report["labels"] is None else _("Accuracy")
    # The report is stored JSON, whose keys the trainer wrote.
    tests = run.report["tests"]
    address = reverse("evaluation:training-chart", args=[code, run.pk, "svg"])
    examples = []
    for test in run.report["tests"]:
        examples += [(test["name"], example) for example in test["examples"]]
    return {
        "metric": metric,
        "figure": build_training_figure(tests, metric),
        "tests": draw_tests(tests),
        "axis": draw_axis(PERCENT_AXIS),
        "files": address.removesuffix("before-and-after.svg"),
        "examples": examples,
    }
