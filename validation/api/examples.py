"""The API's lists of examples and votes: one's own, and those of a round for its members."""

from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.answers import may_read_private_answer
from annotation.models import Example
from annotation.selectors import prefetch_outputs
from core.accounts.models import Annotator
from core.web.api import NewestFirst, read_query
from tasks.access import find_task
from tasks.models import Round
from tasks.permissions import can_read
from validation.api.serializers import (
    JudgedExampleSerializer,
    JudgedStepsSerializer,
    ValidationSerializer,
)
from validation.decisions.consensus_rows import get_policy
from validation.models import Consensus, Validation
from validation.statistics.steps import describe_steps, list_step_votes

UNJUDGED_STATE = "unjudged"


def select_for_api(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Select examples with all related rows that the API shows, except the round.

    Three queries for a page.
    """
    related_rows = examples.select_related(
        "context", "annotator", "parent", "consensus", "vote_draw"
    )
    return related_rows.prefetch_related(prefetch_outputs())


class OwnExamplesQuery(serializers.Serializer[Any]):
    """Filters for the list of the user's own examples."""

    task = serializers.SlugField(required=False, help_text="A task's code.")
    outcome = serializers.ChoiceField(Example.Outcome.choices, required=False)


class RoundExamplesQuery(serializers.Serializer[Any]):
    """Filters for the list of a round's examples."""

    outcome = serializers.ChoiceField(Example.Outcome.choices, required=False)
    state = serializers.ChoiceField(
        [(UNJUDGED_STATE, "not judged yet"), *Consensus.State.choices], required=False
    )
    label: Any = serializers.CharField(required=False, help_text="The author's.")
    annotator = serializers.CharField(required=False, help_text="A pseudonym.")
    by_program = serializers.BooleanField(required=False, allow_null=True, default=None)


class RoundValidationsQuery(serializers.Serializer[Any]):
    """Filters for the list of a round's votes."""

    example = serializers.UUIDField(required=False)
    by_program = serializers.BooleanField(required=False, allow_null=True, default=None)


@extend_schema_view(
    get=extend_schema(operation_id="me_examples_list", parameters=[OwnExamplesQuery])
)
class OwnExamples(generics.ListAPIView[Example]):
    """Your own examples, newest first, including retracted ones."""

    serializer_class = JudgedExampleSerializer
    pagination_class = NewestFirst
    # Only for its model: the schema is generated without a request.
    queryset = Example.objects.none()

    def get_queryset(self) -> QuerySet[Example]:
        query = read_query(OwnExamplesQuery, self.request)
        own_examples = Example.objects.filter(annotator__user=self.request.user.pk)
        if "task" in query:
            own_examples = own_examples.filter(round__task__code=query["task"])
        if "outcome" in query:
            own_examples = own_examples.filter(outcome=query["outcome"])
        return select_for_api(own_examples).select_related("round__task")


class ExampleView(APIView):
    @extend_schema(operation_id="examples_get", responses=JudgedExampleSerializer)
    def get(self, request: Request, uuid: UUID) -> Response:
        """Return an example to its author, and to members of its task.

        Members also see the targets' names.
        """
        rows = select_for_api(Example.objects.all()).select_related("round__task", "annotator")
        example = get_object_or_404(rows, uuid=uuid)
        # Not 403, which would reveal that the example exists.
        if not may_read_private_answer(request.user, example):
            raise Http404
        is_member = can_read(request.user, example.round.task)
        return Response(JudgedExampleSerializer(example, context={"full": is_member}).data)


class RoundListView(generics.ListAPIView[Any]):
    """Base view of a task's round, for members."""

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "full": True}

    @cached_property
    def round(self) -> Round:
        task = find_task(self.request, self.kwargs["code"], can_read)
        return get_object_or_404(
            Round.objects.select_related("task"), task=task, number=self.kwargs["number"]
        )


@extend_schema_view(
    get=extend_schema(operation_id="rounds_examples_list", parameters=[RoundExamplesQuery])
)
class RoundExamples(RoundListView):
    """A round's examples that are not retracted, oldest first; for members of the task."""

    serializer_class = JudgedExampleSerializer
    # Only for its model: the schema is generated without a request.
    queryset = Example.objects.none()

    def get_queryset(self) -> QuerySet[Example]:
        round, query = self.round, read_query(RoundExamplesQuery, self.request)
        examples = Example.objects.filter(round=round, retracted_at__isnull=True)
        plain_fields = {name: query[name] for name in ("outcome", "by_program") if name in query}
        examples = examples.filter(**plain_fields)
        if query.get("state") == UNJUDGED_STATE:
            examples = examples.filter(consensus__isnull=True)
        elif "state" in query:
            examples = examples.filter(consensus__state=query["state"])
        if "label" in query:
            field = round.task.config.answer_field
            examples = examples.annotate(said=Cast(KeyTextTransform(field, "inputs"), TextField()))
            examples = examples.filter(said=query["label"])
        if "annotator" in query:  # imported names may be ids of a panel, so they cannot be searched
            has_imported_label = Q(annotator__source=Annotator.Source.IMPORT)
            examples = examples.filter(~has_imported_label, annotator__pseudonym=query["annotator"])
        return select_for_api(examples)

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        for example in page or ():
            example.round = self.round  # already loaded, which saves a query
        return page


@extend_schema_view(get=extend_schema(operation_id="rounds_steps_list"))
class RoundSteps(RoundListView):
    """What the votes decide about each step of a round's conversations; for members of the task."""

    serializer_class = JudgedStepsSerializer
    # Only for its model: the schema is generated without a request.
    queryset = Example.objects.none()

    def get_queryset(self) -> QuerySet[Example]:
        examples = Example.objects.filter(round=self.round, retracted_at__isnull=True)
        # Without steps in the configuration there is nothing to show.
        if self.round.task.config.validation.steps is None:
            return examples.none()
        return examples.select_related("context")

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        votes = list_step_votes([example.pk for example in page]) if page else {}
        policy = get_policy(self.round)
        return [
            describe_steps(self.round.task.config, example, votes.get(example.pk, ()), policy)
            for example in page or ()
        ]


@extend_schema_view(
    get=extend_schema(operation_id="rounds_validations_list", parameters=[RoundValidationsQuery])
)
class RoundValidations(RoundListView):
    """The votes on a round's examples, oldest first; for members of the task."""

    serializer_class = ValidationSerializer
    # Only for its model: the schema is generated without a request.
    queryset = Validation.objects.none()

    def get_queryset(self) -> QuerySet[Validation]:
        query = read_query(RoundValidationsQuery, self.request)
        votes = Validation.objects.filter(example__round=self.round)
        if "example" in query:
            votes = votes.filter(example__uuid=query["example"])
        if "by_program" in query:
            votes = votes.filter(by_program=query["by_program"])
        return votes.select_related("example", "validator")

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        for vote in page or ():
            # The serializer reads the task's configuration for each vote.
            vote.example.round = self.round
        return page
