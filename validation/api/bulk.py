"""The API's views of a reviewer's search for examples, and of what is done with many at once."""

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
from core.accounts.people import person
from core.errors import Invalid
from core.web.api import Pages, check_form, check_query, no_such, read
from core.web.form_fields import request_field
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_review
from validation.api.examples import select_for_api
from validation.api.serializers import JudgedExampleSerializer
from validation.decisions import bulk_services
from validation.decisions.bulk_forms import WishForm, find_named_examples
from validation.decisions.bulk_services import act_on, count_matched, still_matched
from validation.decisions.filter_forms import (
    AGREEMENT,
    OUTCOMES,
    REPORTS,
    STATE_WORDS,
    FilterForm,
)

CHOICES: Mapping[str, Sequence[tuple[Any, Any]]] = {
    "state": STATE_WORDS,
    "outcome": OUTCOMES,
    "agreement": AGREEMENT,
    "reports": REPORTS,
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

    action = request_field(WishForm, "action")
    examples = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=bulk_services.MAX_EXAMPLES
    )
    filters = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="As of the list, with `token`."
    )
    token = serializers.CharField(
        max_length=60, required=False, help_text="Of `matched`: refused once others match."
    )
    reason = request_field(WishForm, "reason", help_text="The author reads it.")
    tag = request_field(WishForm, "tag")
    looked_at = request_field(
        WishForm,
        "looked_at",
        allow_null=False,
        help_text="What others decided since is left alone.",
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
    # Only its model counts: the API is described without a request.
    queryset = Example.objects.none()
    throttle, throttles_reads = "export", True  # texts are searched

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "full": True}

    def get_queryset(self) -> QuerySet[Example]:
        task = find_task(self.request, self.kwargs["code"], can_review)
        examples = validate_filters(self.request, task).examples()
        return select_for_api(examples).select_related("round__task").prefetch_related("tags")


class MatchedView(APIView):
    reads_query = ("GET",)
    # The same search as that of the list.
    throttle, throttles_reads = "export", True

    @extend_schema(
        operation_id="review_matched_get", parameters=[*FILTERS], responses=MatchedSerializer
    )
    def get(self, request: Request, code: str) -> Response:
        """Count the examples that match the filters; for reviewers."""
        task = find_task(request, code, can_review)
        return Response(
            MatchedSerializer(count_matched(validate_filters(request, task).examples())).data
        )


class Acts(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("review_act", NewActSerializer, ActSerializer)
    def post(self, request: Request, code: str) -> Response:
        """Accept, reject, send back or tag many examples, or undo this; for reviewers.

        Each example is changed completely or not at all; `left` lists those that were not changed.
        """
        task = find_task(request, code, can_review)
        body = read(NewActSerializer, request)
        form = WishForm(body)
        check_form(form)
        ids = _select_examples(task, body)
        done = act_on(task=task, examples=ids, actor=person(request), wish=form.wish)
        return Response(ActSerializer(done).data)


def _select_examples(task: Task, body: dict[str, Any]) -> list[int]:
    """Return the ids of the requested examples. Raises Refused, ValidationError."""
    if "filters" not in body:
        return find_named_examples(task, body.get("examples", []))
    if "examples" in body:
        raise Invalid("Give either examples or filters.", field="examples")
    form = FilterForm(task, body["filters"])
    # A misspelt filter would let through what the person wanted to leave out.
    if unknown := body["filters"].keys() - form.fields.keys():
        raise serializers.ValidationError({name: [no_such(form.fields)] for name in unknown})
    check_form(form)
    # The filters may match others by now, so the set that was seen is named.
    return still_matched(form.examples(), body.get("token", ""))


class ActView(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("review_undo", None, {200: ActSerializer})
    def delete(self, request: Request, code: str, run: str) -> Response:
        """Undo your own action, except where a later decision was made; for reviewers."""
        task = find_task(request, code, can_review)
        done = bulk_services.undo(task=task, actor=person(request), run=run)
        return Response(ActSerializer(done).data)
