"""The pages on which a task's owners create judges and see their agreement with people."""

import orjson
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.web.downloads import respond_with_lines
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.judges.llm_judges.agreement import MIN_EXAMPLES
from evaluation.judges.llm_judges.first_contact import contact_judge
from evaluation.judges.llm_judges.forms import JudgeForm
from evaluation.judges.llm_judges.questions import has_criteria
from evaluation.judges.llm_judges.selectors import (
    find_calibrated_judges,
    find_judge_scores,
    find_judged_answers,
)
from evaluation.judges.llm_judges.services import create_judge, iterate_tuning_rows, rerun_judge
from evaluation.models import EvaluationRun
from tasks.access import find_task_and_editor
from tasks.targets.contact_pages import show_test_result


@require_http_methods(["GET", "POST"])
def show_llm_judges(request: HttpRequest, code: str) -> HttpResponse:
    """Show a task's judges with their agreement and scores, and the form for a new judge."""
    task, user = find_task_and_editor(request, code)
    form = JudgeForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            judge = create_judge(task=task, actor=user, **form.cleaned_data)
            show_test_result(request, judge.name, contact_judge(judge, user))
            return redirect("evaluation:llm-judges", code=code)
    splits: list[str] = []
    if task.config.has_free_answers:
        splits = [judgement.split for judgement in find_judged_answers(task)]
    values = {
        "task": task,
        "form": form,
        "judges": find_calibrated_judges(task),
        "least": MIN_EXAMPLES,
        "asks_criteria": has_criteria(task.config),
        "to_tune": splits.count("tune"),
        "to_calibrate": splits.count("calibrate"),
        "scores": find_judge_scores(EvaluationRun.objects.filter(submission__task=task)),
    }
    status = get_form_status(form)
    return render(request, "evaluation/llm_judges.html", values, status=status)


@require_POST
def rerun_llm_judge(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Queue a judge again for new answers."""
    task, user = find_task_and_editor(request, code)
    judge = get_object_or_404(task.llm_judges, pk=pk)
    with show_as_message(request):
        rerun_judge(judge=judge, actor=user)
    return redirect("evaluation:llm-judges", code=code)


@require_safe
def export_tuning_examples(request: HttpRequest, code: str) -> StreamingHttpResponse:
    """Stream the examples of the tuning part as JSON Lines, never those of the calibration part."""
    task, _user = find_task_and_editor(request, code)
    rows = (orjson.dumps(row) + b"\n" for row in iterate_tuning_rows(task))
    return respond_with_lines(rows, f"{task.code}-to-tune-judges.jsonl", "application/x-ndjson")
