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
from validation.decisions.bulk_services import MAX_EXAMPLES, TAGS, Action, TooMany, Wish


class WishForm(forms.Form):
    """A form for a bulk action; `wish` is available once it is valid."""

    action = forms.ChoiceField(choices=Action.choices, label=_("Action"))
    reason = forms.CharField(
        max_length=500, required=False, label=_("Reason"),
        help_text=_("The author reads it, without your name. Sending back needs one."),
    )  # fmt: skip
    tag = forms.CharField(
        max_length=MAX_TAG_CHARS, required=False, label=_("Tag"),
        help_text=_("For reviewers alone. Capitals do not matter."),
    )  # fmt: skip
    looked_at = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """Require the fields that the action needs."""
        data: dict[str, Any] = super().clean() or {}
        action = data.get("action")
        if action == Action.SEND_BACK and not data.get("reason"):
            self.add_error("reason", gettext("Tell the author what to mend"))
        if action in TAGS and not self.has_error("tag"):
            try:
                data["tag"] = normalise_tag(data["tag"])
            except ValueError:
                message = gettext("Enter a tag of 1 to %(number)d characters") % {
                    "number": MAX_TAG_CHARS
                }
                self.add_error("tag", message)
        return data

    @property
    def wish(self) -> Wish:
        """Return the action with its fields, without those filled in for other actions."""
        data = self.cleaned_data
        action = Action(data["action"])
        is_tag = action in TAGS
        has_reason = not is_tag and action != Action.UNDECIDE
        return Wish(
            action,
            reason=data["reason"] if has_reason else "",
            tag=data["tag"] if is_tag else "",
            looked_at=data["looked_at"],
        )


def find_named_examples(task: Task, uuids: Collection[str | UUID]) -> list[int]:
    """Return the ids of a task's examples with these uuids. Raises Invalid, TooMany.

    At most two queries.
    """
    if not uuids:
        raise Invalid(gettext("Choose at least one example"), field="examples")
    # Before the query, which would carry each of the ids.
    if len(uuids) > MAX_EXAMPLES:
        raise TooMany(gettext("At most %(number)d examples at a time.") % {"number": MAX_EXAMPLES})
    try:
        unique_uuids = {UUID(str(uuid)) for uuid in uuids}
    except ValueError:
        raise Invalid(gettext("This is no example’s id"), field="examples") from None
    pks = Example.objects.filter(round__task=task, uuid__in=unique_uuids).values_list(
        "pk", flat=True
    )
    ids = list(pks)
    # All or none: an example that was named is never left out silently.
    if len(ids) < len(unique_uuids):
        message = gettext("%(number)d of the examples are not of this task. Nothing was changed.")
        raise Invalid(message % {"number": len(unique_uuids) - len(ids)}, field="examples")
    return ids
