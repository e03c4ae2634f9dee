"""The API's view of the model that suggests texts to those who write for a task."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import check_form, read
from tasks.access import find_task, find_task_and_editor
from tasks.api.target_models import ContactSerializer
from tasks.models import Generator
from tasks.permissions import can_edit
from tasks.targets.first_contact import try_generator
from tasks.targets.forms import GENERATOR_ADAPTERS, GeneratorForm
from tasks.targets.services import remove_generator, set_generator


class GeneratorSerializer(serializers.Serializer[Any]):
    """The settings for reaching a generator."""

    name = serializers.CharField(help_text="People read it with a suggestion; it stays.")
    adapter = serializers.CharField(help_text=f"One of: {', '.join(GENERATOR_ADAPTERS)}.")
    url = serializers.CharField()
    options = serializers.DictField(default=dict, help_text="Of the adapter.")
    secret_env = serializers.CharField(
        default="",
        allow_blank=True,
        help_text="Name of the environment variable with its bearer secret. For administrators.",
    )


class GeneratorSetupSerializer(GeneratorSerializer):
    """A generator's settings, with its latest answer or failure."""

    contact = ContactSerializer(
        source="*", help_text="What it answered when it was last asked or tested."
    )


class GeneratorView(APIView):
    """A task's generator."""

    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="generator_get", responses=GeneratorSetupSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Return the generator's settings, without secrets. Task editors only."""
        task = find_task(request, code, can_edit)
        return Response(GeneratorSetupSerializer(get_object_or_404(Generator, task=task)).data)

    @write("generator_set", GeneratorSerializer, GeneratorSetupSerializer)
    def put(self, request: Request, code: str) -> Response:
        """Store the task's generator, and send it a test request if its settings have changed.

        `contact` reports the result. Only administrators may change the URL of a generator whose
        secret is in the environment.
        """
        task, editor = find_task_and_editor(request, code)
        form = GeneratorForm(read(GeneratorSerializer, request), instance=Generator(task=task))
        check_form(form)
        generator = set_generator(task=task, actor=editor, fields=form.cleaned_data)
        if generator.contact_at is None:
            try_generator(generator, editor)
        return Response(GeneratorSetupSerializer(generator).data)

    @write("generator_remove", gives={204: None})
    def delete(self, request: Request, code: str) -> Response:
        """Remove the task's generator. Examples keep the record of what it suggested."""
        task, editor = find_task_and_editor(request, code)
        remove_generator(task=task, actor=editor)
        return Response(status=status.HTTP_204_NO_CONTENT)
