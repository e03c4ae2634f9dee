"""Pages on which models are submitted, and lists of them."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.models import User
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.bodies import FORM_BYTES, limit_body
from core.web.htmx import render_page
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.contract import GIB
from evaluation.isolation.uploads.allowances import get_max_models_per_day
from evaluation.isolation.uploads.chunked import add_file, discard_upload, get_max_upload_bytes
from evaluation.kinds import Words, find_kinds
from evaluation.models import Upload
from evaluation.submissions.forms import SubmitForm, make_answer_line
from evaluation.submissions.hub_card import fetch_card
from evaluation.submissions.kinds import SubmissionKind, find_submission_kind
from evaluation.submissions.kinds.base import GROUP_TITLES
from evaluation.submissions.near_copies import find_task_near_copies
from evaluation.submissions.progress import describe_progress
from evaluation.submissions.prompt_form import PromptForm
from evaluation.submissions.results import list_submissions_with_scores, merge_files
from evaluation.submissions.selectors import find_person_submissions, find_public_models
from evaluation.submissions.services import (
    check_quota,
    find_remaining_quota,
    submit_model,
)
from evaluation.submissions.teams.selectors import find_teams
from evaluation.test_sets.selectors import select_open_versions
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import cache_roles, can_edit, can_submit

if TYPE_CHECKING:
    from evaluation.runs.chat.estimate import Estimate


def _find_body_limit(user: User) -> int:
    """Return the maximum size of a form with a whole file, in bytes."""
    return get_max_upload_bytes(user) + FORM_BYTES  # the file and the rest of the form


@limit_body(_find_body_limit)
@require_http_methods(["GET", "POST"])
def show_submission_form(request: HttpRequest, code: str) -> HttpResponse:
    """Show the choice of kinds, then the form of the chosen kind; submit the model on POST.

    Other buttons of the form fill in the card from the hub, or estimate the cost.
    """
    task = find_task(request, code, can_submit)
    user = get_person(request)
    kind = find_submission_kind(request.POST.get("kind") or request.GET.get("kind", ""))
    form, rules = None, _make_rule_values(user, task)
    if kind and kind.fits(task.config):
        asks_hub = "read_card" in request.POST
        data: QueryDict | None = request.POST or None
        if asks_hub:
            data = _add_hub_card(request)
        files = request.FILES or None
        form = kind.form(task, kind, data, files, find_teams(user))
        is_sent = request.method == "POST" and not asks_hub and form.is_valid()
        wants_estimate = "estimate" in request.POST and form.has_estimate
        if is_sent and wants_estimate and isinstance(form, PromptForm):
            rules["estimate"] = _estimate_cost(task, form)
        elif is_sent and (pk := _submit_form(user, task, form)):
            messages.success(request, _("Submission received. This page shows its progress."))
            return redirect("evaluation:model", pk)
    values = {"task": task, "form": form, **rules}
    status = 200
    if form and form.errors:
        status = 422
    return render_page(
        request, "evaluation/submit.html", values, block_name="estimate", status=status
    )


def _add_hub_card(request: HttpRequest) -> QueryDict:
    """Return the form data, completed from the model card on the hub."""
    data = request.POST.copy()
    with show_as_message(request):
        card = fetch_card(data.get("source", "").strip(), data.get("revision", "").strip())
        for name, value in card.items():
            if not data.get(name):  # never replaces what the person has typed
                data[name] = value
    return data


def _estimate_cost(task: Task, form: PromptForm) -> "Estimate | None":
    """Return the estimated cost of a chat model; None with an error in the form if refused."""
    from evaluation.runs.chat.estimate import estimate_cost  # loads numpy

    with show_as_form_error(form):
        return estimate_cost(task, form.chat)
    return None


def _make_rule_values(user: User, task: Task) -> dict[str, Any]:
    """Return the template values of the rules: allowed kinds, quotas and resource limits."""
    return {
        "groups": _group_kinds(task),
        "open_versions": select_open_versions(task),
        "answer_line": make_answer_line(task.config),
        "quota": find_remaining_quota(user, task),
        "most": get_max_models_per_day(task, user),
        "minutes": settings.EVALUATION_SECONDS // 60,
        "memory_gib": settings.EVALUATION_MEMORY_GIB,
        "cpus": settings.EVALUATION_CPUS,
        "largest_gib": get_max_upload_bytes(user) / GIB,
    }


def _group_kinds(task: Task) -> list[tuple[Words, list[SubmissionKind]]]:
    """Return the (title, kinds) of each group of kinds that the task accepts."""
    kinds_by_group: dict[str, list[SubmissionKind]] = {group: [] for group in GROUP_TITLES}
    for name in find_kinds(task.config):
        kind = find_submission_kind(name)
        assert kind  # the list contains only kinds that people can submit
        kinds_by_group[kind.group].append(kind)
    # A task may accept no kind of a group.
    return [(GROUP_TITLES[group], kinds) for group, kinds in kinds_by_group.items() if kinds]


def _submit_form(user: User, task: Task, form: SubmitForm) -> UUID | None:
    """Submit the model and return its id; None with an error in the form if refused."""
    get_annotator(user)  # the submitter's public name
    upload = None
    with show_as_form_error(form):
        check_quota(task, user, form.cleaned_data.get("team"))  # before copying gigabytes
        upload = _find_upload(user, form)
        return submit_model(task=task, owner=user, upload=upload, **form.arguments).pk
    if upload and form.cleaned_data.get("upload"):  # an upload in pieces may be used again
        discard_upload(upload)
    return None


def _find_upload(user: User, form: SubmitForm) -> Upload | None:
    """Return the upload from the form's file, or the upload made in pieces before it.

    None if the form names neither.
    """
    if file := form.cleaned_data.get("upload"):
        return add_file(user, file.name, file.size, file)
    if pk := form.cleaned_data.get("upload_id"):
        return Upload.objects.filter(pk=pk, owner=user).first()
    return None


@login_not_required
@require_safe
def list_models(request: HttpRequest, code: str) -> HttpResponse:
    """Show the models of a task that everybody may see, with their main score on each set.

    The task's editors also see its near-copies.
    """
    task = find_task(request, code)
    page = list_page(request, find_public_models(task))
    values = {"task": task, "page": page, **list_submissions_with_scores(page, task, request.user)}
    values["rows"] = merge_files(values["rows"])
    values["has_owners"] = any(row.owner or row.team for row in values["rows"])
    if can_edit(request.user, task):
        values["near_copies"] = list_page(request, find_task_near_copies(task), name="near-copies")
    return render(request, "evaluation/models.html", values)


@require_safe
def list_own_submissions(request: HttpRequest) -> HttpResponse:
    """Show all submissions of the user, newest first."""
    page = list_page(request, find_person_submissions(get_person(request)))
    rows = []
    # One query for all: whether a task of the list may still be submitted to.
    cache_roles(request.user, [submission.task for submission in page])
    for submission in page:
        rows.append((submission, describe_progress(submission, submission.runs.all())))
    return render(request, "evaluation/my_models.html", {"page": page, "rows": rows})
