"""The API's views of a reviewer's search for examples, and of actions on many at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Example
from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.errors import Invalid
from core.web.api import Pages, check_form, check_query, describe_known_names, read
from core.web.form_fields import build_request_field
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_review
from validation.api.examples import select_for_api
from validation.api.serializers import JudgedExampleSerializer
from validation.decisions import bulk_services
from validation.decisions.bulk_forms import BulkActionForm, find_named_examples
from validation.decisions.bulk_services import apply_action, count_matched, find_still_matched
from validation.decisions.filter_forms import (
    AGREEMENT_CHOICES,
    OUTCOME_CHOICES,
    REPORT_CHOICES,
    STATE_WORDS,
    FilterForm,
)

CHOICES: Mapping[str, Sequence[tuple[Any, Any]]] = {
    "state": STATE_WORDS,
    "outcome": OUTCOME_CHOICES,
    "agreement": AGREEMENT_CHOICES,
    "reports": REPORT_CHOICES,
}
FILTERS = [
    *(
        OpenApiParameter(name, str, enum=[value for value, _ in CHOICES.get(name, [])] or None)
        for name in FilterForm.base_fields
    ),
    OpenApiParameter(
        "input.NAME",
        str,
        description="A field of the configuration, by its name: also `context.NAME`, "
        "`output.NAME` (what models said), `metadata.NAME` (of the author), `judges.NAME`. Labels "
        "are compared, texts searched.",
    ),
]


class ReviewedSerializer(JudgedExampleSerializer):
    """An example as reviewers see it, with their tags."""

    tags = serializers.SlugRelatedField(  # type: ignore[var-annotated]
        slug_field="name", many=True, read_only=True
    )

    class Meta(JudgedExampleSerializer.Meta):
        fields = (*JudgedExampleSerializer.Meta.fields, "tags")
        read_only_fields = fields


class MatchedSerializer(serializers.Serializer[Any]):
    """The number of matching examples, and the token that selects all of them for an action."""

    number = serializers.IntegerField(help_text=f"At most {bulk_services.MAX_EXAMPLES + 1}.")
    token = serializers.CharField()


class NewActSerializer(serializers.Serializer[Any]):
    """An action, and its examples: listed by id, or all that match."""

    action = build_request_field(BulkActionForm, "action")
    examples = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=bulk_services.MAX_EXAMPLES
    )
    filters = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="As of the list, with `token`."
    )
    token = serializers.CharField(
        max_length=60, required=False, help_text="Of `matched`: refused once others match."
    )
    reason = build_request_field(BulkActionForm, "reason", help_text="The author reads it.")
    tag = build_request_field(BulkActionForm, "tag")
    looked_at = build_request_field(
        BulkActionForm,
        "looked_at",
        allow_null=False,
        help_text="Leave decisions that others have made since unchanged.",
    )


class LeftSerializer(serializers.Serializer[Any]):
    """An example that was not changed, and the reason."""

    example = serializers.UUIDField()
    code = serializers.CharField()
    reason = serializers.CharField()


class ActSerializer(serializers.Serializer[Any]):
    """The result of an action on many examples."""

    run = serializers.CharField(help_text="Names it, to take it back.")
    action = serializers.CharField()
    changed = serializers.IntegerField()
    left = LeftSerializer(many=True)


def validate_filters(request: Request, task: Task) -> FilterForm:
    """Validate the filters of the query. Raises ValidationError by field."""
    form = FilterForm(task, request.query_params.dict())
    check_query(request, *form.fields)
    check_form(form)
    return form


@extend_schema_view(get=extend_schema(operation_id="review_examples_list", parameters=[*FILTERS]))
class ReviewedExamples(generics.ListAPIView[Example]):
    """The examples that match all filters, oldest first; for reviewers."""

    serializer_class = ReviewedSerializer
    pagination_class = Pages
    # Only for its model: the schema is generated without a request.
    queryset = Example.objects.none()
    throttle, throttles_reads = "export", True  # because it searches texts

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "full": True}

    def get_queryset(self) -> QuerySet[Example]:
        task = find_task(self.request, self.kwargs["code"], can_review)
        examples = validate_filters(self.request, task).select_examples()
        return select_for_api(examples).select_related("round__task").prefetch_related("tags")


class MatchedView(APIView):
    reads_query = ("GET",)
    # The same search as in the list.
    throttle, throttles_reads = "export", True

    @extend_schema(
        operation_id="review_matched_get", parameters=[*FILTERS], responses=MatchedSerializer
    )
    def get(self, request: Request, code: str) -> Response:
        """Count the examples that match the filters; for reviewers."""
        task = find_task(request, code, can_review)
        return Response(
            MatchedSerializer(count_matched(validate_filters(request, task).select_examples())).data
        )


class BulkActionsView(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("review_act", NewActSerializer, ActSerializer)
    def post(self, request: Request, code: str) -> Response:
        """Accept, reject, send back or tag many examples, or undo this; for reviewers.

        Each example is changed completely or not at all; `left` lists those that were not changed.
        """
        task = find_task(request, code, can_review)
        body = read(NewActSerializer, request)
        form = BulkActionForm(body)
        check_form(form)
        example_ids = _find_requested_ids(task, body)
        action_result = apply_action(
            task=task,
            examples=example_ids,
            actor=get_person(request),
            request=form.requested_action,
        )
        return Response(ActSerializer(action_result).data)


def _find_requested_ids(task: Task, body: dict[str, Any]) -> list[int]:
    """Return the ids of the requested examples. Raises Refused, ValidationError."""
    if "filters" not in body:
        return find_named_examples(task, body.get("examples", []))
    if "examples" in body:
        raise Invalid("Give either examples or filters.", field="examples")
    form = FilterForm(task, body["filters"])
    # With a misspelt filter, examples would remain that the person wanted to exclude.
    if unknown_names := body["filters"].keys() - form.fields.keys():
        raise serializers.ValidationError(
            {name: [describe_known_names(form.fields)] for name in unknown_names}
        )
    check_form(form)
    # The filters may match other examples by now, so the request names the set that was shown.
    return find_still_matched(form.select_examples(), body.get("token", ""))


class BulkActionView(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("review_undo", None, {200: ActSerializer})
    def delete(self, request: Request, code: str, run: str) -> Response:
        """Undo your own action, except where a later decision was made; for reviewers."""
        task = find_task(request, code, can_review)
        action_result = bulk_services.undo_action(task=task, actor=get_person(request), run=run)
        return Response(ActSerializer(action_result).data)
