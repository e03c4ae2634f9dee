"""The API of a configuration's versions: list, read, compare and restore them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person, get_public_name
from core.web.api import NewestFirst, read, read_query
from dynabench.manage.config_history import count_examples_by_version
from tasks.access import ALL_KINDS, find_task
from tasks.api.config import ChangedConfigSerializer, ConfigChangeSerializer, save_config_text
from tasks.config_changes import build_diff, hash_text
from tasks.models import ConfigVersion, Task
from tasks.permissions import can_edit


class ConfigVersionSerializer(serializers.ModelSerializer[ConfigVersion]):
    """A version of a configuration: its date, its author and its number of examples."""

    actor = serializers.SerializerMethodField(
        help_text="A pseudonym. Empty: the platform, a command or a deleted account."
    )
    version = serializers.SerializerMethodField(help_text="As returned by `config_get`.")
    is_in_force = serializers.SerializerMethodField()
    examples = serializers.SerializerMethodField()

    class Meta:
        model = ConfigVersion
        fields: Sequence[str] = (
            "number",
            "created_at",
            "actor",
            "version",
            "is_in_force",
            "examples",
        )
        read_only_fields = fields

    def get_actor(self, version: ConfigVersion) -> str:
        return get_public_name(version.actor)

    def get_version(self, version: ConfigVersion) -> str:
        return hash_text(version.text)

    def get_is_in_force(self, version: ConfigVersion) -> bool:
        task: Task = self.context["task"]
        return version.number == task.config_number

    def get_examples(self, version: ConfigVersion) -> int:
        example_counts: dict[int | None, int] = self.context["written"]
        return example_counts.get(version.number, 0)


class FullConfigVersionSerializer(ConfigVersionSerializer):
    """A version with its text."""

    config_text: Any = serializers.CharField(source="text", help_text="YAML.")

    class Meta(ConfigVersionSerializer.Meta):
        fields = (*ConfigVersionSerializer.Meta.fields, "config_text")


class ComparisonQuery(serializers.Serializer[Any]):
    """The version to compare with."""

    to = serializers.IntegerField(
        required=False, help_text="The newer version's number. Default: the current version."
    )


class ComparedConfigsSerializer(serializers.Serializer[Any]):
    """The differences between two versions."""

    older = serializers.IntegerField()
    newer = serializers.IntegerField()
    diff = serializers.CharField(help_text="Changed lines. Empty: no changes.")


class ConfigView(APIView):
    """Base view of a configuration's versions. Editors only."""

    write_scope = ApiToken.Scope.OWN

    @cached_property
    def task(self) -> Task:
        return find_task(self.request, self.kwargs["code"], can_edit, kinds=ALL_KINDS)

    def version(self, number: int) -> ConfigVersion:
        """Return a version of the task's configuration. Raises Http404."""
        rows = self.task.config_versions.select_related("actor__annotator")
        return get_object_or_404(rows, number=number)

    def build_serializer_context(self) -> dict[str, Any]:
        """Return the serializers' context: the task, and its number of examples by version."""
        return {"task": self.task, "written": count_examples_by_version(self.task)}


@extend_schema_view(get=extend_schema(operation_id="config_versions_list"))
class ConfigVersionList(ConfigView, generics.ListAPIView[ConfigVersion]):
    """The versions, newest first; none if the text was never changed. Editors only."""

    serializer_class = ConfigVersionSerializer
    pagination_class = NewestFirst
    # Only tells the schema which model it is about.
    queryset = ConfigVersion.objects.none()

    def get_queryset(self) -> QuerySet[ConfigVersion]:
        return self.task.config_versions.select_related("actor__annotator")

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **self.build_serializer_context()}


class ConfigVersionView(ConfigView):
    @extend_schema(operation_id="config_versions_get", responses=FullConfigVersionSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Show a version with its text. Editors only."""
        version = self.version(number)
        return Response(
            FullConfigVersionSerializer(version, context=self.build_serializer_context()).data
        )


class ConfigComparisonView(ConfigView):
    reads_query = ("GET",)

    @extend_schema(
        operation_id="config_versions_compare",
        parameters=[ComparisonQuery],
        responses=ComparedConfigsSerializer,
    )
    def get(self, request: Request, code: str, number: int) -> Response:
        """Show the differences between this version and a newer one. Editors only."""
        older = self.version(number)
        query = read_query(ComparisonQuery, request)
        newer_number = query.get("to", self.task.config_number)
        newer = self.task.config_versions.filter(number=newer_number).first()
        if newer is None:
            raise serializers.ValidationError({"to": ["This version doesn't exist."]})
        body = {"older": number, "newer": newer_number, "diff": build_diff(older.text, newer.text)}
        return Response(ComparedConfigsSerializer(body).data)


class RestoreView(ConfigView):
    @write("config_versions_return", ConfigChangeSerializer, ChangedConfigSerializer)
    def post(self, request: Request, code: str, number: int) -> Response:
        """Restore a version's text as the newest version. Editors only.

        Refused for the same reasons as changing the configuration by PUT.
        """
        version = self.version(number)
        change = read(ConfigChangeSerializer, request)
        editor = get_person(request)
        # By the service of a PUT: a version that is older than the open rounds may be refused.
        return save_config_text(self.task, version.text, editor, **change, field="number")


VERSION_PATH = "tasks/<slug:code>/config/versions/<int:number>/"
urlpatterns = [
    path("tasks/<slug:code>/config/versions/", ConfigVersionList.as_view(), name="config-versions"),
    path(VERSION_PATH, ConfigVersionView.as_view(), name="config-version"),
    path(f"{VERSION_PATH}compare/", ConfigComparisonView.as_view(), name="config-version-compare"),
    path(f"{VERSION_PATH}return/", RestoreView.as_view(), name="config-version-return"),
]
