"""The API of what an owner's pages show about people and a round."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Example
from core.accounts.people import get_shown_name
from core.web.api import read_query
from dynabench.manage.activity import read_round_activity
from dynabench.manage.people import (
    PersonStatistics,
    check_agreement,
    check_labels,
    compute_skip_rate,
    list_authors,
    list_validators,
)
from dynabench.manage.second_opinion import find_disagreements
from tasks.access import find_task
from tasks.models import Round
from tasks.permissions import can_read, can_review
from validation.api.statistics import RateSerializer
from validation.consensus.gold_check import Check
from validation.decisions.second_opinion import compute_second_opinion
from validation.rates.rates import Undefined

CHECK_CODES = [check.value for check in Check]


class PeopleQuery(serializers.Serializer[Any]):
    """The round whose people are listed."""

    round = serializers.IntegerField(required=False, help_text="Round number. Default: all rounds.")


class PersonSerializer(serializers.Serializer[Any]):
    """The fields that authors and validators share."""

    annotator = serializers.CharField(help_text="A pseudonym.")
    median_seconds = serializers.FloatField(allow_null=True)
    notes = serializers.DictField(
        child=serializers.CharField(), help_text="Why a number is null, by its name."
    )


class AuthorSerializer(PersonSerializer):
    """An author's examples, without retracted ones.

    The section “People” of docs/statistics.md defines each number.
    """

    labels_check = serializers.ChoiceField(
        CHECK_CODES, help_text="Fail: look at their examples. Unknown doesn't count against anyone."
    )
    tries = serializers.IntegerField()
    fooled = serializers.IntegerField()
    wins = serializers.IntegerField()
    judged = serializers.IntegerField()
    validity = RateSerializer(allow_null=True)
    vmer = RateSerializer(allow_null=True, help_text="Unweighted, however the contexts were drawn.")
    duplicates = serializers.IntegerField()
    paste_share = RateSerializer(allow_null=True)
    median_active_seconds = serializers.FloatField(allow_null=True)
    label_flip = RateSerializer(
        allow_null=True, help_text="Examples decided differently from the author's label."
    )


class ValidatorSerializer(PersonSerializer):
    """A validator's votes on examples that were not retracted."""

    gold_check = serializers.ChoiceField(CHECK_CODES)
    agreement_check = serializers.ChoiceField(CHECK_CODES)
    reading_check = serializers.ChoiceField(
        CHECK_CODES, help_text="Fail: most votes were too fast to have read the text."
    )
    votes = serializers.IntegerField()
    reliability = RateSerializer(allow_null=True, help_text="Agreement with other judges.")
    kappa = serializers.FloatField(allow_null=True)
    gold = RateSerializer(allow_null=True)
    unread = RateSerializer(allow_null=True, help_text="Votes faster than that.")
    cannot_tell = RateSerializer(allow_null=True)
    skipped = RateSerializer(allow_null=True)
    flags = serializers.IntegerField()
    skips = serializers.IntegerField()


class PeopleView(APIView):
    """Base view for the lists of authors and validators."""

    reads_query = ("GET",)
    # A read that costs as much as an export, so it is limited as one.
    throttle, throttles_reads = "export", True  # every example or vote is passed over

    def find_rounds(self, code: str) -> Sequence[Round]:
        """Return the requested rounds of the task.

        Raises Http404 or PermissionDenied unless the user is a reviewer.
        """
        rounds = find_task(self.request, code, can_review).rounds.all()
        query = read_query(PeopleQuery, self.request)
        if query:
            rounds = rounds.filter(number=query["round"])
        return list(rounds)


class AuthorList(PeopleView):
    """The authors of a task."""

    @extend_schema(
        operation_id="authors_list",
        parameters=[PeopleQuery],
        responses=AuthorSerializer(many=True),
    )
    def get(self, request: Request, code: str) -> Response:
        """List all authors, those whose work most needs a check first. Reviewers only."""
        body = []
        for author in list_authors(self.find_rounds(code)):
            body.append(_build_person_body(author, labels_check=check_labels(author)))
        return Response(AuthorSerializer(body, many=True).data)


class ValidatorList(PeopleView):
    """The validators of a task."""

    @extend_schema(
        operation_id="validators_list",
        parameters=[PeopleQuery],
        responses=ValidatorSerializer(many=True),
    )
    def get(self, request: Request, code: str) -> Response:
        """List all validators, those whose votes most need a check first. Reviewers only."""
        body = [
            _build_person_body(
                validator,
                agreement_check=check_agreement(validator),
                skipped=compute_skip_rate(validator),
            )
            for validator in list_validators(self.find_rounds(code))
        ]
        return Response(ValidatorSerializer(body, many=True).data)


def _build_person_body(person: PersonStatistics, **further_values: Any) -> dict[str, Any]:
    """Return a person's numbers; `notes` says why undefined numbers are null."""
    values: dict[str, Any] = {}
    for field in fields(person):
        values[field.name] = getattr(person, field.name)
    values |= further_values
    notes: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Undefined):
            notes[name] = value.reason
    nulls = dict.fromkeys(notes)
    return {**values, **nulls, "notes": notes, "annotator": get_shown_name(person.annotator)}


class CountsSerializer(serializers.Serializer[Any]):
    """The number of examples that were not retracted, and how many examples are verified."""

    tries = serializers.IntegerField()
    verified = serializers.IntegerField()


