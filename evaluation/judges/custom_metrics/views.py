"""Pages of custom metrics: a task's metrics for its owners, one version, and the waiting ones."""

from difflib import unified_diff
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.judges.custom_metrics.forms import DecisionForm, MetricForm
from evaluation.judges.custom_metrics.running import FAILURE_MESSAGES, METRIC_LIMITS
from evaluation.judges.custom_metrics.selectors import (
    IS_PUBLIC,
    annotate_outcome_counts,
    find_former_version,
    find_waiting_metrics,
)
from evaluation.judges.custom_metrics.services import (
    decide_metric,
    make_page_url,
    propose_metric,
    rerun_metric,
    retire_metric,
)
from evaluation.models import CustomMetric
from evaluation.scoring.metrics import METRICS
from tasks.access import find_task, find_task_and_editor
from tasks.models import Task
from tasks.permissions import can_edit

FUNCTION_BY_ACTION = {"retire": retire_metric, "again": rerun_metric}


@require_http_methods(["GET", "POST"])
def show_metrics(request: HttpRequest, code: str) -> HttpResponse:
    """Show a task's metrics with their results, and the form for a new version."""
    task, user = find_task_and_editor(request, code)
    name = request.GET.get("name", "")
    former_version = None
    if name.isprintable():  # PostgreSQL refuses to search for a text with a NUL
        former_version = task.custom_metrics.filter(name=name).first()
    form = MetricForm(request.POST or None, request.FILES or None, former_version)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            proposed_version = propose_metric(task=task, actor=user, **form.cleaned_data)
            return redirect(make_page_url(proposed_version))
    values = {
        "task": task,
        "form": form,
        "metrics": annotate_outcome_counts(task.custom_metrics.all()),
        "task_metrics": _list_metric_titles(task),
    }
    status = get_form_status(form)
    return render(request, "evaluation/metrics.html", values, status=status)


def _list_metric_titles(task: Task) -> list[str]:
    """Return the titles of the metrics of a task's configuration, the main one first."""
    metrics = task.config.metrics
    if metrics is None:  # an arena ranks by battles
        return []
    # A custom metric has no title of its own.
    return [
        METRICS[name].title if name in METRICS else name for name in (metrics.main, *metrics.also)
    ]


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_metric(request: HttpRequest, code: str, name: str, number: int) -> HttpResponse:
    """Show one version of a metric. Administrators can also approve or decline it here.

    A version that was never approved is shown to the task's editors only.
    """
    task = find_task(request, code)
    version = _find_version(request, task, name, number)
    # As if there were no form, so that others do not learn that one can decide here.
    if request.method == "POST" and not request.user.is_superuser:
        raise Http404
    form = DecisionForm(request.POST or None) if request.user.is_superuser else None
    if form and form.is_valid():
        with show_as_form_error(form):
            decide_metric(metric=version, actor=get_person(request), **form.cleaned_data)
            return redirect(make_page_url(version))
    values = _describe_version(request, task, version) | {"form": form}
    status = get_form_status(form)
    return render(request, "evaluation/metric.html", values, status=status)


def _find_version(request: HttpRequest, task: Task, name: str, number: int) -> CustomMetric:
    """Return the version. Raises Http404 if it doesn't exist, or if the user may not read it."""
    versions = annotate_outcome_counts(task.custom_metrics.all())
    if not can_edit(request.user, task):
        versions = versions.filter(IS_PUBLIC)
    return get_object_or_404(versions, name=name, number=number)


def _describe_version(request: HttpRequest, task: Task, version: CustomMetric) -> dict[str, Any]:
    former_version, lines = find_former_version(version), version.source.splitlines()
    diff: list[str] = []
    if former_version:
        changes = unified_diff(former_version.source.splitlines(), lines, "", "", lineterm="", n=2)
        diff = list(changes)[2:]  # without the names of both files
    failures = version.outcomes.exclude(failure="").values_list("failure", "line")
    return {
        "task": task,
        "metric": version,
        "former": former_version,
        "source": "\n".join(f"{number:>3}  {line}" for number, line in enumerate(lines, 1)),
        "diff": diff,
        "failure": FAILURE_MESSAGES.get(version.trial.get("failure", "")),
        "failures": failures.distinct(),
        "reasons": FAILURE_MESSAGES,
        "limits": METRIC_LIMITS,
        "edits": can_edit(request.user, task),
    }


@require_POST
def change_metric(
    request: HttpRequest, code: str, name: str, number: int, action: str
) -> HttpResponse:
    """Retire a version, or run it again.

    action: a key of FUNCTION_BY_ACTION.
    """
    task, user = find_task_and_editor(request, code)
    version = _find_version(request, task, name, number)
    with show_as_message(request):
        FUNCTION_BY_ACTION[action](metric=version, actor=user)
    return redirect(make_page_url(version))


@require_safe
def show_waiting_metrics(request: HttpRequest) -> HttpResponse:
    """Show the versions that wait for an administrator's decision, oldest first."""
    if not request.user.is_superuser:
        raise Http404
    return render(request, "evaluation/metrics_waiting.html", {"metrics": find_waiting_metrics()})
