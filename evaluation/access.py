"""Who may have what of datasets and submitted models, on pages and in the API."""

from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from dynabench.accounts.models import User
from evaluation.models import Dataset, DatasetFile, EvaluationRun, Submission
from evaluation.submissions.model_page import (
    Viewer,
    all_submissions,
    as_seen,
    may_see_scores,
    may_see_wrong,
    viewer_of,
)
from tasks.access import find_task
from tasks.permissions import can_read


def find_model(request: HttpRequest | Request, pk: UUID) -> tuple[Submission, Viewer]:
    """The submission and what this person is to it; 404 for who may not know of it."""
    submission = get_object_or_404(all_submissions(), pk=pk)
    viewer = viewer_of(request.user, submission)
    if viewer is None:
        raise Http404
    return submission, viewer


def find_owned(request: HttpRequest | Request, pk: UUID) -> tuple[Submission, User]:
    """The submission and its owner; for everybody else it is not there."""
    submission, viewer = find_model(request, pk)
    if not viewer.is_owner or not isinstance(request.user, User):
        raise Http404
    return submission, request.user


def find_run(
    request: HttpRequest | Request, pk: UUID, run_id: UUID
) -> tuple[EvaluationRun, Viewer]:
    """A run that the model's owner or the task's may look into."""
    run, viewer = _find_run(request, pk, run_id)
    if not viewer.is_inside or not may_see_scores(run, viewer):
        raise Http404
    return as_seen(run, viewer), viewer


def find_wrong(
    request: HttpRequest | Request, pk: UUID, run_id: UUID
) -> tuple[EvaluationRun, Viewer]:
    """A run of which this person may read what was wrong; 404 for others."""
    run, viewer = _find_run(request, pk, run_id)
    if not may_see_wrong(run, viewer):
        raise Http404
    return run, viewer


def _find_run(
    request: HttpRequest | Request, pk: UUID, run_id: UUID
) -> tuple[EvaluationRun, Viewer]:
    """A run of a model that stands."""
    submission, viewer = find_model(request, pk)
    rows = EvaluationRun.objects.select_related("version__evaluation_set", "version__dataset")
    run = get_object_or_404(rows, pk=run_id, submission=submission)
    if submission.withdrawn_at:
        raise Http404
    run.submission = submission
    return run, viewer


def find_dataset_file(
    request: HttpRequest | Request, code: str, number: int, version: int, name: str
) -> DatasetFile:
    """A file of a released version: public ones for who sees the task, the others for members."""
    task = find_task(request, code)
    files = DatasetFile.objects.filter(
        dataset__round__task=task,
        dataset__round__number=number,
        dataset__version=version,
        dataset__state=Dataset.State.DONE,
    )
    file = next((file for file in files if file.name == name), None)
    if file is None or not (file.is_public or can_read(request.user, task)):
        raise Http404
    return file
