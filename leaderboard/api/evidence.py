"""The raw answers behind a snapshot."""

from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.web.api import JSON_LINES_RESPONSE
from core.web.downloads import respond_with_lines
from evaluation.models import EvaluationSetVersion
from leaderboard.models import Snapshot
from leaderboard.snapshots.evidence import (
    iterate_answer_lines,
    iterate_label_lines,
    iterate_perturbed_lines,
    list_evidence,
)
from tasks.access import find_task
from tasks.permissions import can_download


class SetEvidenceBody(serializers.Serializer[Any]):
    """A set of the snapshot."""

    name = serializers.CharField()
    version = serializers.IntegerField()
    is_public = serializers.BooleanField(
        help_text="Whether its labels, and with them all answers, can be downloaded."
    )


class EvidenceBody(serializers.Serializer[Any]):
    """What is needed to recompute a snapshot."""

    config_text = serializers.CharField(
        help_text="The task's configuration, in YAML, as it was when the snapshot was taken."
    )
    is_config_kept = serializers.BooleanField(
        help_text="False: an old snapshot, and the configuration is today's."
    )
    sets = SetEvidenceBody(many=True)


def _find_snapshot(request: Request, code: str, number: int) -> Snapshot:
    """Return a snapshot whose evidence the person may take. Raises Http404, PermissionDenied."""
    # Raises Http404 for a task that the person may not see.
    task = find_task(request, code)
    if not can_download(request.user, task):
        raise PermissionDenied
    return generics.get_object_or_404(task.snapshots.select_related("task"), number=number)


def _find_version(snapshot: Snapshot, name: str) -> EvaluationSetVersion:
    """Return the version of a set in the snapshot. Raises Http404 if its labels are not public."""
    for each in list_evidence(snapshot):
        if each.name == name and each.version is not None:
            return each.version
    raise Http404


class EvidenceView(APIView):
    is_public = True

    @extend_schema(operation_id="snapshots_evidence", responses=EvidenceBody)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return what the cells of a snapshot are recomputed from, as `dynabench verify` does.

        Labels and answers of a set can be downloaded once a release has published its labels.
        """
        snapshot = _find_snapshot(request, code, number)
        sets = [
            {"name": each.name, "version": each.number, "is_public": each.version is not None}
            for each in list_evidence(snapshot)
        ]
        body = {
            "config_text": snapshot.config_text or snapshot.task.config_text,
            "is_config_kept": bool(snapshot.config_text),
            "sets": sets,
        }
        return Response(EvidenceBody(body).data)


class EvidenceLabelsView(APIView):
    is_public = True
    throttle, throttles_reads = "export", True

    @extend_schema(operation_id="snapshots_labels", responses=JSON_LINES_RESPONSE)
    def get(self, request: Request, code: str, number: int, name: str) -> HttpResponseBase:
        """Download the examples of a set as lines `{"id", "inputs", "gold", "slices"}`."""
        version = _find_version(_find_snapshot(request, code, number), name)
        file_name = f"{code}-{name}-v{version.version}-labels.jsonl"
        return respond_with_lines(iterate_label_lines(version), file_name)


class EvidenceAnswersView(APIView):
    is_public = True
    throttle, throttles_reads = "export", True

    @extend_schema(operation_id="snapshots_answers", responses=JSON_LINES_RESPONSE)
    def get(self, request: Request, code: str, number: int, name: str) -> HttpResponseBase:
        """Download the answers of all models of a snapshot on a set.

        For each model there is a line `{"model", "seed", "answers", "measurements", "judged"}`, and
        then as many lines `{"id", "answer"}` in the order of the labels. `measurements` is what its
        speed and memory were computed from. `judged` has what the task's judge and the owners' own
        metrics said of each answer.
        """
        snapshot = _find_snapshot(request, code, number)
        version = _find_version(snapshot, name)
        file_name = f"{code}-snapshot-{number}-{name}-answers.jsonl"
        return respond_with_lines(iterate_answer_lines(snapshot, version), file_name)


class EvidencePerturbedView(APIView):
    is_public = True
    throttle, throttles_reads = "export", True

    @extend_schema(operation_id="snapshots_perturbed", responses=JSON_LINES_RESPONSE)
    def get(self, request: Request, code: str, number: int, name: str) -> HttpResponseBase:
        """Download the answers of all models of a snapshot to the perturbed examples of a set.

        For each model and suite there is a line `{"model", "suite", "seed", "examples"}`, and then
        as many lines `{"id", "answers": [[kind, answer], …]}`, in the order of the labels.
        """
        snapshot = _find_snapshot(request, code, number)
        version = _find_version(snapshot, name)
        file_name = f"{code}-snapshot-{number}-{name}-perturbed.jsonl"
        return respond_with_lines(iterate_perturbed_lines(snapshot, version), file_name)
