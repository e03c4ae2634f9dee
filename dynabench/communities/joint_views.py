"""The pages for submitting a model to all tasks of a community, and for the result."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.models import User
from core.accounts.people import get_person
from core.web.bodies import FORM_BYTES, limit_body
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.communities.forms import JointForm
from dynabench.communities.joint_services import (
    JointRefused,
    list_joint_kind_names,
    list_parts,
    submit_jointly,
)
from dynabench.communities.models import Community, JointSubmission
from dynabench.communities.permissions import can_manage
from dynabench.communities.views import find_community
from evaluation.isolation.uploads.chunked import add_file, discard_upload, get_max_upload_bytes
from evaluation.submissions.progress import describe_progress
from evaluation.submissions.selectors import prefetch_runs
from tasks.selectors import find_visible_tasks


def _get_max_form_bytes(user: User) -> int:
    """Return the maximum size in bytes of a form that contains a file."""
    return get_max_upload_bytes(user) + FORM_BYTES


@limit_body(_get_max_form_bytes)
@require_http_methods(["GET", "HEAD", "POST"])
def show_submission_form(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form and submit a model to all tasks. If some refuse, list their reasons."""
    community = find_community(request, slug)
    user = get_person(request)
    parts = {kind: list_parts(user, community, kind) for kind in list_joint_kind_names()}
    # Only kinds that one of the tasks takes from this person.
    kinds = [kind for kind in parts if parts[kind]]
    form_data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = JointForm(community, kinds, *form_data)
    answers: dict[str, str] = {}
    if form.is_valid():
        with show_as_form_error(form):
            try:
                joint = _submit_form(user, community, form)
            except JointRefused as refused:
                # The form shows the message, the table what each task said.
                answers = dict(refused.reasons)
                raise
            messages.success(
                request, _("Submission received. This page shows the progress for each task.")
            )
            return redirect("communities:joint", slug, joint.pk)
    values = {
        "community": community,
        "here": "submit",
        "runs": can_manage(user, community),
        "form": form,
        "parts": parts,
        "answers": answers.items(),
    }
    status = get_form_status(form)
    return render(request, "communities/submit.html", values, status=status)


def _submit_form(user: User, community: Community, form: JointForm) -> JointSubmission:
    """Submit the model that the form describes. Raises Refused.

    If it fails, delete the uploaded file, because the browser sends it again with the form.
    """
    fields: dict[str, Any] = dict(form.cleaned_data)
    file, upload = fields.pop("upload"), None
    if file:
        upload = add_file(user, file.name, file.size, file)
    try:
        return submit_jointly(community=community, owner=user, upload=upload, **fields)
    except BaseException:
        if upload:
            discard_upload(upload)
        raise


@require_safe
def show_joint_submission(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show the state of a joint submission in each task, to its owner only."""
    community = find_community(request, slug)
    own_joint = get_object_or_404(community.joint_submissions, pk=pk, owner=request.user)
    visible_submissions = prefetch_runs(
        own_joint.submissions.filter(task__in=find_visible_tasks(request.user))
    )
    submissions = visible_submissions.select_related(
        "task", "evaluation_set__evaluation_set"
    ).order_by("task__name", "evaluation_set__evaluation_set__name")
    values = {
        "community": community,
        "here": "submit",
        "runs": can_manage(request.user, community),
        "joint": own_joint,
        "rows": [
            (submission, describe_progress(submission, submission.runs.all()))
            for submission in submissions
        ],
    }
    return render(request, "communities/joint.html", values)
