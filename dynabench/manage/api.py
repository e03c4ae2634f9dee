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
from core.accounts.people import shown_name
from core.web.api import wanted
from dynabench.manage.activity import read_round_activity
from dynabench.manage.people import (
    Person,
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
from validation.decisions.second_opinion import second_opinion
from validation.rates.rates import Undefined

CHECKS = [check.value for check in Check]


class PeopleQuery(serializers.Serializer[Any]):
    """The round whose people are listed."""

    round = serializers.IntegerField(required=False, help_text="Its number; all unless told.")


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
        CHECKS, help_text="Fail: look at their examples. Unknown counts against nobody."
    )
    tries = serializers.IntegerField()
    fooled = serializers.IntegerField()
    wins = serializers.IntegerField()
    judged = serializers.IntegerField()
    validity = RateSerializer(allow_null=True)
    vmer = RateSerializer(allow_null=True)
    duplicates = serializers.IntegerField()
    paste_share = RateSerializer(allow_null=True)
    median_active_seconds = serializers.FloatField(allow_null=True)
    label_flip = RateSerializer(allow_null=True, help_text="Decided otherwise than they said.")


class ValidatorSerializer(PersonSerializer):
    """A validator's votes on examples that were not retracted."""

    gold_check = serializers.ChoiceField(CHECKS)
    agreement_check = serializers.ChoiceField(CHECKS)
    reading_check = serializers.ChoiceField(
        CHECKS, help_text="Fail: most votes came faster than anybody reads."
    )
    votes = serializers.IntegerField()
    reliability = RateSerializer(allow_null=True, help_text="Agreement with the others.")
    kappa = serializers.FloatField(allow_null=True)
    gold = RateSerializer(allow_null=True)
    unread = RateSerializer(allow_null=True, help_text="Votes that came faster than that.")
    cannot_tell = RateSerializer(allow_null=True)
    skipped = RateSerializer(allow_null=True)
    flags = serializers.IntegerField()
    skips = serializers.IntegerField()


class PeopleView(APIView):
    """Base view for the lists of authors and validators."""

    reads_query = ("GET",)
    # A read that costs as much as an export, so it is limited as one.
    throttle, throttles_reads = "export", True  # every example or vote is passed over

    def rounds(self, code: str) -> Sequence[Round]:
        """Return the requested rounds of the task.

        Raises Http404 or PermissionDenied unless the user is a reviewer.
        """
        rounds = find_task(self.request, code, can_review).rounds.all()
        query = wanted(PeopleQuery, self.request)
        if query:
            rounds = rounds.filter(number=query["round"])
        return list(rounds)


class Authors(PeopleView):
    """The authors of a task."""

    @extend_schema(
        operation_id="authors_list",
        parameters=[PeopleQuery],
        responses=AuthorSerializer(many=True),
    )
    def get(self, request: Request, code: str) -> Response:
        """List all authors by pseudonym, those whose work needs review first. Reviewers only."""
        body = []
        for author in list_authors(self.rounds(code)):
            body.append(_build_person_body(author, labels_check=check_labels(author)))
        return Response(AuthorSerializer(body, many=True).data)


class Validators(PeopleView):
    """The validators of a task."""

    @extend_schema(
        operation_id="validators_list",
        parameters=[PeopleQuery],
        responses=ValidatorSerializer(many=True),
    )
    def get(self, request: Request, code: str) -> Response:
        """List all validators by pseudonym, those whose work needs review first. Reviewers only."""
        body = [
            _build_person_body(
                validator,
                agreement_check=check_agreement(validator),
                skipped=compute_skip_rate(validator),
            )
            for validator in list_validators(self.rounds(code))
        ]
        return Response(ValidatorSerializer(body, many=True).data)


def _build_person_body(person: Person, **more: Any) -> dict[str, Any]:
    """Return a person's numbers; `notes` says why undefined numbers are null."""
    values: dict[str, Any] = {}
    for field in fields(person):
        values[field.name] = getattr(person, field.name)
    values |= more
    notes: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Undefined):
            notes[name] = value.reason
    nulls = dict.fromkeys(notes)
    return {**values, **nulls, "notes": notes, "annotator": shown_name(person.annotator)}


class CountsSerializer(serializers.Serializer[Any]):
    """The number of examples without retracted ones, and of verified examples."""

    tries = serializers.IntegerField()
    verified = serializers.IntegerField()


class DaySerializer(CountsSerializer):
    """Examples by day."""

    day = serializers.DateField()
    fooled = serializers.IntegerField()


