"""Pages on which a task's owners train its next target."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from core.charts import Point, line_chart
from core.web.htmx import form_status, render_page
from core.web.lists import list_page
from core.web.refusals import as_form_error
from evaluation.models import TrainingRun
from evaluation.training.forms import RegisterForm, TrainingForm
from evaluation.training.services import register_trained, request_training
from tasks.access import find_task_and_editor

A_PAGE = 50


@require_http_methods(["GET", "POST"])
def trainings(request: HttpRequest, code: str) -> HttpResponse:
    """Show the trainings of a task and the form that requests another one."""
    task, user = find_task_and_editor(request, code)
    form = TrainingForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            run = request_training(task=task, actor=user, **form.arguments)
            return redirect("evaluation:training", code=code, pk=run.pk)
    # Reports and uploaded rows may take megabytes, and the list shows neither.
    runs = task.training_runs.defer("report", "rows").select_related("target", "round")
    values = {"task": task, "form": form, "page": list_page(request, runs, size=A_PAGE)}
    return render(request, "evaluation/trainings.html", values, status=form_status(form))


@require_http_methods(["GET", "POST"])
def training(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show one training: its progress, its report, and the form that makes its model a target."""
    task, user = find_task_and_editor(request, code)
    rows = TrainingRun.objects.select_related("target", "round")
    run = get_object_or_404(rows, pk=pk, task=task)
    form = RegisterForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            target = register_trained(run=run, actor=user, **form.cleaned_data)
            names = {"target": target, "number": form.cleaned_data["number"]}
            messages.success(request, _("%(target)s is a target of round %(number)d now.") % names)
            return redirect("evaluation:training", code=code, pk=pk)
    values = {"task": task, "run": run, "form": form, "report": run.report}
    values |= _describe_report(run)
    values["page"] = list_page(request, values.pop("examples", ()), size=A_PAGE)
    return render_page(
        request, "evaluation/training.html", values, part="training", status=form_status(form)
    )


def _describe_report(run: TrainingRun) -> dict[str, Any]:
    """Return the report's chart, and the examples of all its tests."""
    if run.state != TrainingRun.State.DONE:
        return {}
    metric = _("Token F1") if run.report["labels"] is None else _("Accuracy")
    lines: dict[str, list[Point]] = {}
    for when, title in (("before", _("Before")), ("after", _("After"))):
        for test in run.report["tests"]:
            score = test[when]
            if score:  # without an older model there is none before
                point = Point(test["name"], score["value"], score["low"], score["high"])
                lines.setdefault(title, []).append(point)
    chart = line_chart(
        lines,
        title=_("%(metric)s before and after") % {"metric": metric},
        description=_("With %(share)d%% intervals. The table below has the numbers.")
        % {"share": 95},
    )
    examples = []
    for test in run.report["tests"]:
        examples += [(test["name"], example) for example in test["examples"]]
    return {"metric": metric, "chart": chart, "examples": examples}