class DaySerializer(CountsSerializer):
    """Examples by day."""

    day = serializers.DateField()
    fooled = serializers.IntegerField()


class LabelCountsSerializer(CountsSerializer):
    """Examples by the author's label."""

    label: Any = serializers.CharField(help_text="As people read them.")


class SliceSerializer(CountsSerializer):
    """Examples by a value of a slice."""

    slice = serializers.CharField()
    value = serializers.CharField()


class ActivitySerializer(serializers.Serializer[Any]):
    """What people do in a round."""

    waiting = serializers.IntegerField(help_text="Examples waiting for votes.")
    oldest = serializers.DateTimeField(
        allow_null=True, help_text="When the oldest of them was written."
    )
    people = serializers.IntegerField(help_text="People who wrote or judged since 00:00 UTC.")
    writing = serializers.FloatField(allow_null=True, help_text="Median seconds of recent ones.")
    judging = serializers.FloatField(allow_null=True, help_text="Median seconds of recent ones.")
    days = DaySerializer(
        many=True, help_text="Of the last 30 days, those with at least one example."
    )
    labels = LabelCountsSerializer(many=True)
    slices = SliceSerializer(many=True, help_text="The ones with the fewest examples.")
    counted_at = serializers.DateTimeField()


class ActivityView(APIView):
    """The activity of a round."""

    @extend_schema(operation_id="activity_get", responses=ActivitySerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Show the dashboard's numbers on current activity, without its statistics. Members only.

        Cached for half a minute.
        """
        task = find_task(request, code, can_read)
        activity = read_round_activity(get_object_or_404(task.rounds, number=number))
        body = {
            **vars(activity),
            "days": _name_columns(("day", "tries", "fooled", "verified"), activity.days),
            "labels": _name_columns(("label", "tries", "verified"), activity.labels),
            "slices": _name_columns(("slice", "value", "tries", "verified"), activity.slices),
        }
        return Response(ActivitySerializer(body).data)


def _name_columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    # Rows may have further numbers, which pages alone show.
    return [dict(zip(names, row[: len(names)], strict=True)) for row in rows]


class OtherwiseSerializer(serializers.Serializer[Any]):
    """An example on which the model disagrees with the consensus."""

    example = serializers.UUIDField(source="example.uuid")
    by_program = serializers.BooleanField(source="example.by_program")
    consensus = serializers.CharField()
    label: Any = serializers.CharField(help_text="The model's label.")
    posterior = serializers.FloatField()


class BelievedSerializer(serializers.Serializer[Any]):
    """The model's estimate of a validator."""

    validator = serializers.CharField(help_text="A pseudonym.")
    reliability = serializers.FloatField(help_text="Probability of naming the true label.")
    confusion = serializers.DictField(
        child=serializers.DictField(child=serializers.FloatField()),
        help_text="By the true label, then by the label given.",
    )


class SecondOpinionSerializer(serializers.Serializer[Any]):
    """The Dawid-Skene model of a round's votes."""

    reason = serializers.CharField(
        allow_null=True, help_text="Why there is none. null: there is one."
    )
    labels = serializers.ListField(child=serializers.CharField())
    prior = serializers.DictField(child=serializers.FloatField())
    warnings = serializers.ListField(child=serializers.CharField())
    otherwise = OtherwiseSerializer(many=True, help_text="Most certain first.")
    validators: Any = BelievedSerializer(many=True, help_text="Least reliable first.")


class SecondOpinionView(APIView):
    """The second opinion of a statistical model on a round."""

    throttle, throttles_reads = "export", True  # the model is fitted to all votes

    @extend_schema(operation_id="second_opinion_get", responses=SecondOpinionSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Show the model's estimate of each validator and its disagreements. Reviewers only."""
        task = find_task(request, code, can_review)
        round = get_object_or_404(task.rounds, number=number)
        return Response(SecondOpinionSerializer(_describe_opinion(round)).data)


def _describe_opinion(round: Round) -> dict[str, Any]:
    opinion = compute_second_opinion(round)
    if isinstance(opinion, Undefined):
        empty_values: dict[str, Any] = dict.fromkeys(
            ("labels", "warnings", "otherwise", "validators"), ()
        )
        return {"reason": opinion.reason, "prior": {}, **empty_values}
    validators = []
    for validator in opinion.validators:
        validators.append(
            {
                "validator": get_shown_name(validator.annotator),
                "reliability": validator.reliability,
                "confusion": validator.confusion,
            }
        )
    disagreements = find_disagreements(round, opinion)
    # The answer names the examples, and needs none of their texts.
    examples = Example.objects.only("uuid", "by_program").in_bulk(
        [row.example for row in disagreements]
    )
    otherwise = [row._asdict() | {"example": examples[row.example]} for row in disagreements]
    return {
        "reason": None,
        "labels": opinion.labels,
        "prior": opinion.prior,
        "warnings": opinion.warnings,
        "otherwise": otherwise,
        "validators": validators,
    }


ROUND_PATH = "tasks/<slug:code>/rounds/<int:number>/"
urlpatterns = [
    path("tasks/<slug:code>/authors/", AuthorList.as_view(), name="authors"),
    path("tasks/<slug:code>/validators/", ValidatorList.as_view(), name="validators"),
    path(f"{ROUND_PATH}activity/", ActivityView.as_view(), name="activity"),
    path(f"{ROUND_PATH}second-opinion/", SecondOpinionView.as_view(), name="second-opinion"),
]
