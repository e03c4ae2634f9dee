"""The API's views of a task's configuration."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.text.words import normalise_line_ends
from core.web.api import read, read_query
from tasks.access import ALL_KINDS, find_task, find_task_and_editor
from tasks.config.dynabench_export import VERSIONS, export_to_dynabench
from tasks.config.loading import build_json_schema
from tasks.config.parsing import MAX_BYTES, ConfigError, Problem
from tasks.config_changes import (
    build_diff,
    check_change,
    check_new_config,
    find_fixed_parts,
    hash_text,
)
from tasks.models import Task
from tasks.permissions import can_edit
from tasks.services import save_config


class ConfigProblemSerializer(serializers.Serializer[Any]):
    """A warning and its position in the text. Lines and columns are counted from 1."""

    path = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    message = serializers.CharField()
    fix = serializers.CharField()


class ConfigSerializer(serializers.Serializer[Any]):
    """A task's stored configuration."""

    config_text = serializers.CharField(help_text="YAML.")
    version = serializers.CharField(help_text="A PUT names it.")
    fixed_because = serializers.CharField(help_text="Why parts may not change; empty: all may.")
    fixed = serializers.ListField(child=serializers.CharField())
    warnings = ConfigProblemSerializer(many=True)


class ConfigChangeSerializer(serializers.Serializer[Any]):
    """The fields of every request to change a configuration."""

    version = serializers.CharField(max_length=64, help_text="Of the text that was edited.")
    dry_run = serializers.BooleanField(
        default=False, help_text="Only check it, and tell what would change."
    )


class NewConfigSerializer(ConfigChangeSerializer):
    """A new configuration for a task."""

    config_text = serializers.CharField(max_length=MAX_BYTES, trim_whitespace=False)


class ChangedConfigSerializer(ConfigSerializer):
    """A configuration with the changes that a PUT made or, for a dry run, would make."""

    diff = serializers.CharField(help_text="The lines that differ; empty: none.")


class ConfigView(APIView):
    """A task's configuration."""

    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="config_get", responses=ConfigSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Return the configuration, its version, fixed parts and warnings.

        Task editors only.
        """
        task = find_task(request, code, can_edit, kinds=ALL_KINDS)
        return Response(
            ConfigSerializer(_build_config_body(task, check_change(task, task.config_text)[1])).data
        )

    @write("config_save", NewConfigSerializer, ChangedConfigSerializer)
    def put(self, request: Request, code: str) -> Response:
        """Check a new configuration and, except in a dry run, store it.

        A refusal lists all errors.
        """
        task, editor = find_task_and_editor(request, code, kinds=ALL_KINDS)
        data = read(NewConfigSerializer, request)
        text = normalise_line_ends(data.pop("config_text"))
        return save_config_text(task, text, editor, **data)


def save_config_text(
    task: Task, text: str, editor: User, *, version: str, dry_run: bool, field: str = "config_text"
) -> Response:
    """Store a configuration unless this is a dry run, and return the response with the diff.

    field: the request field to which errors are attached. Raises StaleConfig, ValidationError.
    """
    old_text = task.config_text
    try:
        warnings = check_new_config(task, text, base=version)[1]
        if not dry_run:
            task = save_config(task=task, text=text, base=version, actor=editor)
    except ConfigError as error:
        raise build_config_error(error, field) from None
    body = {
        **_build_config_body(task, warnings),
        "config_text": text,
        "diff": build_diff(old_text, text),
    }
    return Response(ChangedConfigSerializer(body).data)


def build_config_error(
    error: ConfigError, field: str = "config_text"
) -> serializers.ValidationError:
    """Return a validation error that lists each error of a configuration with its position."""
    errors = []
    for problem in error.problems:
        if problem.severity == "error":
            errors.append(str(problem))
    return serializers.ValidationError({field: errors})


def _build_config_body(task: Task, warnings: list[Problem]) -> dict[str, Any]:
    fixed_reason, fixed_parts = find_fixed_parts(task)
    return {
        "config_text": task.config_text,
        "version": hash_text(task.config_text),
        "fixed_because": fixed_reason,
        "fixed": fixed_parts,
        "warnings": warnings,
    }


class DynabenchConfigSerializer(serializers.Serializer[Any]):
    """A configuration in the format of Dynabench 1.0 or 2.0."""

    text = serializers.CharField(help_text="YAML; its first lines are the notes.")
    notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the file leaves out because it has no counterpart.",
    )


class DynabenchQuery(serializers.Serializer[Any]):
    """The Dynabench version to export for."""

    version = serializers.ChoiceField(VERSIONS, default=VERSIONS[0])


class DynabenchConfigView(APIView):
    """A task's configuration in the format of Dynabench 1.0 or 2.0."""

    reads_query = ("GET",)

    @extend_schema(
        operation_id="config_dynabench_get",
        parameters=[DynabenchQuery],
        responses=DynabenchConfigSerializer,
    )
    def get(self, request: Request, code: str) -> Response:
        """Return the converted configuration, or refuse if the format cannot express the task.

        Task editors only.
        """
        task = find_task(request, code, can_edit, kinds=ALL_KINDS)
        exported_config = export_to_dynabench(
            task.config, read_query(DynabenchQuery, request)["version"]
        )
        return Response(DynabenchConfigSerializer(asdict(exported_config)).data)


class ConfigSchemaView(APIView):
    """The schema of task configurations."""

    is_public = True

    @extend_schema(operation_id="config_schema_get", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Return the JSON Schema of configurations, for use in text editors."""
        return Response(build_json_schema())