class LabelCountsSerializer(CountsSerializer):
    """Examples by the author's label."""

    label: Any = serializers.CharField(help_text="In the words that people read.")


class SliceSerializer(CountsSerializer):
    """Examples by a value of a slice."""

    slice = serializers.CharField()
    value = serializers.CharField()


class ActivitySerializer(serializers.Serializer[Any]):
    """What people do in a round."""

    waiting = serializers.IntegerField(help_text="Examples that need votes.")
    oldest = serializers.DateTimeField(allow_null=True, help_text="When the first was written.")
    people = serializers.IntegerField(help_text="Who wrote or judged since 00:00 UTC.")
    writing = serializers.FloatField(allow_null=True, help_text="Median seconds of the latest.")
    judging = serializers.FloatField(allow_null=True, help_text="Median seconds of the latest.")
    days = DaySerializer(many=True, help_text="Of the last 30, those on which one wrote.")
    labels = LabelCountsSerializer(many=True)
    slices = SliceSerializer(many=True, help_text="The thinnest of each.")
    counted_at = serializers.DateTimeField()


class ActivityView(APIView):
    """The activity of a round."""

    @extend_schema(operation_id="activity_get", responses=ActivitySerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Show the numbers of the dashboard besides the statistics. Members only.

        Cached for half a minute.
        """
        task = find_task(request, code, can_read)
        activity = read_round_activity(get_object_or_404(task.rounds, number=number))
        body = {
            **vars(activity),
            "days": _build_rows(("day", "tries", "fooled", "verified"), activity.days),
            "labels": _build_rows(("label", "tries", "verified"), activity.labels),
            "slices": _build_rows(("slice", "value", "tries", "verified"), activity.slices),
        }
        return Response(ActivitySerializer(body).data)


def _build_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


class OtherwiseSerializer(serializers.Serializer[Any]):
    """An example on which the model disagrees with the consensus."""

    example = serializers.UUIDField(source="example.uuid")
    by_program = serializers.BooleanField(source="example.by_program")
    consensus = serializers.CharField()
    label: Any = serializers.CharField(help_text="The model's.")
    posterior = serializers.FloatField()


class BelievedSerializer(serializers.Serializer[Any]):
    """The model's estimate of a validator."""

    validator = serializers.CharField(help_text="A pseudonym.")
    reliability = serializers.FloatField(help_text="The chance to name the true label.")
    confusion = serializers.DictField(
        child=serializers.DictField(child=serializers.FloatField()),
        help_text="By the true label, then by the given one.",
    )


class SecondOpinionSerializer(serializers.Serializer[Any]):
    """The Dawid-Skene model of a round's votes."""

    reason = serializers.CharField(allow_null=True, help_text="Why there is none; null: it is.")
    labels = serializers.ListField(child=serializers.CharField())
    prior = serializers.DictField(child=serializers.FloatField())
    warnings = serializers.ListField(child=serializers.CharField())
    otherwise = OtherwiseSerializer(many=True, help_text="The surest first.")
    validators: Any = BelievedSerializer(many=True, help_text="The least reliable first.")


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
    model = second_opinion(round)
    if isinstance(model, Undefined):
        empty_values: dict[str, Any] = dict.fromkeys(
            ("labels", "warnings", "otherwise", "validators"), ()
        )
        return {"reason": model.reason, "prior": {}, **empty_values}
    validators = []
    for validator in model.validators:
        validators.append(
            {
                "validator": shown_name(validator.annotator),
                "reliability": validator.reliability,
                "confusion": validator.confusion,
            }
        )
    surest = find_disagreements(round, model)
    examples = Example.objects.only("uuid", "by_program").in_bulk([row.example for row in surest])
    otherwise = [row._asdict() | {"example": examples[row.example]} for row in surest]
    return {
        "reason": None,
        "labels": model.labels,
        "prior": model.prior,
        "warnings": model.warnings,
        "otherwise": otherwise,
        "validators": validators,
    }


ROUND_PATH = "tasks/<slug:code>/rounds/<int:number>/"
urlpatterns = [
    path("tasks/<slug:code>/authors/", Authors.as_view(), name="authors"),
    path("tasks/<slug:code>/validators/", Validators.as_view(), name="validators"),
    path(f"{ROUND_PATH}activity/", ActivityView.as_view(), name="activity"),
    path(f"{ROUND_PATH}second-opinion/", SecondOpinionView.as_view(), name="second-opinion"),
]
