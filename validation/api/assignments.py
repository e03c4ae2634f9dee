"""The API's views of what people are asked to write or judge."""

from collections.abc import Sequence
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import account_address, person, public_name
from core.errors import Invalid
from core.mail.addresses import AddressInRequest
from core.web.api import read
from core.web.form_fields import request_field
from tasks.access import ALL_KINDS, find_task
from tasks.members.assignments.forms import AmountForm
from tasks.members.assignments.selectors import may_be_asked
from tasks.members.assignments.services import change_assignment, end_assignment, set_assignments
from tasks.models import Duty, Round, Task
from tasks.permissions import can_edit, can_own
from validation.judging.assignments import Progress, assignments_of, progress_of

STATES = ["over", "done", "late", "open"]


class OwnDutySerializer(serializers.Serializer[Any]):
    """The signed-in person's assignment, with their progress."""

    id = serializers.IntegerField(source="assignment.pk")
    task = serializers.CharField(source="assignment.task.code", help_text="Its code.")
    kind = serializers.ChoiceField(Duty.Kind.choices, source="assignment.kind")
    round = serializers.IntegerField(
        source="assignment.round.number",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="null: all rounds.",
    )
    amount = serializers.IntegerField(
        source="assignment.amount", allow_null=True, help_text="Of each person; null: a share."
    )
    share = serializers.FloatField(
        source="assignment.share", allow_null=True, help_text="Of what is judged, from 0 to 1."
    )
    overlap = serializers.IntegerField(
        source="assignment.overlap",
        help_text="So many of those with a share judge the same example.",
    )
    due_on = serializers.DateField(
        source="assignment.due_on", allow_null=True, help_text="The last day (UTC)."
    )
    done = serializers.IntegerField(source="standing.done")
    state = serializers.ChoiceField(STATES)


class DutySerializer(OwnDutySerializer):
    """An assignment with its progress; one for everybody has the progress of all together."""

    name = serializers.SerializerMethodField(help_text="A pseudonym; null: everybody.")
    email = serializers.SerializerMethodField(
        help_text="null: everybody, or you do not own the task."
    )
    wanted = serializers.IntegerField(
        source="standing.wanted", allow_null=True, help_text="null: not known."
    )

    def get_name(self, row: Progress) -> str | None:
        return public_name(row.assignment.person) if row.assignment.person else None

    def get_email(self, row: Progress) -> str | None:
        return account_address(row.assignment.person, owns=self.context["owns"])


class DutyChangeSerializer(serializers.Serializer[Any]):
    """The amount or share of an assignment, and its due date."""

    amount = request_field(AmountForm, "amount", default=None)
    # At the page in percent.
    share = serializers.FloatField(min_value=0.0001, max_value=1, allow_null=True, default=None)
    overlap = request_field(AmountForm, "overlap")
    due_on = request_field(AmountForm, "due_on", default=None)


class NewDutySerializer(DutyChangeSerializer):
    """A new assignment. Without amount and share, the work is divided equally."""

    kind = serializers.ChoiceField(Duty.Kind.choices)
    emails = serializers.ListField(
        child=AddressInRequest(), max_length=500, default=list, help_text="Of members; for owners."
    )
    names = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=500,
        default=list,
        help_text="Pseudonyms of members. No e-mail address and no name: everybody.",
    )
    round = serializers.IntegerField(allow_null=True, default=None, help_text="null: all rounds.")


class OwnDuties(APIView):
    @extend_schema(operation_id="own_duties", responses=OwnDutySerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your own assignments in all tasks, the earliest due date first."""
        return Response(OwnDutySerializer(assignments_of(person(request)), many=True).data)


class _OfTask(APIView):
    write_scope = ApiToken.Scope.OWN

    def task(self, code: str) -> Task:
        """Return the task, if the user may set it up."""
        return find_task(self.request, code, can_edit, kinds=ALL_KINDS)

    def answer(self, task: Task, code: int = status.HTTP_200_OK, **which: Any) -> Response:
        """Return a response with the assignments; only owners get email addresses."""
        rows = progress_of(task.duties.standing().filter(**which))
        context = {"owns": can_own(self.request.user, task)}
        return Response(DutySerializer(rows, many=True, context=context).data, code)


class Duties(_OfTask):
    @extend_schema(operation_id="duties_list", responses=DutySerializer(many=True))
    def get(self, request: Request, code: str) -> Response:
        """List the current assignments of all members; for owners and editors."""
        return self.answer(self.task(code))

    @write("duties_set", NewDutySerializer, {201: DutySerializer(many=True)})
    def post(self, request: Request, code: str) -> Response:
        """Assign a number or a share of examples to write or judge, to members or to everybody.

        Creates one assignment for each member.
        """
        task, body = self.task(code), read(NewDutySerializer, request)
        emails, names = body.pop("emails"), body.pop("names")
        # Else editors could find out whose addresses are members'.
        if emails and not can_own(request.user, task):
            raise Invalid("Only owners name members by e-mail address. Use names.", field="emails")
        members = may_be_asked(task, body["kind"])
        people = _named(members, emails, "emails") + _named(members, names, "names")
        if (number := body.pop("round")) is not None:
            body["round"] = _round(task, number)
        # Each once, even if named by address and by pseudonym.
        assignments = set_assignments(
            task=task, actor=person(request), people=list(dict.fromkeys(people)), **body
        )
        return self.answer(
            task, status.HTTP_201_CREATED, pk__in=[assignment.pk for assignment in assignments]
        )


class DutyView(_OfTask):
    @write("duties_change", DutyChangeSerializer, DutySerializer(many=True))
    def put(self, request: Request, code: str, pk: int) -> Response:
        """Change an assignment's amount, share and due date; fields that are left out are unset."""
        task = self.task(code)
        assignment = get_object_or_404(task.duties.standing(), pk=pk)
        change_assignment(
            assignment=assignment, actor=person(request), **read(DutyChangeSerializer, request)
        )
        return self.answer(task, pk=pk)

    @write("duties_end", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """End an assignment; finished work is kept."""
        task = self.task(code)
        assignment = get_object_or_404(task.duties.select_related("person", "round"), pk=pk)
        end_assignment(assignment=assignment, actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _round(task: Task, number: int) -> Round:
    round = task.rounds.filter(number=number).first()
    if round is None:
        raise Invalid("The task has no round with this number.", field="round")
    return round


def _named(members: Sequence[User], keys: Sequence[str], field: str) -> list[User]:
    """Return the members named by email address or pseudonym. Raises Invalid."""
    key = (lambda user: user.email) if field == "emails" else public_name
    members_by_key = {key(user): user for user in members}
    keys = [key_text.lower() for key_text in keys]
    if unknown := ", ".join(key_text for key_text in keys if key_text not in members_by_key):
        message = f"No members whose role lets them: {unknown}. Change their role first."
        raise Invalid(message, field=field)
    return [members_by_key[key_text] for key_text in keys]
