"""The API's views of a task's targets: their set-up, and a test request to one."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.data.dry_runs import rehearse
from core.files.paths import shorten_source
from core.web.api import check_form, read
from tasks.access import ALL_KINDS, find_task, find_task_and_editor
from tasks.line_files import find_unstorable_reason
from tasks.models import TargetModel
from tasks.permissions import can_edit, can_review
from tasks.targets.endpoints.registry import ADAPTERS
from tasks.targets.first_contact import try_target
from tasks.targets.forms import MAX_SECRET_CHARS, SECRET_VALIDATOR, InputForm, SettingsForm
from tasks.targets.send_test import REASON_MESSAGES, NoAnswer, send_test
from tasks.targets.served import COPIED_FIELDS, find_served_models
from tasks.targets.services import add_target, change_target


class ContactSerializer(serializers.Serializer[Any]):
    """The result of the latest test request to a model."""

    at = serializers.DateTimeField(
        source="contact_at", allow_null=True, help_text="null: not since its settings changed."
    )
    reason = serializers.CharField(
        source="contact_reason", help_text="Why it gave no answer; empty: it answered."
    )
    detail = serializers.CharField(
        source="contact_detail", help_text="The answer, or the failure in the server's words."
    )


class LiveFailureSerializer(serializers.Serializer[Any]):
    """A target's recent failures while people were writing."""

    count = serializers.IntegerField(help_text="Without a day in between.")
    since = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    reason = serializers.CharField()
    detail = serializers.CharField(help_text="The last failure, in the server's words.")


class TargetModelSerializer(serializers.ModelSerializer[TargetModel]):
    """A target's settings, and how it last answered."""

    url: Any = serializers.CharField(help_text="Empty: our own model server.")
    options = serializers.DictField(help_text="Of the adapter.")
    serving = serializers.DictField(help_text="How our model server loads it.")
    contact = ContactSerializer(
        source="*", help_text="What it answered when it was last asked or tested."
    )
    failure = LiveFailureSerializer(allow_null=True, help_text="null: it never failed.")
    has_secret = serializers.SerializerMethodField(
        help_text="Whether a bearer secret is sent to it. Nobody can read the secret."
    )

    class Meta:
        model = TargetModel
        fields = read_only_fields = (
            "id",
            "name",
            "adapter",
            "url",
            "source",
            "revision",
            "options",
            "serving",
            "gpus",
            "secret_env",
            "has_secret",
            "created_at",
            "contact",
            "failure",
        )

    def get_has_secret(self, target: TargetModel) -> bool:
        return bool(target.sealed_secret or target.secret_env)

    def to_representation(self, target: TargetModel) -> dict[str, Any]:
        """Return the target's fields. Non-editors see only the name of a folder of this server."""
        body = super().to_representation(target)
        if not getattr(self.context.get("view"), "may_edit", True):
            body["source"] = shorten_source(target.source)
        return body


def _build_text_field(help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, help_text=help_text)


class TargetSettingsSerializer(serializers.Serializer[Any]):
    """A target's settings. Omitted settings keep their value or get the form's default."""

    name = serializers.CharField(
        required=False, help_text="Unique in its task; needed for a new one, which keeps it."
    )
    adapter = _build_text_field(f"One of: {', '.join(sorted(ADAPTERS))}.")
    url = _build_text_field("Empty: our own model server, which loads `source`.")
    source: Any = _build_text_field("A folder, or a hub id with a pinned revision.")
    revision = _build_text_field("Of the source.")
    options = serializers.DictField(required=False, help_text="Of the adapter.")
    serving = serializers.DictField(
        required=False,
        help_text="How our model server loads it: backend, precision, fields, output, labels.",
    )
    gpus = serializers.IntegerField(
        min_value=0, max_value=1, required=False, help_text="That it is evaluated on."
    )
    secret_env = _build_text_field(
        "Name of the environment variable with its bearer secret. For administrators, who "
        "send the url with it."
    )
    secret = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_SECRET_CHARS,
        validators=[SECRET_VALIDATOR],
        write_only=True,
        help_text="The bearer secret itself, stored encrypted and never shown. Empty: delete it. "
        "Send it again with another url, adapter or options, which delete it.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only check the settings; store and ask nothing."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("secret_env") and "url" not in attrs:  # it may be another one by now
            raise serializers.ValidationError({"url": ["Name the address that gets the secret."]})
        return attrs


def _read_settings(data: dict[str, Any], target: TargetModel) -> dict[str, Any]:
    """Return the requested settings, checked by the owners' form. Raises ValidationError."""
    secret_settings = {}
    if "secret" in data:
        secret_settings["secret"] = data.pop("secret")
    has_address = data.get("url", target.url) and not data.get("secret_env", target.secret_env)
    if secret_settings.get("secret") and not has_address:
        message = "Only a model with a URL, and without `secret_env`, has a secret."
        raise serializers.ValidationError({"secret": [message]})
    # An unbound form gives the values that stay where the request leaves a setting out.
    form = SettingsForm(instance=target)
    current_values = {name: form[name].initial for name in form.fields}
    form = SettingsForm({**current_values, **data}, instance=target)
    check_form(form)
    return {name: form.cleaned_data[name] for name in data} | secret_settings


