"""The API's views of what authors do with their examples."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.access import require_annotator
from annotation.api.serializers import (
    AssignmentSerializer,
    AuthorAnswerSerializer,
    ExampleSerializer,
    WhySerializer,
)
from annotation.attempts import services
from annotation.context_picking.services import assign_sent_back
from annotation.models import Example
from annotation.selectors import prefetch_outputs
from annotation.writing.forms import ComponentForm
from annotation.writing.result_panel import list_why_components
from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import read


class OwnExample(APIView):
    """Base view of the actions of an example's author."""

    write_scope = ApiToken.Scope.ANNOTATE

    def example(self, uuid: UUID) -> Example:
        own_examples = Example.objects.filter(annotator__user=self.request.user.pk)
        rows = own_examples.select_related("round__task", "context", "parent")
        return get_object_or_404(rows.prefetch_related(prefetch_outputs()), uuid=uuid)

    def answer(self, uuid: UUID) -> Response:
        return Response(ExampleSerializer(self.example(uuid)).data)


class RetractView(OwnExample):
    @write("examples_retract", None, ExampleSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Retract your own example. Only possible before anybody has judged it."""
        services.retract_example(example=self.example(uuid))
        return self.answer(uuid)


class MendView(OwnExample):
    @write("examples_mend", None, AssignmentSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Reopen the context of your example that a reviewer sent back.

        The next example that you write replaces it.
        """
        example = self.example(uuid)
        annotator = require_annotator(request, example.round.task)
        return Response(
            AssignmentSerializer(assign_sent_back(annotator=annotator, example=example)).data
        )


class WhyView(OwnExample):
    @write("examples_explain", WhySerializer, ExampleSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Explain why the label is right and why a model might miss it; all fields are optional."""
        example = self.example(uuid)
        body = read(WhySerializer, request)
        config, explanation = example.round.task.config, body["why"]
        asks = list_why_components(config, example.outcome, example.inputs)
        form = ComponentForm(asks, explanation, context=example.context.fields)
        unknown = {
            name: ["There is no such question here"] for name in explanation.keys() - form.fields
        }
        if unknown or not form.is_valid():
            raise serializers.ValidationError({"why": unknown or form.errors})  # type: ignore[dict-item]
        services.store_explanation(example=example, metadata=form.inputs)
        return self.answer(uuid)


class AuthorAnswerView(OwnExample):
    @write("examples_answer", AuthorAnswerSerializer, ExampleSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Answer once whether the model's answer to an undecided example is acceptable."""
        example = self.example(uuid)
        body = read(AuthorAnswerSerializer, request)
        services.answer_undecided(example=example, **body)
        return self.answer(uuid)
