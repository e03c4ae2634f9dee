"""The API's addresses of a task's campaigns: the list, one with its numbers, and its state."""

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.api.machine_share import MachineShareSerializer
from annotation.machine_text.selectors import build_machine_share_report
from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.errors import Invalid
from core.web.api import NewestFirst, read
from core.web.form_fields import build_request_field
from dynabench.campaigns.findings.information import preview_bonus
from dynabench.campaigns.forms import OpenForm
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.selectors import (
    calculate_numbers,
    list_place_rows,
    select_campaign_examples,
)
from dynabench.campaigns.services import ALLOWED_STATES_BEFORE, move_campaign
from tasks.access import ALL_KINDS, find_task, require_permission
from tasks.models import Round, Task
from tasks.permissions import can_own, can_read

CAMPAIGN_STATES = [state.value for state in ALLOWED_STATES_BEFORE]


class CampaignSerializer(serializers.ModelSerializer[Campaign]):
    """A campaign's plan. Money is in the currency's smallest unit."""

    rounds = serializers.SerializerMethodField(help_text="Round numbers. Empty: all open rounds.")

    class Meta:
        model = Campaign
        fields = (
            *("slug", "name", "kind", "rounds", "way", "state", "places", "each", "minutes"),
            *(
                "opens_at",
                "closes_at",
                "currency",
                "pay_task",
                "pay_accepted",
                "pay_bonus",
                "information_bonus",
            ),
            *("budget", "machine_hour", "approval_days", "opened_at", "closed_at", "made_at"),
        )

    def get_rounds(self, campaign: Campaign) -> list[int]:
        """Return the numbers of the campaign's rounds, in ascending order."""
        return [round.number for round in campaign.rounds.all()]


class CampaignPartsSerializer(serializers.Serializer[Any]):
    """The parts of a campaign's cost, in the currency's smallest unit.

    null: unknown, because a price is missing.
    """

    people = serializers.IntegerField(help_text="Pay, including fees and tax.")
    judges = serializers.IntegerField(allow_null=True, help_text="Votes on its examples.")
    model_calls = serializers.IntegerField(
        allow_null=True, help_text="Model answers to its examples."
    )
    evaluation = serializers.IntegerField(
        allow_null=True, help_text="Its share of the runs on the test sets of its rounds."
    )


class CampaignNumbersSerializer(serializers.Serializer[Any]):
    """The numbers by which an owner monitors a campaign.

    null: nobody has earned or found anything yet, or there is no budget.
    """

    taken = serializers.IntegerField(help_text="Places.")
    submitted = serializers.IntegerField()
    earned = serializers.IntegerField()
    paid = serializers.IntegerField()
    cost = serializers.IntegerField(help_text="Including fees and tax.")
    hourly = serializers.IntegerField(allow_null=True, help_text="Median of all participants.")
    people_left = serializers.IntegerField(
        allow_null=True, help_text="People the budget still pays for."
    )
    people_paid = serializers.IntegerField(
        allow_null=True,
        help_text="People the budget pays for in total, if each earns the maximum. null: no limit.",
    )
    fooling = serializers.IntegerField(help_text="Catches: confirmed tries that fooled the model.")
    parts = CampaignPartsSerializer()
    cost_each = serializers.IntegerField(
        source="cost_per_fooling_example",
        allow_null=True,
        help_text="Cost of one catch, from all known parts.",
    )
    cost_in_the_end = serializers.IntegerField(
        allow_null=True,
        help_text="Expected total of all known parts once the places or the budget are used up.",
    )
    fooling_in_the_end = serializers.IntegerField(allow_null=True)


class WholeCampaignSerializer(CampaignSerializer):
    """A campaign's plan with its numbers."""

    numbers = serializers.SerializerMethodField()
    machine_share = serializers.SerializerMethodField()

    class Meta(CampaignSerializer.Meta):
        fields = (  # type: ignore[assignment]
            *(*CampaignSerializer.Meta.fields, "deterrents", "is_labelled"),
            *("numbers", "machine_share"),
        )

    @extend_schema_field(CampaignNumbersSerializer)
    def get_numbers(self, campaign: Campaign) -> Any:
        """Return the campaign's numbers, the same as on the owner's page."""
        return CampaignNumbersSerializer(
            calculate_numbers(campaign, list_place_rows(campaign))
        ).data

    @extend_schema_field(MachineShareSerializer)
    def get_machine_share(self, campaign: Campaign) -> Any:
        """Return the estimated share of machine-written texts in the campaign."""
        report = build_machine_share_report(select_campaign_examples(campaign))
        return MachineShareSerializer(report).data


