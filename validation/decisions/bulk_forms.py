"""The form of an action on many examples."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from core.errors import Invalid
from tasks.models import Task
from validation.consensus.tags import MAX_TAG_CHARS, normalise_tag
from validation.decisions.bulk_services import (
    MAX_EXAMPLES,
    TAG_ACTIONS,
    Action,
    ActionRequest,
    TooManyExamples,
)


class BulkActionForm(forms.Form):
    """A form for a bulk action; `requested_action` is available once it is valid."""

    action = forms.ChoiceField(choices=Action.choices, label=_("Action"))
    reason = forms.CharField(
        max_length=500, required=False, label=_("Reason"),
        help_text=_("The author sees this, without your name. Required to send back an example."),
    )  # fmt: skip
    tag = forms.CharField(
        max_length=MAX_TAG_CHARS, required=False, label=_("Tag"),
        help_text=_("Only reviewers see tags. Capitals don't matter."),
    )  # fmt: skip
    looked_at = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """Require the fields that the action needs."""
        data: dict[str, Any] = super().clean() or {}
        action = data.get("action")
        if action == Action.SEND_BACK and not data.get("reason"):
            self.add_error("reason", gettext("Tell the author what to fix"))
        if action in TAG_ACTIONS and not self.has_error("tag"):
            try:
                data["tag"] = normalise_tag(data["tag"])
            except ValueError:
                message = gettext("Enter a tag of 1 to %(number)d characters") % {
                    "number": MAX_TAG_CHARS
                }
                self.add_error("tag", message)
        return data

    @property
    def requested_action(self) -> ActionRequest:
        """Return the action with its fields, without those filled in for other actions."""
        data = self.cleaned_data
        action = Action(data["action"])
        is_tag = action in TAG_ACTIONS
        has_reason = not is_tag and action != Action.UNDECIDE
        return ActionRequest(
            action,
            reason=data["reason"] if has_reason else "",
            tag=data["tag"] if is_tag else "",
            looked_at=data["looked_at"],
        )


def find_named_examples(task: Task, uuids: Collection[str | UUID]) -> list[int]:
    """Return the ids of a task's examples with these uuids. Raises Invalid, TooManyExamples.

    At most two queries.
    """
    if not uuids:
        raise Invalid(gettext("Choose at least one example."), field="examples")
    # Checked before the query, which would contain all ids.
    if len(uuids) > MAX_EXAMPLES:
        raise TooManyExamples(
            gettext("Choose at most %(number)d examples at a time.") % {"number": MAX_EXAMPLES}
        )
    try:
        unique_uuids = {UUID(str(uuid)) for uuid in uuids}
    except ValueError:
        raise Invalid(gettext("Each example ID must be a UUID."), field="examples") from None
    named_ids = Example.objects.filter(round__task=task, uuid__in=unique_uuids).values_list(
        "pk", flat=True
    )
    example_ids = list(named_ids)
    # All or none, so that no example in the request is left out silently.
    if len(example_ids) < len(unique_uuids):
        message = gettext(
            "Some of these examples belong to another task (%(number)d). We changed nothing."
        )
        raise Invalid(message % {"number": len(unique_uuids) - len(example_ids)}, field="examples")
    return example_ids
