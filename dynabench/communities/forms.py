"""The forms of communities."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.files.decoding import MAX_BYTES, TOO_MANY_BYTES_MESSAGE
from core.mail.addresses import AddressField
from dynabench.communities.joint_services import list_joint_kinds
from dynabench.communities.models import Community, CommunityTask, Post
from dynabench.communities.rules import MAX_WEIGHT
from tasks.models import Task
from tasks.models.proposal import validate_code

MAX_TEXT_CHARS = 100_000


class CommunityProposalForm(forms.Form):
    """A form for proposing a community."""

    name = forms.CharField(label=_("Name"), max_length=100)
    slug = forms.CharField(
        label=_("URL name"),
        max_length=40,
        validators=[validate_code],
        help_text=_("Lowercase letters, numbers, hyphens: my-community"),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    goal = forms.CharField(
        label=_("Goal"),
        max_length=2000,
        help_text=_("What the community's tasks explore together, and for whom."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class CommunityDecisionForm(forms.Form):
    """A form for an administrator's decision on a proposal."""

    approve = forms.TypedChoiceField(
        label=_("Decision"),
        # Translators: button: say no to an invitation or proposal
        choices=[("yes", _("Approve and create the community")), ("no", _("Decline"))],
        coerce=lambda value: value == "yes",
        widget=forms.RadioSelect,
    )
    slug = forms.CharField(label=_("URL name"), max_length=40, validators=[validate_code])
    reason = forms.CharField(
        label=_("Reason"),
        max_length=2000,
        required=False,
        help_text=_("The proposer sees this. Required if you decline."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class CommunityForm(forms.ModelForm):
    """A form for a community's texts, visibility and tracks."""

    tracks = forms.CharField(
        label=_("Tracks"),
        required=False,
        max_length=2000,
        help_text=_(
            "One per line, for example “up to 10 million words”. Each joint submission "
            "belongs to one track. Leave empty for no tracks."
        ),
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    text = forms.CharField(
        label=_("Text"),
        required=False,
        max_length=MAX_TEXT_CHARS,
        help_text=_("Markdown. Say who you are, what you want, and how to take part."),
        widget=forms.Textarea(attrs={"rows": 12}),
    )

    class Meta:
        model = Community
        fields = ("name", "summary", "text", "is_listed")
        labels = {
            "name": _("Name"),
            "summary": _("Summary"),
            "is_listed": _("Visible to everyone"),
        }
        help_texts = {
            "summary": _("One sentence for the list of communities."),
            "is_listed": _("Otherwise only the community's owners and its tasks' members see it."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Show the tracks one per line."""
        super().__init__(*args, **kwargs)
        self.initial["tracks"] = "\n".join(self.instance.tracks)

    def clean_tracks(self) -> list[str]:
        """Return the non-empty lines, with whitespace collapsed."""
        lines = self.cleaned_data["tracks"].splitlines()
        return [" ".join(line.split()) for line in lines if line.strip()]


class LogoForm(forms.Form):
    """A form for a community's logo."""

    logo = forms.FileField(label=_("Logo"), help_text=_("PNG, JPEG, WebP or GIF."))

    def clean_logo(self) -> Any:
        """Return the uploaded file. Raises ValidationError if it is too large."""
        file = self.cleaned_data["logo"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(TOO_MANY_BYTES_MESSAGE)
        return file


class OwnerForm(forms.Form):
    """A form for a new owner's email address. It offers no addresses, so that none is revealed."""

    email = AddressField(label=_("Email address of the account"))


class PostForm(forms.ModelForm):
    """A form for a news item."""

    text = forms.CharField(
        label=_("Text"),
        max_length=MAX_TEXT_CHARS,
        help_text=_("Markdown."),
        widget=forms.Textarea(attrs={"rows": 6}),
    )

    class Meta:
        model = Post
        fields = ("title", "text")
        labels = {"title": _("Title")}

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        """Build the form with a prefix, because the page's text form has the same fields."""
        super().__init__(data, auto_id="news_%s")


class WeightsForm(forms.Form):
    """A form for the default weights of the tasks on the board."""

    def __init__(self, entries: list[CommunityTask], *args: Any) -> None:
        """Build a weight field for each entry."""
        super().__init__(*args)
        for entry in entries:
            # The box stands in the row of its task, below the head of its column.
            words = gettext("Weight of %(task)s") % {"task": entry.task.name}
            self.fields[f"weight_{entry.pk}"] = forms.FloatField(
                label=entry.task.name,
                min_value=0,
                max_value=MAX_WEIGHT,
                initial=format(entry.weight, "g"),
                widget=forms.NumberInput(
                    {"class": "row-number", "form": "weights-form", "aria-label": words}
                ),
            )

    @property
    def weights(self) -> dict[int, float]:
        """Return the weights by entry id. Call only on a valid form."""
        return {int(name.partition("_")[2]): value for name, value in self.cleaned_data.items()}


class JoinForm(forms.Form):
    """A form for choosing one of the person's tasks to join the community."""

    def __init__(self, tasks: QuerySet[Task], *args: Any) -> None:
        """Offer the tasks that may join."""
        super().__init__(*args)
        self.fields["task"] = forms.ModelChoiceField(
            tasks, to_field_name="code", label=_("Task"), empty_label=None
        )


class JointForm(forms.Form):
    """A form for submitting one model to all tasks."""

    name = forms.CharField(label=_("Model name"), max_length=100)
    kind = forms.ChoiceField(label=_("Kind"))
    upload = forms.FileField(
        # Translators: noun: a .zip or .tar file
        label=_("Archive"),
        required=False,
        help_text=_(".zip, .tar or .tar.gz."),
    )
    source = forms.CharField(
        label=_("Hugging Face model ID"),
        required=False,
        max_length=500,
        help_text=_("For example organisation/name."),
    )
    revision = forms.CharField(
        # Translators: noun: a version in a repository
        label=_("Commit"),
        required=False,
        max_length=100,
        help_text=_("The full commit hash, 40 characters."),
    )
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea({"rows": 5}),
        help_text=_("Markdown. Shown on the card of each submission."),
    )

    def __init__(self, community: Community, kinds: Sequence[str], *args: Any) -> None:
        """Offer the kinds of models that the tasks accept, and the community's tracks."""
        super().__init__(*args)
        kind_field = self.fields["kind"]
        choices = [
            (kind.name, joint.words) for kind, joint in list_joint_kinds() if kind.name in kinds
        ]
        # Only those that one of its tasks takes.
        kind_field.choices = choices  # type: ignore[attr-defined]
        if community.tracks:
            self.fields["track"] = forms.ChoiceField(
                label=_("Track"),
                choices=[(track, track) for track in community.tracks],
                help_text=_("How much data the model was trained on."),
            )
