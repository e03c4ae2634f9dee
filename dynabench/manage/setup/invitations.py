"""The owners' page of invitations: by email to single people, or by a link for many."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.env import is_real_mail_backend
from core.errors import Refused
from core.mail.addresses import is_mail_address
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from core.web.throttles import is_used_up
from dynabench.manage.access import find_owned_task
from tasks.members.forms import ROLE_CHOICES, InvitationForm
from tasks.members.invitation_services import (
    MAX_USES,
    create_invitation_link,
    revoke_invitation,
    send_invitations,
)
from tasks.models import Task, TaskMember
from tasks.permissions import OWNERS, can_own, count_places_left

MAX_ADDRESSES = 30


class MailForm(InvitationForm):
    """A form for invitations by email."""

    addresses = forms.CharField(
        label=gettext_lazy("Email addresses"),
        help_text=gettext_lazy(
            "One address per line. Each person gets their own link, which works once."
        ),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    field_order = ("addresses", "role", "days")

    def clean_addresses(self) -> list[str]:
        """Return the addresses.

        Raises ValidationError if there are too many or some are invalid.
        """
        addresses: list[str] = self.cleaned_data["addresses"].replace(",", " ").split()
        if len(addresses) > MAX_ADDRESSES:
            message = _("You can invite up to %(most)d people at a time.")
            raise ValidationError(message % {"most": MAX_ADDRESSES})
        invalid_addresses = [address for address in addresses if not is_mail_address(address)]
        if invalid_addresses:
            message = _("Check these email addresses: %(wrong)s")
            raise ValidationError(message % {"wrong": ", ".join(invalid_addresses)})
        return addresses


class LinkForm(InvitationForm):
    """A form for an invitation link for several people."""

    role = forms.ChoiceField(
        label=gettext_lazy("Role"),
        # A link can be passed on, so it makes nobody an owner.
        choices=[(role, words) for role, words in ROLE_CHOICES if role not in OWNERS],
    )
    most = forms.IntegerField(
        label=gettext_lazy("Maximum number of people"), min_value=1, max_value=MAX_USES, initial=20
    )
    field_order = ("role", "most", "days")

    def __init__(self, *args: Any, places_left: int | None, **kwargs: Any) -> None:
        """Set the initial value and the help text of the field `most`.

        places_left: how many more people may become members; None for no limit.
        """
        super().__init__(*args, **kwargs)
        limit_field = self.fields["most"]
        if places_left is not None:
            # Never below the least that the field takes, even if nobody may join.
            limit_field.initial = max(1, min(limit_field.initial, places_left))
            words = ngettext(
                "Until the task is approved, %(n)d more person can join.",
                "Until the task is approved, %(n)d more people can join.",
                places_left,
            )
            limit_field.help_text = words % {"n": places_left}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def show_invitations(request: HttpRequest, code: str) -> HttpResponse:
    """Show all invitations and who accepted them, with forms for new ones.

    A new link is shown only once.
    """
    task = find_owned_task(request, code, can_own)
    mail_data = request.POST if "mail" in request.POST else None
    link_data = request.POST if "link" in request.POST else None
    initial = {"role": TaskMember.Role.ANNOTATOR}
    mail_form = MailForm(mail_data, initial=initial, auto_id="mail-%s")
    link_form = LinkForm(
        link_data, initial=initial, auto_id="link-%s", places_left=count_places_left(task)
    )
    url = ""
    if mail_form.is_valid() and _send_invitations(request, task, mail_form):
        return redirect("own:invitations", code)
    if link_form.is_valid():
        with show_as_form_error(link_form):
            _invitation, url = create_invitation_link(
                task=task, actor=get_person(request), **link_form.cleaned_data
            )
    # With the members that came by each.
    rows = task.invitations.prefetch_related("members__user")
    values: dict[str, Any] = {
        "task": task,
        "rows": rows,
        "url": url,
        "mail": mail_form,
        "link": link_form,
    }
    values["sends_mail"] = is_real_mail_backend(settings.EMAIL_BACKEND)
    status = get_form_status(mail_form, link_form)
    return render(request, "own/setup/invitations.html", values, status=status)


def _send_invitations(request: HttpRequest, task: Task, form: MailForm) -> bool:
    """Send the invitations. Return whether they were sent; if not, the form shows the reason.

    Each person may invite only a limited number of addresses per hour, to prevent spam.
    """
    with show_as_form_error(form):
        user, values = get_person(request), form.cleaned_data
        for _address in values["addresses"]:
            if is_used_up("members", user.pk):  # counts one
                raise Refused(
                    _("You've invited many people in the last hour. Try again later."), code="rate"
                )
        count = len(send_invitations(task=task, actor=user, **values))
        words = ngettext("%(n)d person invited.", "%(n)d people invited.", count)
        messages.success(request, words % {"n": count})
    return not form.errors


@require_POST
def revoke_task_invitation(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Revoke an invitation. People who accepted it stay members."""
    task = find_owned_task(request, code, can_own)
    with show_as_message(request):
        revoke_invitation(
            invitation=get_object_or_404(task.invitations, pk=pk), actor=get_person(request)
        )
        messages.success(request, _("Invitation revoked."))
    return redirect("own:invitations", code)
