"""The page of one submitted model, and the actions of its owner."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person
from core.text.markdown import render_markdown
from core.web.downloads import respond_with_attachment
from core.web.htmx import get_form_status, render_page
from core.web.lists import RowStream, list_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.judges.llm_judges.selectors import find_judge_scores
from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.services import repeat_run
from evaluation.runs.short.selectors import explain_model_refusal
from evaluation.runs.short.services import evaluate_in_full
from evaluation.runs.whole_rounds import find_shown_whole_rounds
from evaluation.submissions import services as submissions
from evaluation.submissions.chat_description import describe_chat
from evaluation.submissions.fooling import make_fooling_values
from evaluation.submissions.forms import AnonymousForm, CardForm, EmbargoForm
from evaluation.submissions.near_copies import find_model_near_copies
from evaluation.submissions.progress import (
    add_queue_position,
    describe_next_step,
    describe_progress,
    list_progress_steps,
)
from evaluation.submissions.prompt_form import CapForm
from evaluation.submissions.results import (
    find_extreme_slices,
    find_loop_figures,
    group_results_by_set,
)
from evaluation.submissions.selectors import list_runs
from evaluation.submissions.short_evaluations import find_shown_evaluations
from evaluation.submissions.visibility import (
    Viewer,
    find_owned_submission,
    find_run,
    find_shown_name,
    find_shown_owner,
    find_shown_team,
    find_submission,
    hide_model_output,
    may_see_scores,
    may_see_wrong_answers,
)
from evaluation.test_sets.seen_in_training import find_training_sources

LOG_LINES = 200
SHOWN_FAILURES = 3
"""The number of wrongly answered examples on a model's page."""


