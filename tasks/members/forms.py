"""The forms of a task's members, invitations and visibility."""

from django import forms
from django.utils.translation import gettext_lazy

from core.mail.addresses import AddressField
from tasks.members.invitation_services import MAX_DAYS
from tasks.models import TaskMember

ROLES = [
    (TaskMember.Role.OWNER, gettext_lazy("Owner: everything")),
    (TaskMember.Role.EDITOR, gettext_lazy("Editor: sets the task up")),
    (TaskMember.Role.REVIEWER, gettext_lazy("Reviewer: decides on examples and reports")),
    (TaskMember.Role.VIEWER, gettext_lazy("Viewer: reads all")),
    (TaskMember.Role.ANNOTATOR, gettext_lazy("Annotator: writes and judges")),
    (TaskMember.Role.WRITER, gettext_lazy("Writer: only writes")),
    (TaskMember.Role.JUDGE, gettext_lazy("Judge: only judges")),
]
"""All roles, in words."""


class SeenForm(forms.Form):
    """Who sees a task."""

    is_visible = forms.BooleanField(
        label=gettext_lazy("Everybody sees the task"),
        required=False,
        help_text=gettext_lazy("Otherwise only its members."),
    )
    allow_try_out = forms.BooleanField(
        label=gettext_lazy("People without an account may try the models"),
        required=False,
        help_text=gettext_lazy("Nothing of that is kept."),
    )


class RoleForm(forms.Form):
    """The role of a member."""

    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES)


class MemberForm(RoleForm):
    """A new member, by address, so that nobody's address is offered."""

    email = AddressField(label=gettext_lazy("E-mail address of the account"))
    field_order = ("email", "role")


class InvitationForm(RoleForm):
    """The fields of both kinds of invitations."""

    days = forms.IntegerField(
        label=gettext_lazy("Days until it ends"), min_value=1, max_value=MAX_DAYS, initial=14
    )
