"""The API's views of what people are asked to write or judge."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dynabench.accounts.api import write
from dynabench.accounts.models import ApiToken
from dynabench.accounts.people import person
from dynabench.lib.addresses import AddressInRequest
from dynabench.lib.api import check_query, read
from dynabench.lib.errors import Invalid
from tasks.access import ANY, find_task
from tasks.duties.selectors import may_be_asked
from tasks.duties.services import change_duty, end_duty, set_duties
from tasks.models import Duty, Round, Task
from tasks.permissions import can_edit
from validation.judging.duties import duties_of, progress_of


class OwnDutySerializer(serializers.Serializer[Any]):
    """What one is asked for, and how far one is."""

    id = serializers.IntegerField(source="duty.pk")
    task = serializers.CharField(source="duty.task.code", help_text="Its code.")
    kind = serializers.ChoiceField(Duty.Kind.choices, source="duty.kind")
    round = serializers.IntegerField(
        source="duty.round.number",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="null: all rounds.",
    )
    amount = serializers.IntegerField(
        source="duty.amount", allow_null=True, help_text="Of each person; null: a share."
    )
    share = serializers.FloatField(
        source="duty.share", allow_null=True, help_text="Of what is judged, from 0 to 1."
    )
    overlap = serializers.IntegerField(
        source="duty.overlap", help_text="So many of those with a share judge the same example."
    )
    due_on = serializers.DateField(
        source="duty.due_on", allow_null=True, help_text="The last day (UTC)."
    )
    done = serializers.IntegerField(source="standing.done")
    state = serializers.ChoiceField(["over", "done", "late", "open"])


class DutySerializer(OwnDutySerializer):
    """What somebody is asked for, and how far they are; of everybody's what all did."""

    email = serializers.EmailField(
        source="duty.person.email",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="null: everybody.",
    )
    wanted = serializers.IntegerField(
        source="standing.wanted", allow_null=True, help_text="null: not known."
    )


class DutyChangeSerializer(serializers.Serializer[Any]):
    """How much, until when."""

    amount = serializers.IntegerField(min_value=1, max_value=100_000, allow_null=True, default=None)
    share = serializers.FloatField(min_value=0.0001, max_value=1, allow_null=True, default=None)
    overlap = serializers.IntegerField(min_value=1, max_value=50, default=1)
    due_on = serializers.DateField(allow_null=True, default=None)


class NewDutySerializer(DutyChangeSerializer):
    """Who is asked for what. Without amount and share: for equal parts of what is judged."""

    kind = serializers.ChoiceField(Duty.Kind.choices)
    emails = serializers.ListField(
        child=AddressInRequest(), max_length=500, help_text="Of members; empty: everybody."
    )
    round = serializers.IntegerField(allow_null=True, default=None, help_text="null: all rounds.")


class OwnDuties(APIView):
    @extend_schema(operation_id="own_duties", responses=OwnDutySerializer(many=True))
    def get(self, request: Request) -> Response:
        """What owners of all tasks ask of oneself, the next day first."""
        check_query(request)
        return Response(OwnDutySerializer(duties_of(person(request)), many=True).data)


class _OfTask(APIView):
    write_scope = ApiToken.Scope.OWN

    def task(self, code: str) -> Task:
        """For those who set it up."""
        return find_task(self.request, code, can_edit, kinds=ANY)


class Duties(_OfTask):
    @extend_schema(operation_id="duties_list", responses=DutySerializer(many=True))
    def get(self, request: Request, code: str) -> Response:
        """All that members are asked for now; for owners and editors."""
        check_query(request)
        return _answer(self.task(code))

    @write("duties_set", NewDutySerializer, {201: DutySerializer(many=True)})
    def post(self, request: Request, code: str) -> Response:
        """Ask members, or everybody, to write or judge so many, or a share. One for each member."""
        task, asked = self.task(code), read(NewDutySerializer, request)
        known = {user.email: user for user in may_be_asked(task, asked["kind"])}
        emails = [one.lower() for one in asked.pop("emails")]
        if unknown := ", ".join(one for one in emails if one not in known):
            said = f"No members whose role lets them: {unknown}. Change their role first."
            raise Invalid(said, field="emails")
        if (number := asked.pop("round")) is not None:
            asked["round"] = _round(task, number)
        made = set_duties(
            task=task, actor=person(request), people=[known[one] for one in emails], **asked
        )
        return _answer(task, status.HTTP_201_CREATED, pk__in=[duty.pk for duty in made])


class DutyView(_OfTask):
    @write("duties_change", DutyChangeSerializer, DutySerializer(many=True))
    def put(self, request: Request, code: str, pk: int) -> Response:
        """Ask for another amount or share, or until another day; what is left out is unset."""
        task = self.task(code)
        duty = get_object_or_404(task.duties.standing(), pk=pk)
        change_duty(duty=duty, actor=person(request), **read(DutyChangeSerializer, request))
        return _answer(task, pk=pk)

    @write("duties_end", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Ask for it no longer; what was done stays."""
        task = self.task(code)
        duty = get_object_or_404(task.duties.select_related("person", "round"), pk=pk)
        end_duty(duty=duty, actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _round(task: Task, number: int) -> Round:
    found = task.rounds.filter(number=number).first()
    if found is None:
        raise Invalid("The task has no round with this number.", field="round")
    return found


def _answer(task: Task, code: int = status.HTTP_200_OK, **which: Any) -> Response:
    rows = progress_of(task.duties.standing().filter(**which))
    return Response(DutySerializer(rows, many=True).data, code)