@login_not_required
@require_safe
def show_model(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show a model's progress, results and card, and the actions of its owner."""
    submission, viewer = find_submission(request, pk)
    runs = list_runs(submission)
    progress = add_queue_position(describe_progress(submission, runs), runs)
    values: dict[str, Any] = {
        "submission": submission,
        "task": submission.task,
        "viewer": viewer,
        "name": find_shown_name(submission, viewer),
        "owner": find_shown_owner(submission, viewer),
        "team": find_shown_team(submission, viewer),
        "progress": progress,
        "steps": list_progress_steps(progress),
        "is_news": request.GET.get("seen") != progress.key,  # read aloud only if it has changed
        "description": render_markdown(submission.description),
        "embargo_form": EmbargoForm(initial=vars(submission)),
        "anonymous_form": AnonymousForm(initial=vars(submission)),
        "others": _find_other_files(submission, viewer),
        "in_the_loop": partial(find_loop_figures, submission),  # evaluated only where it is shown
        "site_url": settings.SITE_URL,
        "chat": describe_chat(submission, viewer),
        "can_be_short": not explain_model_refusal(submission),
        "short_evaluations": find_shown_evaluations(submission, viewer),
        "cap_form": CapForm(initial=submission.chat),
        **make_fooling_values(submission, viewer),
        **_make_result_values(submission, viewer, runs),
    }
    if not submission.withdrawn_at and not values["has_scores"]:
        values["next_step"] = describe_next_step(
            progress, is_short_only=bool(submission.chat.get("short_only"))
        )
        # Waiting evaluations have nothing else to show.
        values["results"] = [found for found in values["results"] if found.has_failed]
    return render_page(request, "evaluation/model.html", values, block_name="job")


def _find_other_files(submission: Submission, viewer: Viewer) -> list[Submission]:
    """Return the model's predictions for other sets that the viewer may see."""
    if not KINDS[submission.kind].is_file_of_answers or submission.withdrawn_at:
        return []
    files = submissions.find_files(submission).exclude(pk=submission.pk)
    if not viewer.is_inside:
        files = files.filter(is_published=True)
    return list(files.select_related("evaluation_set__evaluation_set"))


def _make_result_values(
    submission: Submission, viewer: Viewer, runs: list[EvaluationRun]
) -> Mapping[str, Any]:
    """Return the template values for the scores and runs that the viewer may see."""
    if submission.withdrawn_at:
        return {"results": [], "has_scores": False}
    visible_runs = [hide_model_output(run, viewer) for run in runs if may_see_scores(run, viewer)]
    main_metric, is_exact = submission.task.config.metrics.main, viewer.is_task_owner
    inspectable_ids = {run.pk for run in visible_runs if may_see_wrong_answers(run, viewer)}
    all_versions = {run.version_id for run in runs}
    visible_versions = {run.version_id for run in visible_runs}
    results = group_results_by_set(
        visible_runs,
        main_metric,
        is_exact=is_exact,
        training_sources=find_training_sources(submission),
    )
    return {
        "results": results,
        "has_scores": any(found.scores or found.sealed for found in results),
        "extremes": find_extreme_slices(results),
        "hidden": len(all_versions - visible_versions),
        "wrong": inspectable_ids,
        "near_copies": find_model_near_copies(visible_runs, viewer),
        "leak_trials": _find_leak_trials(submission, viewer),
        "whole_rounds": find_shown_whole_rounds(visible_runs, is_exact=is_exact),
        "llm_scores": _find_llm_scores(submission, visible_runs, is_exact),
        "failures": partial(
            _make_failure_values, [run for run in visible_runs if run.pk in inspectable_ids]
        ),
        "can_publish": any(run.outcome == "ok" for run in runs),
    }


def _find_llm_scores(
    submission: Submission, runs: list[EvaluationRun], is_exact: bool
) -> list[Any]:
    """Return the language models' judgements of free-text answers; empty for other tasks.

    Judgements on sealed sets are included only if `is_exact`.
    """
    if not submission.task.config.has_free_answers:
        return []
    return find_judge_scores([run for run in runs if is_exact or not run.version.is_sealed])


def _find_leak_trials(submission: Submission, viewer: Viewer) -> list[Any]:
    """Return the model's trials of leaks as the viewer may see them."""
    # Few models have any, and the others' pages need no numpy.
    if not submission.leak_trials.exists():
        return []
    from evaluation.runs.leak_trials import find_shown_trials

    return find_shown_trials([submission.pk], is_exact=viewer.is_task_owner)


def _make_failure_values(runs: list[EvaluationRun]) -> Mapping[str, Any]:
    """Return the first run with wrong answers and the first of them, as `run` and `examples`.

    Returns {} if there are none.
    """
    from evaluation.submissions.mistakes import find_wrong_answers  # loads numpy

    for run in runs:
        if examples := find_wrong_answers(run, 0, SHOWN_FAILURES):
            return {"run": run, "examples": examples}
    return {}


@require_http_methods(["GET", "POST"])
def change_card(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Let the owner change the model card."""
    submission, user = find_owned_submission(request, pk)
    form = CardForm(request.POST or None, initial=vars(submission))
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            submissions.update_card(submission=submission, actor=user, card=form.card)
            messages.success(request, _("Model card saved."))
            return redirect("evaluation:model", pk)
    values = {"submission": submission, "task": submission.task, "form": form}
    status = get_form_status(form)
    return render(request, "evaluation/model_card.html", values, status=status)


@require_POST
def set_anonymity(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Set or clear the day until which names are hidden. Owners only."""
    texts = _("Enter a date in “Anonymous until”."), _("Date saved.")
    return _store_single_value(
        request, pk, AnonymousForm, submissions.set_anonymous_until, "until", texts
    )


@require_POST
def set_embargo(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Set or clear the day on which the model is published automatically. Owners only."""
    texts = _("Enter a date in “Publish on”."), _("Date saved.")
    return _store_single_value(request, pk, EmbargoForm, submissions.set_publish_on, "day", texts)


@require_POST
def store_cap(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Change the maximum cost of all evaluations of a chat model together. Owners only."""
    texts = _("Enter a number in “Cost cap”."), _("Cost cap saved.")
    return _store_single_value(request, pk, CapForm, submissions.change_cap, "most_cost", texts)


def _store_single_value(
    request: HttpRequest,
    pk: UUID,
    form_class: type[Form],
    service: Callable[..., Any],
    name: str,
    texts: tuple[str, str],
) -> HttpResponse:
    """Store the single value of a form through `service`, passed as the argument `name`.

    texts: the message for a wrong value, then the message after storing.
    """
    submission, user = find_owned_submission(request, pk)
    form = form_class(request.POST)
    if not form.is_valid():
        messages.error(request, texts[0])
        return redirect("evaluation:model", pk)
    (value,) = form.cleaned_data.values()
    change = partial(service, submission=submission, actor=user, **{name: value})
    return _change_and_redirect(request, pk, change, texts[1])


def _change_and_redirect(
    request: HttpRequest, pk: UUID, change: Callable[[], Any], text: str
) -> HttpResponse:
    """Make the change and redirect to the model's page with `text`, or with the refusal."""
    with show_as_message(request):
        change()
        messages.success(request, text)
    return redirect("evaluation:model", pk)


_try = submissions.let_others_try
ACTIONS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "open": (partial(_try, is_open=True), gettext_noop("Others can now try to fool this model.")),
    "close": (
        partial(_try, is_open=False),
        gettext_noop("Now only you and your team can try this model."),
    ),
    "publish": (submissions.publish_model, gettext_noop("Model published.")),
    "unpublish": (submissions.unpublish_model, gettext_noop("Model unpublished.")),
    "cancel": (submissions.cancel_evaluations, gettext_noop("Remaining work cancelled.")),
    "evaluate-in-full": (
        evaluate_in_full,
        gettext_noop("This model will be evaluated on all examples."),
    ),
}


@require_POST
def act_on_model(request: HttpRequest, pk: UUID, action: str) -> HttpResponse:
    """Do one of ACTIONS on a model, such as publishing it or cancelling its evaluations.

    Owners only.
    """
    submission, user = find_owned_submission(request, pk)
    service, text = ACTIONS[action]
    return _change_and_redirect(
        request, pk, partial(service, submission=submission, actor=user), _(text)
    )


@require_http_methods(["GET", "POST"])
def confirm_withdrawal(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show what withdrawing a model does; withdraw it on POST. Owners only."""
    submission, user = find_owned_submission(request, pk)
    if request.method == "POST":
        withdraw = partial(submissions.withdraw_model, submission=submission, actor=user)
        text = _("Model withdrawn and its files deleted.")
        return _change_and_redirect(request, pk, withdraw, text)
    values = {"submission": submission, "task": submission.task}
    return render(request, "evaluation/model_withdraw.html", values)


@require_POST
def repeat_model_run(request: HttpRequest, pk: UUID, run_id: UUID) -> HttpResponse:
    """Repeat one evaluation that failed through no fault of the model."""
    run = find_run(request, pk, run_id, lambda _, viewer: viewer.may_repeat)[0]
    repeat = partial(repeat_run, run=run, actor=get_person(request))
    return _change_and_redirect(request, pk, repeat, _("Evaluation queued again."))


@require_safe
def show_run_log(request: HttpRequest, pk: UUID, run_id: UUID) -> HttpResponse:
    """Show how a run ended and the end of its log, or download the whole log with `?download`."""
    run, viewer = find_run(request, pk, run_id)
    if "download" in request.GET:
        return respond_with_attachment(run.log, f"run-{run.pk}.log", "text/plain")
    lines = run.log.splitlines()
    values = {
        "run": run,
        "submission": run.submission,
        "task": run.submission.task,
        "name": find_shown_name(run.submission, viewer),
        "lines": "\n".join(lines[-LOG_LINES:]),
        "left_out": max(0, len(lines) - LOG_LINES),
    }
    return render(request, "evaluation/run_log.html", values)


@login_not_required
@require_safe
def show_wrong_answers(request: HttpRequest, pk: UUID, run_id: UUID) -> HttpResponse:
    """Show a page of examples that a model got wrong, to people who may see the correct answers."""
    from evaluation.submissions.mistakes import PAGE_SIZE, find_wrong_answers  # loads numpy

    run, viewer = find_run(request, pk, run_id, may_see_wrong_answers)
    # Counting them would require reading all answers.
    examples = RowStream(partial(find_wrong_answers, run))
    values = {
        "run": run,
        "submission": run.submission,
        "task": run.submission.task,
        "name": find_shown_name(run.submission, viewer),
        "page": list_page(request, examples, size=PAGE_SIZE),
    }
    return render(request, "evaluation/wrong.html", values)
