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
from core.accounts.people import get_account_address, get_person, get_public_name
from core.errors import Invalid
from core.mail.addresses import AddressSerializerField
from core.web.api import read
from core.web.form_fields import build_request_field
from tasks.access import ALL_KINDS, find_task
from tasks.members.assignments.forms import AmountForm
from tasks.members.assignments.selectors import list_assignable_people
from tasks.members.assignments.services import change_assignment, end_assignment, set_assignments
from tasks.models import Duty, Round, Task
from tasks.permissions import can_edit, can_own
from validation.judging.assignments import AssignmentRow, list_assignment_rows, list_assignments

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
        help_text="How many of those with a share judge the same example.",
    )
    due_on = serializers.DateField(
        source="assignment.due_on", allow_null=True, help_text="The last day (UTC)."
    )
    done = serializers.IntegerField(source="progress.done_count")
    state = serializers.ChoiceField(STATES)


class DutySerializer(OwnDutySerializer):
    """An assignment with its progress.

    The progress of an assignment to everybody is that of all people together.
    """

    name = serializers.SerializerMethodField(help_text="A pseudonym; null: everybody.")
    email = serializers.SerializerMethodField(
        help_text="null: everyone, or you do not own the task."
    )
    wanted = serializers.IntegerField(
        source="progress.required_count", allow_null=True, help_text="null: not known."
    )

    def get_name(self, row: AssignmentRow) -> str | None:
        return get_public_name(row.assignment.person) if row.assignment.person else None

    def get_email(self, row: AssignmentRow) -> str | None:
        return get_account_address(row.assignment.person, is_owner=self.context["owns"])


class DutyChangeSerializer(serializers.Serializer[Any]):
    """The amount or share of an assignment, and its due date."""

    amount = build_request_field(AmountForm, "amount", default=None)
    # The page shows a percentage.
    share = serializers.FloatField(min_value=0.0001, max_value=1, allow_null=True, default=None)
    overlap = build_request_field(AmountForm, "overlap")
    due_on = build_request_field(AmountForm, "due_on", default=None)


class NewDutySerializer(DutyChangeSerializer):
    """A new assignment. Without amount and share, the work is divided equally."""

    kind = serializers.ChoiceField(Duty.Kind.choices)
    emails = serializers.ListField(
        child=AddressSerializerField(),
        max_length=500,
        default=list,
        help_text="Of members; for owners.",
    )
    names = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=500,
        default=list,
        help_text="Pseudonyms of members. Leave email addresses and names empty for everyone.",
    )
    round = serializers.IntegerField(allow_null=True, default=None, help_text="null: all rounds.")


class OwnAssignmentsView(APIView):
    @extend_schema(operation_id="own_duties", responses=OwnDutySerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your own assignments in all tasks, the earliest due date first."""
        return Response(OwnDutySerializer(list_assignments(get_person(request)), many=True).data)


class _TaskAssignmentsView(APIView):
    write_scope = ApiToken.Scope.OWN

    def get_editable_task(self, code: str) -> Task:
        """Return the task, which the user must be allowed to edit. Raises like `find_task`."""
        return find_task(self.request, code, can_edit, kinds=ALL_KINDS)

    def build_response(
        self, task: Task, status_code: int = status.HTTP_200_OK, **filters: Any
    ) -> Response:
        """Return a response with the assignments; only owners get email addresses."""
        rows = list_assignment_rows(task.duties.select_current().filter(**filters))
        context = {"owns": can_own(self.request.user, task)}
        return Response(DutySerializer(rows, many=True, context=context).data, status_code)


class AssignmentsView(_TaskAssignmentsView):
    @extend_schema(operation_id="duties_list", responses=DutySerializer(many=True))
    def get(self, request: Request, code: str) -> Response:
        """List the current assignments of all members; for owners and editors."""
        return self.build_response(self.get_editable_task(code))

    @write("duties_set", NewDutySerializer, {201: DutySerializer(many=True)})
    def post(self, request: Request, code: str) -> Response:
        """Assign a number or a share of examples to write or judge, to members or to everybody.

        Creates one assignment for each member.
        """
        task, body = self.get_editable_task(code), read(NewDutySerializer, request)
        emails, names = body.pop("emails"), body.pop("names")
        # Otherwise editors could find out which addresses belong to members.
        if emails and not can_own(request.user, task):
            raise Invalid("Only owners name members by e-mail address. Use names.", field="emails")
        members = list_assignable_people(task, body["kind"])
        people = _find_named_members(members, emails, "emails") + _find_named_members(
            members, names, "names"
        )
        if (number := body.pop("round")) is not None:
            body["round"] = _get_round(task, number)
        # Each person once, even if they are listed by address and by pseudonym.
        assignments = set_assignments(
            task=task, actor=get_person(request), people=list(dict.fromkeys(people)), **body
        )
        return self.build_response(
            task, status.HTTP_201_CREATED, pk__in=[assignment.pk for assignment in assignments]
        )


class AssignmentView(_TaskAssignmentsView):
    @write("duties_change", DutyChangeSerializer, DutySerializer(many=True))
    def put(self, request: Request, code: str, pk: int) -> Response:
        """Change an assignment's amount, share and due date. Omitted fields are cleared."""
        task = self.get_editable_task(code)
        assignment = get_object_or_404(task.duties.select_current(), pk=pk)
        change_assignment(
            assignment=assignment, actor=get_person(request), **read(DutyChangeSerializer, request)
        )
        return self.build_response(task, pk=pk)

    @write("duties_end", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """End an assignment; finished work is kept."""
        task = self.get_editable_task(code)
        assignment = get_object_or_404(task.duties.select_related("person", "round"), pk=pk)
        end_assignment(assignment=assignment, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _get_round(task: Task, number: int) -> Round:
    round = task.rounds.filter(number=number).first()
    if round is None:
        raise Invalid("The task doesn't have a round with this number.", field="round")
    return round


def _find_named_members(members: Sequence[User], names: Sequence[str], field: str) -> list[User]:
    """Return the members named by email address or pseudonym. Raises Invalid."""
    get_name = (lambda user: user.email) if field == "emails" else get_public_name
    members_by_name = {get_name(user): user for user in members}
    names = [name.lower() for name in names]
    if unknown_names := ", ".join(name for name in names if name not in members_by_name):
        message = f"No members whose role lets them: {unknown_names}. Change their role first."
        raise Invalid(message, field=field)
    return [members_by_name[name] for name in names]
