"""API views of released datasets and their files, and of a round's current examples."""

from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from core.web.api import JSON_LINES_RESPONSE
from core.web.downloads import respond_with_file_part, respond_with_lines
from evaluation.dataset_releases.reading import export_lines, find_dataset_file
from evaluation.dataset_releases.stored_files import open_checked_file
from evaluation.dataset_releases.undo_services import note_download
from evaluation.models import Dataset, DatasetFile, Publication
from tasks.access import find_task, require_permission
from tasks.api.tasks import TaskPartView
from tasks.permissions import can_download, can_read

DONE_STATE = Dataset.State.DONE


class DatasetFileSerializer(serializers.ModelSerializer[DatasetFile]):
    """A file of a dataset."""

    url = serializers.SerializerMethodField(help_text="Answers `Range`.")

    class Meta:
        model = DatasetFile
        fields = ("name", "size", "sha256", "is_public", "url")

    def get_url(self, file: DatasetFile) -> str:
        """Return the file's API URL."""
        dataset = file.dataset
        url_arguments = (dataset.round.task.code, dataset.round.number, dataset.version, file.name)
        return str(
            self.context["request"].build_absolute_uri(
                reverse("v1:dataset-file", args=url_arguments)
            )
        )


class PublicationSerializer(serializers.ModelSerializer[Publication]):
    """A place outside of the site where a dataset was published."""

    class Meta:
        model = Publication
        fields = ("place", "url", "doi", "published_at")


class DatasetSerializer(serializers.ModelSerializer[Dataset]):
    """A released version of a round's data."""

    name = serializers.CharField(source="__str__")
    round = serializers.IntegerField(source="round.number")
    released_at = serializers.DateTimeField(source="finished_at", allow_null=True)
    license = serializers.CharField(source="options.license", allow_blank=True)
    description = serializers.CharField(source="options.description", allow_blank=True)
    files = DatasetFileSerializer(source="shown", many=True)
    publications = PublicationSerializer(source="published", many=True)

    class Meta:
        model = Dataset
        fields = (
            *("name", "round", "version", "released_at", "license", "description", "files"),
            "publications",
        )


@extend_schema_view(get=extend_schema(operation_id="datasets_list"))
class Datasets(TaskPartView, generics.ListAPIView[Dataset]):
    """List the released versions of all rounds with their files. Members also see private files."""

    is_public = True
    serializer_class = DatasetSerializer
    queryset = Dataset.objects.none()

    def get_queryset(self) -> QuerySet[Dataset]:
        require_permission(self.request.user, self.task, can_download)
        files = DatasetFile.objects.select_related("dataset__round__task")
        if not can_read(self.request.user, self.task):
            files = files.filter(is_public=True)
        finished_datasets = Dataset.objects.filter(round__task=self.task, state=DONE_STATE)
        return finished_datasets.select_related("round__task").prefetch_related(
            Prefetch("files", files, "shown"),
            Prefetch("publications", Publication.objects.exclude(published_at=None), "published"),
        )


FILE_RESPONSE = OpenApiResponse(
    OpenApiTypes.BINARY, description="The file, or the part that `Range` names."
)


class DatasetFileView(APIView):
    is_public = True

    @extend_schema(
        operation_id="dataset_files_get",
        parameters=[OpenApiParameter("Range", str, "header", description="`bytes=N-` goes on.")],
        responses={
            (200, "application/octet-stream"): FILE_RESPONSE,
            (206, "application/octet-stream"): FILE_RESPONSE,
        },
    )
    def get(
        self, request: Request, code: str, number: int, version: int, name: str
    ) -> HttpResponseBase:
        """Download a file of a dataset, or the part of it that a `Range` header asks for.

        Its SHA-256 is in the ETag and in `X-Content-SHA256`. Once a file has been downloaded, the
        release cannot be undone.
        """
        file = find_dataset_file(request, code, number, version, name)
        stored_file = open_checked_file(file)
        # HEAD downloads nothing. Checked before the first byte: the release may have been undone.
        if request.method == "GET" and not note_download(file.dataset):
            raise Http404
        return respond_with_file_part(request, stored_file, file.size, name, file.sha256)


class RoundExport(APIView):
    throttle, throttles_reads = "export", True

    @extend_schema(operation_id="rounds_export", responses=JSON_LINES_RESPONSE)
    def get(self, request: Request, code: str, number: int) -> HttpResponseBase:
        """Download all examples that were not withdrawn, as JSON lines. Members only.

        The fields are those of a dataset.
        """
        task = find_task(request, code, can_read)
        round = get_object_or_404(task.rounds.select_related("task"), number=number)
        chunks = (chunk.encode() for chunk in export_lines(round))
        return respond_with_lines(chunks, f"{code}-round{number}.jsonl")
