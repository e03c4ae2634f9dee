"""Snapshots of a leaderboard."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import (
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import Pages, read, respond_with_version
from core.web.form_fields import build_request_field
from leaderboard.api.arenas import ArenaTable
from leaderboard.api.schemas import StoredBoard
from leaderboard.board.exports import write_snapshot_bibtex
from leaderboard.models import Snapshot
from leaderboard.snapshots import services
from leaderboard.snapshots.diff import describe_changes
from leaderboard.snapshots.views import SnapshotForm
from tasks.access import ALL_KINDS, find_task, find_task_and_editor


class ListedSnapshot(serializers.ModelSerializer[Snapshot]):
    """A snapshot without its board."""

    class Meta:
        model = Snapshot
        fields = ("number", "title", "description", "sha256", "made_at")


class StoredArena(ArenaTable):
    """The models of an arena as a snapshot stores them."""

    code = serializers.CharField(help_text="Version and digest of the code.")
    config_sha256 = serializers.CharField(
        required=False, help_text="Digest of the task's configuration. Not in old snapshots."
    )


@extend_schema_field(PolymorphicProxySerializer("KeptTable", [StoredBoard, StoredArena], None))
class TableField(serializers.Field[Any, Any, Any, Any]):
    """The table of a snapshot: a board, or the models of an arena."""


class SnapshotDetail(ListedSnapshot):
    """A snapshot. The digest is that of `table` as JSON with sorted keys and no spaces."""

    bibtex = serializers.CharField()
    changes = serializers.ListField(
        child=serializers.CharField(), help_text="Changes since the previous snapshot."
    )
    table = TableField()

    class Meta(ListedSnapshot.Meta):
        fields = (*ListedSnapshot.Meta.fields, "bibtex", "changes", "table")  # type: ignore[assignment]


class NewSnapshot(serializers.Serializer[Any]):
    """The title of a snapshot, and the reason for taking it."""

    title = build_request_field(SnapshotForm, "title")
    description = build_request_field(SnapshotForm, "description")


class SnapshotPages(Pages):
    """Pagination by page number."""

    ordering = "-number"


@extend_schema_view(get=extend_schema(operation_id="snapshots_list"))
class Snapshots(generics.ListAPIView[Snapshot]):
    """All snapshots of a task, newest first."""

    is_public = True
    write_scope = ApiToken.Scope.OWN
    serializer_class = ListedSnapshot
    pagination_class = SnapshotPages
    queryset = Snapshot.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]
        task = find_task(self.request, self.kwargs["code"], kinds=ALL_KINDS)
        return task.snapshots.defer("table", "config_text")

    @write("snapshots_create", NewSnapshot, {201: ListedSnapshot})
    def post(self, request: Request, code: str) -> Response:
        """Store the public board as it is now, permanently. For the task's editors."""
        task, user = find_task_and_editor(request, code, kinds=ALL_KINDS)
        values = read(NewSnapshot, request)
        snapshot = services.take_snapshot(task=task, actor=user, **values)
        return Response(ListedSnapshot(snapshot).data, status.HTTP_201_CREATED)


class RefreezeView(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("rates_refreeze", None, {201: ListedSnapshot})
    def post(self, request: Request, code: str) -> Response:
        """Freeze the exchange rates again and take a snapshot. This changes all scores."""
        task, user = find_task_and_editor(request, code)
        snapshot = services.refreeze_rates(task=task, actor=user)
        return Response(ListedSnapshot(snapshot).data, status.HTTP_201_CREATED)


class SnapshotView(APIView):
    is_public = True

    @extend_schema(operation_id="snapshots_get", responses=SnapshotDetail)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return a snapshot's board, digest, citation and changes, with an ETag."""
        task = find_task(request, code, kinds=ALL_KINDS)
        snapshot = generics.get_object_or_404(task.snapshots, number=number)
        page = reverse("leaderboard:snapshot", args=[code, number])
        address = request.build_absolute_uri(page)

        def build_body() -> dict[str, Any]:
            previous_snapshot = task.snapshots.filter(number__lt=number).first()
            changes: list[str] = []
            if previous_snapshot:
                changes = describe_changes(previous_snapshot.table, snapshot.table)
            return {
                **ListedSnapshot(snapshot).data,
                "bibtex": write_snapshot_bibtex(
                    snapshot.table, number, snapshot.title, snapshot.sha256, address
                ),
                "changes": changes,
                "table": snapshot.table,
            }

        return respond_with_version(request, f"{snapshot.sha256} {address}", build_body)
