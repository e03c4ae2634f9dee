"""The forms of the judge page, built from the task's configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from annotation.writing.forms import ComponentForm
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from validation.consensus.consensus import Vote
from validation.judging.wording import choices, decision_legend
from validation.models import Validation


class KeyedRadios(forms.RadioSelect):
    """Radio buttons with the keys 1 to 9 as shortcuts in keyboard mode."""

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(*args, **kwargs)
        number = int(option["index"]) + 1
        # No single key stands for a tenth answer.
        if number <= 9:
            option["attrs"]["data-key"] = str(number)
        return option


class VoteForm(forms.Form):
    """A form for a vote on one example."""

    example = forms.UUIDField(widget=forms.HiddenInput)
    answer = forms.ChoiceField(
        widget=KeyedRadios, error_messages={"required": _("Choose an answer")}
    )

    def __init__(
        self,
        *args: Any,
        config: TaskConfig,
        legend: str,
        example: Example,
        with_flag: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        offered = choices(config, example, with_flag=with_flag)
        self.fields["answer"].choices = offered  # type: ignore[attr-defined]
        self.fields["answer"].label = legend

    @property
    def vote(self) -> Vote:
        """Return the chosen answer. Call only on a valid form."""
        kind, _, value = self.cleaned_data["answer"].partition(":")
        return Vote(label=value) if kind == "label" else Vote(verdict=value)


class DecisionForm(VoteForm):
    """A form for an expert's decision on one example, with a comment for its author."""

    example = None  # type: ignore[assignment]  # the address names it
    reason = forms.CharField(
        max_length=500,
        required=False,
        label=_("Comment to the author"),
        help_text=_("The author reads it with your decision, without your name."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, decides: Example) -> None:
        config = decides.round.task.config
        super().__init__(
            *args,
            config=config,
            legend=decision_legend(config, decides),
            example=decides,
            with_flag=True,
        )
        named = ", ".join(answer for answer, _ in choices(config, decides, with_flag=True))
        words = gettext("Choose one of: %(answers)s") % {"answers": named}
        self.fields["answer"].error_messages["invalid_choice"] = words


class QuestionForm(ComponentForm):
    """A form for the task's questions to validators, with the fields of a subclass."""

    def clean(self) -> dict[str, Any]:
        super().clean()
        for component in self.components:
            is_empty = component.name not in self.inputs and not self.has_error(component.name)
            if component.required and is_empty:
                self.add_error(component.name, gettext("Answer this question"))
        return self.cleaned_data


def flag_reasons(config: TaskConfig) -> list[tuple[str, str]]:
    """List the possible problems of an example; the passage only if the task has passages."""
    broken = Validation.FlagReason.BROKEN
    has_passage = config.gives == "passage"
    reasons = Validation.FlagReason.choices
    return [(name, str(words)) for name, words in reasons if has_passage or name != broken]


class FlagForm(QuestionForm):
    """A form to flag an example."""

    example = forms.UUIDField(widget=forms.HiddenInput)
    flag_reason = forms.ChoiceField(
        widget=forms.RadioSelect,
        label=_("What is wrong with it?"),
        error_messages={"required": _("Choose what is wrong")},
    )
    flag_comment = forms.CharField(max_length=500, required=False, label=_("In your own words"))

    def __init__(self, *args: Any, config: TaskConfig, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["flag_reason"].choices = flag_reasons(config)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        super().clean()
        # “Something else” by itself gives an owner nothing to act on.
        other = self.cleaned_data.get("flag_reason") == Validation.FlagReason.OTHER
        if other and not self.cleaned_data.get("flag_comment") and not self.inputs:
            self.add_error("flag_comment", gettext("Say what is wrong"))
        return self.cleaned_data

    @property
    def said(self) -> dict[str, Any]:
        """Return the flag as arguments for `cast_validation`. Call only on a valid form."""
        return {
            "vote": Vote(verdict="flagged"),
            "flag_reason": self.cleaned_data["flag_reason"],
            "comment": self.cleaned_data["flag_comment"],
            "metadata": self.inputs,
        }


class AfterForm(QuestionForm):
    """A form for the step after the vote: whether to keep the vote, and the task's questions."""

    def __init__(
        self,
        components: Sequence[Component],
        data: Any = None,
        *,
        config: TaskConfig,
        reveal: bool,
        written: Example,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(components, data, context=context)
        self.reveals = reveal
        if reveal:
            self.fields["reveal"] = forms.ChoiceField(
                choices=Validation.Reveal.choices,
                widget=forms.RadioSelect,
                label=_("Do you keep your answer?"),
                error_messages={"required": _("Choose one")},
            )
            self.fields["reveal_choice"] = forms.ChoiceField(
                choices=[("", _("No change")), *choices(config, written)],
                required=False,
                label=_("If you change it: to what?"),
            )
            self.fields["reveal_comment"] = forms.CharField(
                max_length=500, required=False, label=_("Why?")
            )

    def clean(self) -> dict[str, Any]:
        super().clean()
        changes = self.cleaned_data.get("reveal") == Validation.Reveal.CHANGE
        if changes and not self.cleaned_data.get("reveal_choice"):
            self.add_error("reveal_choice", gettext("Choose your new answer"))
        return self.cleaned_data

    @property
    def revealed(self) -> dict[str, str]:
        """Return the answers to the reveal step."""
        names = ("reveal", "reveal_choice", "reveal_comment")
        return {name: self.cleaned_data.get(name, "") for name in names}
