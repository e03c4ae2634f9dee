"""The owners' page about how a target fares: answers, latency, errors, versions; three texts."""

from statistics import median, quantiles
from typing import Any

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.models import TargetOutput
from dynabench.accounts.people import person
from dynabench.lib.throttles import is_used_up
from dynabench.own.access import owned_task
from tasks.config.schema import TaskConfig
from tasks.models import Round, RoundTarget, TargetFailure, TargetModel
from tasks.permissions import can_edit, can_manage
from tasks.selectors import PLANNED
from tasks.targets.send_test import NoAnswer
from tasks.targets.three_texts import ask_three

LATEST, SHOWN, DAYS = 200, 20, 14


@require_http_methods(["GET", "POST"])
def target_health(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """What a target answered lately; editors send it three texts, outside any transaction."""
    task = owned_task(request, code, can_edit if request.method == "POST" else can_manage)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    values: dict[str, Any] = {"task": task, "target": target, **_health(target)}
    values["can_edit"] = can_edit(request.user, task)
    values["uses"], values["planned"] = _rounds(target)
    if request.method == "POST" and is_used_up("test", person(request).pk):
        messages.error(request, _("You have sent many tests. Go on in an hour."))
    elif request.method == "POST":
        try:
            answered = [_row(task.config, *one) for one in ask_three(target)]
            values |= {"is_tested": True, "answered": answered}
        except NoAnswer as error:
            values |= {"failure": str(error), "detail": error.more}
    return render(request, "own/setup/target_health.html", values)


def _rounds(target: TargetModel) -> tuple[list[Round], Round | None]:
    """The rounds that use the target, and a planned one that could. One query."""
    entries = RoundTarget.objects.filter(round=OuterRef("pk"), target=target)
    rounds = target.task.rounds.annotate(uses=Exists(entries)).order_by("number")
    others = [one for one in rounds if not one.uses and one.state in PLANNED]
    return [one for one in rounds if one.uses], next(iter(others), None)


def _row(config: TaskConfig, inputs: Any, answer: Any) -> dict[str, Any]:
    """One of the three texts with its answer, or why there is none."""
    texts = [config.display(name, value) for name, value in inputs.items()]
    if isinstance(answer, NoAnswer):
        return {"texts": texts, "failure": str(answer), "detail": answer.more}
    said = [config.display(name, value) for name, value in answer.output.items()]
    return {"texts": texts, "said": said, "seconds": answer.seconds}


def _health(target: TargetModel) -> dict[str, Any]:
    rows = TargetOutput.objects.filter(target=target).order_by("-pk")
    latest = list(rows.select_related("example", "version")[:LATEST])
    seconds = [one.seconds for one in latest]
    calls = target.uses.values("day").annotate(requests=Sum("requests")).order_by("-day")
    return {
        "latest": latest[:SHOWN],
        "counted": len(latest),
        "median": median(seconds) if seconds else None,
        "p95": quantiles(seconds, n=20)[-1] if len(seconds) > 1 else None,
        "failed": TargetFailure.objects.filter(target=target).first(),
        "calls": calls[:DAYS],
        "versions": target.versions.annotate(answers=Count("targetoutput")).order_by("-pk"),
    }
