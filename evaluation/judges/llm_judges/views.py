"""The pages on which a task's owners make judges and see how far these agree with people."""

import orjson
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.web.downloads import lines
from core.web.htmx import form_status
from core.web.refusals import as_form_error, as_message
from evaluation.judges.llm_judges.agreement import LEAST_EXAMPLES
from evaluation.judges.llm_judges.first_contact import contact_judge
from evaluation.judges.llm_judges.forms import JudgeForm
from evaluation.judges.llm_judges.selectors import (
    find_calibrated_judges,
    find_judge_scores,
    find_judged_answers,
)
from evaluation.judges.llm_judges.services import iterate_tuning_rows, make_judge, run_judge_again
from evaluation.models import EvaluationRun
from tasks.access import find_task_and_editor
from tasks.targets.contact_pages import show_answer


@require_http_methods(["GET", "POST"])
def llm_judges(request: HttpRequest, code: str) -> HttpResponse:
    """Show a task's judges with their agreement and scores, and the form for a new judge."""
    task, user = find_task_and_editor(request, code)
    form = JudgeForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            judge = make_judge(task=task, actor=user, **form.cleaned_data)
            show_answer(request, judge.name, contact_judge(judge, user))
            return redirect("evaluation:llm-judges", code=code)
    parts: list[str] = []
    if task.config.answers_freely:
        parts = [judgement.part for judgement in find_judged_answers(task)]
    values = {
        "task": task,
        "form": form,
        "judges": find_calibrated_judges(task),
        "least": LEAST_EXAMPLES,
        "to_tune": parts.count("tune"),
        "to_calibrate": parts.count("calibrate"),
        "scores": find_judge_scores(EvaluationRun.objects.filter(submission__task=task)),
    }
    status = form_status(form)
    return render(request, "evaluation/llm_judges.html", values, status=status)


@require_POST
def llm_judge_again(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Run a judge on new answers."""
    task, user = find_task_and_editor(request, code)
    judge = get_object_or_404(task.llm_judges, pk=pk)
    with as_message(request):
        run_judge_again(judge=judge, actor=user)
    return redirect("evaluation:llm-judges", code=code)


@require_safe
def tuning_examples(request: HttpRequest, code: str) -> StreamingHttpResponse:
    """Stream the examples of the tuning part as JSON Lines, never those of the calibration part."""
    task, _user = find_task_and_editor(request, code)
    rows = (orjson.dumps(row) + b"\n" for row in iterate_tuning_rows(task))
    return lines(rows, f"{task.code}-to-tune-judges.jsonl", "application/x-ndjson")
