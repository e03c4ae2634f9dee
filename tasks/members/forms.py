"""Forms for a task's members, invitations and visibility."""

from django import forms
from django.utils.translation import gettext_lazy

from core.mail.addresses import AddressField
from tasks.members.invitation_services import MAX_DAYS
from tasks.models import TaskMember

ROLE_CHOICES = [
    (TaskMember.Role.OWNER, gettext_lazy("Owner: can do everything")),
    (TaskMember.Role.EDITOR, gettext_lazy("Editor: sets up the task")),
    (TaskMember.Role.REVIEWER, gettext_lazy("Reviewer: decides on examples and reports")),
    (TaskMember.Role.VIEWER, gettext_lazy("Viewer: reads everything")),
    (TaskMember.Role.ANNOTATOR, gettext_lazy("Annotator: writes and judges")),
    (TaskMember.Role.WRITER, gettext_lazy("Writer: writes examples only")),
    (TaskMember.Role.JUDGE, gettext_lazy("Judge: judges examples only")),
]
"""All roles with their descriptions."""


class VisibilityForm(forms.Form):
    """A form for who can see a task and try its models."""

    is_visible = forms.BooleanField(
        label=gettext_lazy("Everyone can see the task"),
        required=False,
        help_text=gettext_lazy("Otherwise only members can see the task."),
    )
    allow_try_out = forms.BooleanField(
        label=gettext_lazy("People without an account can try the models"),
        required=False,
        help_text=gettext_lazy("We don't store what these people write."),
    )


class RoleForm(forms.Form):
    """A form for the role of a member."""

    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLE_CHOICES)


class MemberForm(RoleForm):
    """A form for a new member. The email address is typed, so that no addresses are listed."""

    email = AddressField(label=gettext_lazy("Email address of the account"))
    field_order = ("email", "role")


class InvitationForm(RoleForm):
    """A form with the fields that both kinds of invitations share."""

    days = forms.IntegerField(
        label=gettext_lazy("Expires after (days)"), min_value=1, max_value=MAX_DAYS, initial=14
    )