class CampaignStateSerializer(serializers.Serializer[Any]):
    """A new state of a campaign (open, paused or closed), its new rounds, or both."""

    state = serializers.ChoiceField(CAMPAIGN_STATES, required=False)
    rounds = serializers.ListField(
        child=serializers.IntegerField(min_value=0),
        required=False,
        help_text="Numbers of the rounds in which work counts. Empty: all open rounds.",
    )
    ethics_name = build_request_field(
        OpenForm,
        "ethics_name",
        default="",
        allow_blank=True,
        help_text="Required to open it: your name under the ethics statement.",
    )

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Check that the request contains a state, rounds or both."""
        if not {"state", "rounds"} & values.keys():
            raise serializers.ValidationError({"state": ["Send a state, rounds, or both."]})
        return values


class _CampaignAPIView(APIView):
    """Base view of a task's campaigns, for the task's owners."""

    write_scope = ApiToken.Scope.OWN

    def get_owned_task(self) -> Task:
        """Return the task in the address, for its owners. Raises Http404, PermissionDenied."""
        # Arenas have campaigns, too.
        task = find_task(self.request, self.kwargs["code"], can_own, kinds=ALL_KINDS)
        # As the pages of campaigns: they show what people wrote and answered.
        require_permission(self.request.user, task, can_read)
        return task

    def find_campaign(self, slug: str) -> Campaign:
        """Return the campaign, if the person owns its task. Raises Http404, PermissionDenied."""
        return get_object_or_404(self.get_owned_task().campaigns.select_related("task"), slug=slug)


@extend_schema_view(get=extend_schema(operation_id="campaigns_list"))
class CampaignList(_CampaignAPIView, generics.ListAPIView[Campaign]):
    """All campaigns of a task, newest first. Owners only."""

    serializer_class = CampaignSerializer
    pagination_class = NewestFirst
    queryset = Campaign.objects.none()

    def get_queryset(self) -> QuerySet[Campaign]:
        """Return the task's campaigns."""
        # The serializer lists each campaign's rounds: two queries for a page of campaigns.
        return self.get_owned_task().campaigns.prefetch_related("rounds")


class CampaignView(_CampaignAPIView):
    """One campaign: its plan and its numbers."""

    @extend_schema(operation_id="campaigns_get", responses=WholeCampaignSerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Return a campaign's plan and numbers. Owners only."""
        return Response(WholeCampaignSerializer(self.find_campaign(slug)).data)

    @write("campaigns_change", CampaignStateSerializer, WholeCampaignSerializer)
    def patch(self, request: Request, code: str, slug: str) -> Response:
        """Choose a campaign's rounds, or open, pause or close it. Owners only."""
        campaign = self.find_campaign(slug)
        values = read(CampaignStateSerializer, request)
        if "rounds" in values:
            values["rounds"] = _find_rounds(campaign.task, values["rounds"])
        try:
            move_campaign(campaign=campaign, actor=get_person(request), **values)
        except Invalid as error:
            # The error may name a field of the page's form, such as the budget, which this
            # request does not have: the state that was asked for is then what is refused.
            field = error.field if error.field in CampaignStateSerializer().fields else "state"
            raise Invalid(str(error), code=error.code, field=field) from None
        return Response(WholeCampaignSerializer(self.find_campaign(slug)).data)


class PreviewedPersonSerializer(serializers.Serializer[Any]):
    """What the past catches of one person would have earned, in the smallest unit."""

    person = serializers.CharField(help_text="The pseudonym.")
    catches = serializers.IntegerField()
    flat = serializers.IntegerField(help_text="The same bonus for each catch.")
    by_information = serializers.IntegerField()


class PreviewedCatchSerializer(serializers.Serializer[Any]):
    """A past catch, and what it would have earned, in the smallest unit."""

    round = serializers.IntegerField(help_text="Its number.")
    example = serializers.UUIDField()
    person = serializers.CharField(help_text="The author's pseudonym.")
    information = serializers.FloatField(help_text="From 0 to 1.")
    flat = serializers.IntegerField()
    by_information = serializers.IntegerField()


class BonusPreviewSerializer(serializers.Serializer[Any]):
    """What a campaign's bonus would have paid for the newest catches of finished rounds."""

    information = serializers.FloatField(help_text="The sum over all catches.")
    flat_cost = serializers.IntegerField(help_text="With fee and tax, in the smallest unit.")
    information_cost = serializers.IntegerField()
    people = PreviewedPersonSerializer(many=True)
    catches = PreviewedCatchSerializer(many=True)


class BonusPreviewView(_CampaignAPIView):
    """What past catches would have earned by a flat bonus and by information."""

    @extend_schema(operation_id="campaigns_bonus_preview", responses=BonusPreviewSerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Return what a flat bonus and one by information would have paid. Owners only."""
        return Response(BonusPreviewSerializer(preview_bonus(self.find_campaign(slug))).data)


def _find_rounds(task: Task, numbers: Collection[int]) -> list[Round]:
    """Return the task's rounds with these numbers. Raises Invalid if one does not exist."""
    rounds_by_number = {round.number: round for round in task.rounds.all()}
    missing_numbers = sorted(set(numbers) - rounds_by_number.keys())
    if missing_numbers:
        raise Invalid(f"This task has no round {missing_numbers[0]}.", field="rounds")
    return [rounds_by_number[number] for number in numbers]


urlpatterns = [
    path("tasks/<slug:code>/campaigns/", CampaignList.as_view(), name="campaigns"),
    path("tasks/<slug:code>/campaigns/<slug:slug>/", CampaignView.as_view(), name="campaign"),
    path(
        "tasks/<slug:code>/campaigns/<slug:slug>/bonus-preview/",
        BonusPreviewView.as_view(),
        name="campaign-bonus-preview",
    ),
]
