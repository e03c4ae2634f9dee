"""The owners' page of a target's health: answers, latency, errors, versions, and a test."""

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
from core.accounts.people import get_person
from core.web.htmx import is_htmx_partial
from core.web.lists import select_rows_after
from core.web.throttles import is_used_up
from dynabench.manage.access import find_owned_task
from tasks.config.schema import TaskConfig
from tasks.models import Round, RoundTarget, TargetFailure, TargetModel
from tasks.permissions import can_edit, can_manage
from tasks.selectors import PLANNED_STATES
from tasks.targets.send_test import NoAnswer, send_test
from tasks.targets.three_texts import TEXT_COUNT, ask_three_texts, build_samples

PAGE_SIZE = 20
"""The number of answers on a page."""
MEDIAN_SAMPLE_SIZE = 200
"""The number of latest answers from which the median latency is computed."""
SHOWN_DAYS = 14


TOO_MANY_TESTS_MESSAGE = gettext_noop(
    "You've reached the hourly limit of tests. Try again in an hour."
)


@require_http_methods(["GET", "POST"])
def show_target_health(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show a target's recent answers. Editors can send it three texts, outside any transaction.

    htmx sends one request per text, so that each answer appears when it arrives.
    """
    permission_check = can_edit if request.method == "POST" else can_manage
    task = find_owned_task(request, code, permission_check)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    values: dict[str, Any] = {"task": task, "target": target}
    # One of the requests by which htmx asks for each answer by itself.
    if request.method == "POST" and "text" in request.GET:
        values |= _test_one_text(request, target)
        return render(request, "own/setup/target_health.html#rows", values)
    values |= {**_build_health_values(request, target), "can_edit": can_edit(request.user, task)}
    values["uses"], values["planned"] = _find_rounds(target)
    if request.method == "POST" and is_htmx_partial(request):
        # The page comes at once, with the row that asks for the first answer.
        values |= {"is_tested": True, "following": _build_text_values(target, 0)}
    elif request.method == "POST":
        values |= _test_all_texts(request, target)
    return render(request, "own/setup/target_health.html", values)


def _find_rounds(target: TargetModel) -> tuple[list[Round], Round | None]:
    """Return (the rounds that use the target, a planned round that could use it, or None).

    One query.
    """
    entries = RoundTarget.objects.filter(round=OuterRef("pk"), target=target)
    rounds = target.task.rounds.annotate(uses=Exists(entries)).order_by("number")
    using_rounds: list[Round] = []
    planned_rounds: list[Round] = []
    for round in rounds:
        if round.uses:
            using_rounds.append(round)
        elif round.state in PLANNED_STATES:
            planned_rounds.append(round)
    return using_rounds, next(iter(planned_rounds), None)


def _test_all_texts(request: HttpRequest, target: TargetModel) -> dict[str, Any]:
    """Send all three test texts and return the template's values with the answers.

    If the hourly limit is reached, shows a message and returns {}.
    """
    if is_used_up("test", get_person(request).pk):
        messages.error(request, _(TOO_MANY_TESTS_MESSAGE))
        return {}
    try:
        answer_rows = [
            _build_answer_row(target.task.config, *answer) for answer in ask_three_texts(target)
        ]
    except NoAnswer as error:
        return {"failure": str(error), "detail": error.extra_detail}
    return {"is_tested": True, "answered": answer_rows}


def _test_one_text(request: HttpRequest, target: TargetModel) -> dict[str, Any]:
    """Send one test text and return the template's values with its answer and the next text.

    Raises Http404 for a number without a text.
    """
    known_numbers = {str(number): number for number in range(TEXT_COUNT)}
    number = known_numbers.get(request.GET["text"], TEXT_COUNT)  # TEXT_COUNT: behind the last one
    next_text = _build_text_values(target, number)
    if next_text is None:
        raise Http404
    inputs, config = next_text["inputs"], target.task.config
    if is_used_up("test", get_person(request).pk):
        return {"answered": [{"texts": next_text["texts"], "failure": _(TOO_MANY_TESTS_MESSAGE)}]}
    try:
        answer: Any = send_test(target, inputs)
    except NoAnswer as error:
        # A failure is a row, too: the other texts are sent all the same.
        answer = error
    return {
        "answered": [_build_answer_row(config, inputs, answer)],
        "following": _build_text_values(target, number + 1),
    }


def _build_text_values(target: TargetModel, number: int) -> dict[str, Any] | None:
    """Return the template's values for the test text with this number; None after the last one."""
    texts = build_samples(target.task)
    if number >= len(texts):
        return None
    inputs = texts[number]
    return {"number": number, "inputs": inputs, **_display_texts(target.task.config, inputs)}


def _display_texts(config: TaskConfig, inputs: Any) -> dict[str, Any]:
    return {"texts": [config.display(name, value) for name, value in inputs.items()]}


def _build_answer_row(config: TaskConfig, inputs: Any, answer: Any) -> dict[str, Any]:
    """Return the template's values for a test text with its answer, or why it has none."""
    texts = _display_texts(config, inputs)
    if isinstance(answer, NoAnswer):
        return {**texts, "failure": str(answer), "detail": answer.extra_detail}
    answers = [config.display(name, value) for name, value in answer.output.items()]
    return {**texts, "said": answers, "seconds": answer.seconds}


def _build_health_values(request: HttpRequest, target: TargetModel) -> dict[str, Any]:
    rows = TargetOutput.objects.filter(target=target).order_by("-pk")
    seconds = list(rows.values_list("seconds", flat=True)[:MEDIAN_SAMPLE_SIZE])
    median_seconds = p95_seconds = None
    if seconds:
        median_seconds = median(seconds)
    if len(seconds) > 1:  # quantiles needs two
        p95_seconds = quantiles(seconds, n=20)[-1]
    calls = target.uses.values("day").annotate(requests=Sum("requests")).order_by("-day")
    return {
        "page": select_rows_after(
            request, rows.select_related("example", "version"), size=PAGE_SIZE
        ),
        "counted": len(seconds),
        "median": median_seconds,
        "p95": p95_seconds,
        "failed": TargetFailure.objects.filter(target=target).first(),
        "calls": calls[:SHOWN_DAYS],
        "versions": target.versions.annotate(answers=Count("targetoutput")).order_by("-pk"),
    }
