"""The owners' page of a target's health: answers, latency, errors, versions, three texts."""

from statistics import median, quantiles
from typing import Any

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods

from annotation.models import TargetOutput
from core.accounts.people import person
from core.web.htmx import htmx_partial
from core.web.throttles import is_used_up
from dynabench.manage.access import owned_task
from tasks.config.schema import TaskConfig
from tasks.models import Round, RoundTarget, TargetFailure, TargetModel
from tasks.permissions import can_edit, can_manage
from tasks.selectors import PLANNED
from tasks.targets.send_test import NoAnswer, send_test
from tasks.targets.three_texts import TEXTS, ask_three, samples

LATEST, SHOWN, DAYS = 200, 20, 14


TOO_MANY = gettext_noop("You have sent many tests. Go on in an hour.")


@require_http_methods(["GET", "POST"])
def target_health(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show what a target answered lately. Editors send it three texts, outside any transaction.

    htmx sends each text by a request of its own, so that every answer is shown once it is there.
    """
    task = owned_task(request, code, can_edit if request.method == "POST" else can_manage)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    values: dict[str, Any] = {"task": task, "target": target}
    if request.method == "POST" and "text" in request.GET:
        values |= _answered_one(request, target)
        return render(request, "own/setup/target_health.html#rows", values)
    values |= {**_health(target), "can_edit": can_edit(request.user, task)}
    values["uses"], values["planned"] = _rounds(target)
    if request.method == "POST" and htmx_partial(request):
        values |= {"is_tested": True, "following": _following(target, 0)}
    elif request.method == "POST":
        values |= _answered_all(request, target)
    return render(request, "own/setup/target_health.html", values)


def _rounds(target: TargetModel) -> tuple[list[Round], Round | None]:
    """Return the rounds that use the target, and a planned one that could. One query."""
    entries = RoundTarget.objects.filter(round=OuterRef("pk"), target=target)
    rounds = target.task.rounds.annotate(uses=Exists(entries)).order_by("number")
    others = [one for one in rounds if not one.uses and one.state in PLANNED]
    return [one for one in rounds if one.uses], next(iter(others), None)


def _answered_all(request: HttpRequest, target: TargetModel) -> dict[str, Any]:
    """Send all three texts at once and return the rows of their answers."""
    if is_used_up("test", person(request).pk):
        messages.error(request, _(TOO_MANY))
        return {}
    try:
        answered = [_row(target.task.config, *one) for one in ask_three(target)]
    except NoAnswer as error:
        return {"failure": str(error), "detail": error.more}
    return {"is_tested": True, "answered": answered}


def _answered_one(request: HttpRequest, target: TargetModel) -> dict[str, Any]:
    """Send one text and return the row of its answer, and which text is next. Raises Http404."""
    number = int(text) if (text := request.GET["text"]) in map(str, range(TEXTS)) else TEXTS
    following = _following(target, number)
    if following is None:
        raise Http404
    inputs, config = following["inputs"], target.task.config
    if is_used_up("test", person(request).pk):
        return {"answered": [{"texts": following["texts"], "failure": _(TOO_MANY)}]}
    try:
        answer: Any = send_test(target, inputs)
    except NoAnswer as error:
        answer = error
    return {"answered": [_row(config, inputs, answer)], "following": _following(target, number + 1)}


def _following(target: TargetModel, number: int) -> dict[str, Any] | None:
    """Return the text of this number that tests send, or None where there are no more."""
    texts = samples(target.task)[number : number + 1]
    shown = [{"number": number, "inputs": one, **_texts(target.task.config, one)} for one in texts]
    return next(iter(shown), None)


def _texts(config: TaskConfig, inputs: Any) -> dict[str, Any]:
    return {"texts": [config.display(name, value) for name, value in inputs.items()]}


def _row(config: TaskConfig, inputs: Any, answer: Any) -> dict[str, Any]:
    """Return one of the three texts with its answer, or why there is none."""
    texts = _texts(config, inputs)
    if isinstance(answer, NoAnswer):
        return {**texts, "failure": str(answer), "detail": answer.more}
    said = [config.display(name, value) for name, value in answer.output.items()]
    return {**texts, "said": said, "seconds": answer.seconds}


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