@extend_schema_view(get=extend_schema(operation_id="target_models_list"))
class TargetModels(generics.ListAPIView[TargetModel]):
    """All targets and their settings, without secrets. Reviewers only."""

    write_scope = ApiToken.Scope.OWN
    serializer_class = TargetModelSerializer
    queryset = TargetModel.objects.none()

    def get_queryset(self) -> QuerySet[TargetModel]:
        task = find_task(self.request, self.kwargs["code"], can_review, kinds=ALL_KINDS)
        self.may_edit = can_edit(self.request.user, task)
        return task.targets.select_related("failure")

    @write(
        "target_models_register",
        TargetSettingsSerializer,
        {200: TargetModelSerializer, 201: TargetModelSerializer},
    )
    def post(self, request: Request, code: str) -> Response:
        """Register a target and send it one test request; `contact` reports the result.

        Name the target in a round's plan to use it. The status of a dry run is 200.
        """
        task, editor = find_task_and_editor(request, code, kinds=ALL_KINDS)
        data = read(TargetSettingsSerializer, request)
        is_dry_run = data.pop("dry_run")
        fields = _read_settings(data, TargetModel(task=task))
        with rehearse(is_dry_run):
            target = add_target(task=task, actor=editor, fields=fields)
            target.refresh_from_db()
        if is_dry_run:
            return Response(TargetModelSerializer(target).data)
        try_target(target, editor)
        return Response(TargetModelSerializer(target).data, status.HTTP_201_CREATED)


class ServedModelSerializer(serializers.ModelSerializer[TargetModel]):
    """A model that this site serves for another task, with the settings to register it here."""

    task = serializers.CharField(source="task.code", help_text="The task that it was made for.")
    options = serializers.DictField(help_text="Of the adapter.")
    serving = serializers.DictField(help_text="How our model server loads it.")

    class Meta:
        model = TargetModel
        fields = read_only_fields = ("task", "name", *COPIED_FIELDS)


class ServedModels(APIView):
    """The models that this site serves for other tasks."""

    @extend_schema(operation_id="served_models_list", responses=ServedModelSerializer(many=True))
    def get(self, request: Request, code: str) -> Response:
        """Return the models of other tasks that fit this task and that you may use in it.

        Register one by sending its settings as those of a new target. Task editors only.
        """
        task, editor = find_task_and_editor(request, code)
        served_models = find_served_models(task, editor)
        return Response(ServedModelSerializer(served_models, many=True).data)


class TargetModelView(APIView):
    """One target."""

    write_scope = ApiToken.Scope.OWN

    @write("target_models_change", TargetSettingsSerializer, TargetModelSerializer)
    def patch(self, request: Request, code: str, pk: int) -> Response:
        """Change a target's settings, and send it a test request if they affect how it is called.

        `contact` reports the result. Only administrators may change the URL of a target whose
        secret is in the environment.
        """
        task, editor = find_task_and_editor(request, code, kinds=ALL_KINDS)
        target = get_object_or_404(task.targets.select_related("task"), pk=pk)
        data = read(TargetSettingsSerializer, request)
        is_dry_run = data.pop("dry_run")
        fields = _read_settings(data, target)
        with rehearse(is_dry_run):
            changed_target = change_target(target=target, actor=editor, fields=fields)
        if changed_target.contact_at is None and not is_dry_run:
            try_target(changed_target, editor)
        return Response(TargetModelSerializer(changed_target).data)


class TargetInputsSerializer(serializers.Serializer[Any]):
    """The inputs of one example to send to a target."""

    inputs = serializers.DictField(help_text="What models read: the task's `model_fields`.")

    def validate_inputs(self, value: dict[str, Any]) -> dict[str, Any]:
        if reason := find_unstorable_reason(value):
            raise serializers.ValidationError(f"This contains {reason}.")
        return value


class TargetAnswerSerializer(serializers.Serializer[Any]):
    """A target's answer."""

    output = serializers.DictField()
    prob = serializers.DictField(
        child=serializers.FloatField(), allow_null=True, help_text="By label."
    )
    seconds = serializers.FloatField()
    fingerprint = serializers.DictField(help_text="What the target says that it is.")


class NoAnswerSerializer(serializers.Serializer[Any]):
    """The reason why a target gave no usable answer."""

    reason = serializers.ChoiceField(list(REASON_MESSAGES.items()))
    message = serializers.CharField(source="*")
    detail = serializers.CharField()


class TargetTestSerializer(serializers.Serializer[Any]):
    """The result of a test: either an answer or a failure; the other is null."""

    answer = TargetAnswerSerializer(allow_null=True)
    failure = NoAnswerSerializer(allow_null=True)


class TargetTestView(APIView):
    """A test of a target."""

    write_scope = ApiToken.Scope.OWN
    throttle = "predict"

    @write("target_models_test", TargetInputsSerializer, TargetTestSerializer)
    def post(self, request: Request, code: str, pk: int) -> Response:
        """Send the target one example. Returns the answer or the failure; no example is stored."""
        task, _ = find_task_and_editor(request, code, kinds=ALL_KINDS)
        target = get_object_or_404(task.targets.select_related("task"), pk=pk)
        form = InputForm(target, read(TargetInputsSerializer, request)["inputs"])
        if not form.is_valid():
            raise serializers.ValidationError({"inputs": form.errors})  # type: ignore[dict-item]
        body: dict[str, Any] = {"answer": None, "failure": None}
        try:
            body["answer"] = send_test(target, form.cleaned_data)
        except NoAnswer as error:
            body["failure"] = error
        return Response(TargetTestSerializer(body).data)
