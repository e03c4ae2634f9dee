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
from annotation.attempts.author_answer_services import answer_undecided
from annotation.context_picking.services import assign_sent_back
from annotation.models import Example
from annotation.selectors import prefetch_outputs
from annotation.writing.forms import ComponentForm
from annotation.writing.result_panel import list_why_components
from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import read


class OwnExampleView(APIView):
    """Base view of the actions of an example's author."""

    write_scope = ApiToken.Scope.ANNOTATE

    def get_example(self, uuid: UUID) -> Example:
        own_examples = Example.objects.filter(annotator__user=self.request.user.pk)
        rows = own_examples.select_related("round__task", "context", "parent")
        return get_object_or_404(rows.prefetch_related(prefetch_outputs()), uuid=uuid)

    def build_response(self, uuid: UUID) -> Response:
        return Response(ExampleSerializer(self.get_example(uuid)).data)


class RetractView(OwnExampleView):
    @write("examples_retract", None, ExampleSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Retract your own example. Only possible before anybody has judged it."""
        services.retract_example(example=self.get_example(uuid))
        return self.build_response(uuid)


class MendView(OwnExampleView):
    @write("examples_mend", None, AssignmentSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Reopen an example of yours that a reviewer sent back, so that you can revise it.

        The next example that you submit for the assignment in the response replaces it.
        """
        example = self.get_example(uuid)
        annotator = require_annotator(request, example.round.task)
        return Response(
            AssignmentSerializer(assign_sent_back(annotator=annotator, example=example)).data
        )


class WhyView(OwnExampleView):
    @write("examples_explain", WhySerializer, ExampleSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Explain why the label is right and why a model might miss it; all fields are optional."""
        example = self.get_example(uuid)
        body = read(WhySerializer, request)
        config, explanation = example.round.task.config, body["why"]
        questions = list_why_components(config, example.outcome, example.inputs)
        form = ComponentForm(questions, explanation, context=example.context.fields)
        unknown_errors = {
            name: ["This question doesn't exist here"] for name in explanation.keys() - form.fields
        }
        if unknown_errors or not form.is_valid():
            raise serializers.ValidationError({"why": unknown_errors or form.errors})  # type: ignore[dict-item]
        services.store_explanation(example=example, metadata=form.inputs)
        return self.build_response(uuid)


class AuthorAnswerView(OwnExampleView):
    @write("examples_answer", AuthorAnswerSerializer, ExampleSerializer)
    def post(self, request: Request, uuid: UUID) -> Response:
        """Decide, once only, whether the model's answer to your undecided example is acceptable.

        If the example has criteria, say of each whether the answer meets it, in their order.
        """
        example = self.get_example(uuid)
        body = read(AuthorAnswerSerializer, request)
        answer_undecided(example=example, **body)
        return self.build_response(uuid)
