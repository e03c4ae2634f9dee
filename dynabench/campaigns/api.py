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

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import person
from core.errors import Invalid
from core.web.api import NewestFirst, read
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.selectors import numbers_of, rows_of
from dynabench.campaigns.services import FROM, move_campaign
from tasks.access import ANY, find_task, require
from tasks.models import Round, Task
from tasks.permissions import can_own, can_read

STATES = [state.value for state in FROM]


class CampaignSerializer(serializers.ModelSerializer[Campaign]):
    """A campaign's plan; money is in the currency's smallest unit."""

    rounds = serializers.SerializerMethodField(help_text="Their numbers; none: all that are open.")

    class Meta:
        model = Campaign
        fields = (
            *("slug", "name", "kind", "rounds", "way", "state", "places", "each", "minutes"),
            *("opens_at", "closes_at", "currency", "pay_task", "pay_accepted", "pay_bonus"),
            *("budget", "machine_hour", "approval_days", "opened_at", "closed_at", "made_at"),
        )

    def get_rounds(self, campaign: Campaign) -> list[int]:
        """In their order."""
        return [one.number for one in campaign.rounds.all()]


class CampaignPartsSerializer(serializers.Serializer[Any]):
    """What a campaign has cost, in the smallest unit; null: unknown, as a price is not stated."""

    people = serializers.IntegerField(help_text="Its pay, with fee and tax.")
    judges = serializers.IntegerField(allow_null=True, help_text="Votes on its examples.")
    model_calls = serializers.IntegerField(allow_null=True, help_text="Answers to its examples.")
    evaluation = serializers.IntegerField(
        allow_null=True, help_text="Runs on its rounds' sets, by its share of the examples."
    )


class CampaignNumbersSerializer(serializers.Serializer[Any]):
    """What an owner watches; null: nobody has earned or found anything, or there is no budget."""

    taken = serializers.IntegerField(help_text="Places.")
    submitted = serializers.IntegerField()
    earned = serializers.IntegerField()
    paid = serializers.IntegerField()
    cost = serializers.IntegerField(help_text="With fee and tax.")
    hourly = serializers.IntegerField(allow_null=True, help_text="Of the median person.")
    people_left = serializers.IntegerField(allow_null=True, help_text="Whom the budget pays.")
    people_paid = serializers.IntegerField(
        allow_null=True, help_text="Whom it pays in all, if each earns the most; null: no limit."
    )
    fooling = serializers.IntegerField(help_text="Catches: confirmed tries that fooled the model.")
    parts = CampaignPartsSerializer()
    cost_each = serializers.IntegerField(
        allow_null=True, help_text="Of one of them, by all parts that are known."
    )
    cost_in_the_end = serializers.IntegerField(
        allow_null=True, help_text="Of all known parts, once the places or the budget are used up."
    )
    fooling_in_the_end = serializers.IntegerField(allow_null=True)


class WholeCampaignSerializer(CampaignSerializer):
    """A campaign with its numbers."""

    numbers = serializers.SerializerMethodField()

    class Meta(CampaignSerializer.Meta):
        fields = (*CampaignSerializer.Meta.fields, "numbers")  # type: ignore[assignment]

    @extend_schema_field(CampaignNumbersSerializer)
    def get_numbers(self, campaign: Campaign) -> Any:
        """As the owner's page has them."""
        return CampaignNumbersSerializer(numbers_of(campaign, rows_of(campaign))).data


class CampaignStateSerializer(serializers.Serializer[Any]):
    """Open, pause or close it, or choose its rounds."""

    state = serializers.ChoiceField(STATES, required=False)
    rounds = serializers.ListField(
        child=serializers.IntegerField(min_value=0),
        required=False,
        help_text="Their numbers, in which work counts; none: all that are open.",
    )
    ethics_name = serializers.CharField(
        max_length=100,
        default="",
        allow_blank=True,
        help_text="To open it: your name under the ethics statement.",
    )

    def validate(self, told: dict[str, Any]) -> dict[str, Any]:
        if not {"state", "rounds"} & told.keys():
            raise serializers.ValidationError({"state": ["Say its state, its rounds or both."]})
        return told


class _OfCampaigns(APIView):
    write_scope = ApiToken.Scope.OWN

    def owned(self) -> Task:
        """The task, for its owners."""
        task = find_task(self.request, self.kwargs["code"], can_own, kinds=ANY)
        require(self.request.user, task, can_read)  # as the pages of campaigns
        return task


@extend_schema_view(get=extend_schema(operation_id="campaigns_list"))
class Campaigns(_OfCampaigns, generics.ListAPIView[Campaign]):
    """All campaigns of a task, the newest first; for owners."""

    serializer_class = CampaignSerializer
    pagination_class = NewestFirst
    queryset = Campaign.objects.none()

    def get_queryset(self) -> QuerySet[Campaign]:
        return self.owned().campaigns.prefetch_related("rounds")


class CampaignView(_OfCampaigns):
    """One campaign."""

    def found(self, slug: str) -> Campaign:
        """The campaign, for the task's owners."""
        return get_object_or_404(self.owned().campaigns.select_related("task"), slug=slug)

    @extend_schema(operation_id="campaigns_get", responses=WholeCampaignSerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Its plan and its numbers; for owners."""
        return Response(WholeCampaignSerializer(self.found(slug)).data)

    @write("campaigns_change", CampaignStateSerializer, WholeCampaignSerializer)
    def patch(self, request: Request, code: str, slug: str) -> Response:
        """Choose its rounds; open, pause or close it; for owners."""
        found, told = self.found(slug), read(CampaignStateSerializer, request)
        if "rounds" in told:
            told["rounds"] = _rounds(found.task, told["rounds"])
        try:
            move_campaign(campaign=found, actor=person(request), **told)
        except (
            Invalid
        ) as error:  # of what was written on the page, for the state that was asked for
            field = error.field if error.field in CampaignStateSerializer().fields else "state"
            raise Invalid(str(error), code=error.code, field=field) from None
        return Response(WholeCampaignSerializer(self.found(slug)).data)


def _rounds(task: Task, numbers: Collection[int]) -> list[Round]:
    """Raises Invalid where the task has none of a number."""
    known = {one.number: one for one in task.rounds.all()}
    if wrong := sorted(set(numbers) - known.keys()):
        raise Invalid(f"This task has no round {wrong[0]}.", field="rounds")
    return [known[number] for number in numbers]


urlpatterns = [
    path("tasks/<slug:code>/campaigns/", Campaigns.as_view(), name="campaigns"),
    path("tasks/<slug:code>/campaigns/<slug:slug>/", CampaignView.as_view(), name="campaign"),
]
