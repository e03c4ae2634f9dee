"""The form for a new webhook."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core.accounts.models import User
from dynabench.webhooks.models import Webhook
from tasks.selectors import find_visible_tasks


class WebhookForm(forms.Form):
    """A form for a webhook's address, events and task."""

    url = forms.CharField(
        max_length=500,
        label=_("URL"),
        help_text=_("Where your program listens, for example https://example.org/dynabench."),
        widget=forms.URLInput,
    )
    events = forms.MultipleChoiceField(
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        label=_("Events"),
        error_messages={"required": _("Choose at least one event.")},
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        """Offer the tasks that the person may see."""
        super().__init__(*args, **kwargs)
        self.fields["task"] = forms.ModelChoiceField(
            find_visible_tasks(user),
            to_field_name="code",
            required=False,
            label=_("Task"),
            empty_label=_("All tasks I can see"),
        )
