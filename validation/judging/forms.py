"""The forms of the judge page, built from the task's configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from annotation.writing.criteria_forms import CriteriaForm
from annotation.writing.forms import ComponentForm
from tasks.config.components import Component
from tasks.config.criteria import Criterion
from tasks.config.schema import TaskConfig
from validation.consensus.consensus import Vote
from validation.consensus.criteria import build_criteria_vote
from validation.consensus.steps import UNJUDGED_VERDICTS
from validation.judging.steps import FIELD_PREFIX, build_step_fields, read_steps
from validation.judging.wording import build_choices, build_decision_legend
from validation.models import Validation


class KeyedRadios(forms.RadioSelect):
    """Radio buttons with the keys 1 to 9 as shortcuts in keyboard mode."""

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(*args, **kwargs)
        number = int(option["index"]) + 1
        # There is no single key for a tenth answer.
        if number <= 9:
            option["attrs"]["data-key"] = str(number)
        return option


class VoteForm(forms.Form):
    """A form for a vote on one example."""

    asks_steps = True
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
        choices = build_choices(config, example, with_flag=with_flag)
        self.fields["answer"].choices = choices  # type: ignore[attr-defined]
        self.fields["answer"].label = legend
        if self.asks_steps:
            self.fields.update(build_step_fields(config, example))

    def clean(self) -> dict[str, Any]:
        super().clean()
        # A vote that flags the example, or that cannot tell, answers about no step.
        missing = [
            name.removeprefix(FIELD_PREFIX)
            for name in self.fields
            if name.startswith(FIELD_PREFIX) and not self.cleaned_data.get(name)
        ]
        if missing and "answer" in self.cleaned_data and self.vote.verdict not in UNJUDGED_VERDICTS:
            message = gettext("Choose an answer for each step. These are missing: %(steps)s")
            # At the first one, so that the summary's link leads there.
            self.add_error(f"{FIELD_PREFIX}{missing[0]}", message % {"steps": ", ".join(missing)})
        return self.cleaned_data

    @property
    def steps(self) -> dict[str, str]:
        """Return the answers about steps by the turn's number. Call only on a valid form."""
        return read_steps(self.cleaned_data, self.vote)

    judgements = None

    @property
    def vote(self) -> Vote:
        """Return the chosen answer. Call only on a valid form."""
        kind, _, value = self.cleaned_data["answer"].partition(":")
        return Vote(label=value) if kind == "label" else Vote(verdict=value)


class CriteriaVoteForm(CriteriaForm):
    """A form for a vote on one example, whose criteria are judged one by one."""

    example = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(
        self, data: Any = None, *, config: TaskConfig, criteria: Sequence[Criterion]
    ) -> None:
        # Blind judges may lack what the author knew, and a guess would count as a judgement.
        super().__init__(data, criteria=criteria, allows_doubt=True)
        self.config, self.criteria = config, criteria
        self.steps: dict[str, str] = {}  # a configuration has criteria or steps

    @property
    def vote(self) -> Vote:
        """Return the vote that follows from the judgements. Call only on a valid form."""
        assert self.config.verdict.type == "criteria"
        return build_criteria_vote(self.config.verdict, self.criteria, self.judgements)


class DecisionForm(VoteForm):
    """A form for an expert's decision on one example, with a comment for its author."""

    asks_steps = False
    example = None  # type: ignore[assignment]  # the address names it
    reason = forms.CharField(
        max_length=500,
        required=False,
        label=_("Comment to the author"),
        help_text=_("The author sees this with your decision, but not your name."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, example: Example) -> None:
        config = example.round.task.config
        super().__init__(
            *args,
            config=config,
            legend=build_decision_legend(config, example),
            example=example,
            with_flag=True,
        )
        answer_names = ", ".join(
            answer for answer, _ in build_choices(config, example, with_flag=True)
        )
        message = gettext("Choose one of: %(answers)s") % {"answers": answer_names}
        self.fields["answer"].error_messages["invalid_choice"] = message


class QuestionForm(ComponentForm):
    """A form for the task's questions to validators, with the fields of a subclass."""

    def clean(self) -> dict[str, Any]:
        super().clean()
        for component in self.components:
            is_empty = component.name not in self.inputs and not self.has_error(component.name)
            if component.required and is_empty:
                self.add_error(component.name, gettext("Answer this question"))
        return self.cleaned_data


def list_flag_reasons(config: TaskConfig) -> list[tuple[str, str]]:
    """List the possible problems of an example; the passage only if the task has passages."""
    broken = Validation.FlagReason.BROKEN
    has_passage = config.context_role == "passage"
    reasons = Validation.FlagReason.choices
    return [(name, str(text)) for name, text in reasons if has_passage or name != broken]


class FlagForm(QuestionForm):
    """A form to flag an example."""

    example = forms.UUIDField(widget=forms.HiddenInput)
    flag_reason = forms.ChoiceField(
        widget=forms.RadioSelect,
        label=_("What is wrong with the example?"),
        error_messages={"required": _("Choose what is wrong")},
    )
    flag_comment = forms.CharField(max_length=500, required=False, label=_("Describe the problem"))

    def __init__(self, *args: Any, config: TaskConfig, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["flag_reason"].choices = list_flag_reasons(config)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        super().clean()
        # “Something else” by itself gives an owner nothing to act on.
        is_other = self.cleaned_data.get("flag_reason") == Validation.FlagReason.OTHER
        if is_other and not self.cleaned_data.get("flag_comment") and not self.inputs:
            self.add_error("flag_comment", gettext("Describe the problem"))
        return self.cleaned_data

    @property
    def vote_arguments(self) -> dict[str, Any]:
        """Return the flag as arguments for `cast_validation`. Call only on a valid form."""
        return {
            "vote": Vote(verdict="flagged"),
            "flag_reason": self.cleaned_data["flag_reason"],
            "comment": self.cleaned_data["flag_comment"],
            "metadata": self.inputs,
        }


class AfterVoteForm(QuestionForm):
    """A form for the step after the vote: whether to keep the vote, and the task's questions."""

    def __init__(
        self,
        components: Sequence[Component],
        data: Any = None,
        *,
        config: TaskConfig,
        has_reveal: bool,
        example: Example,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(components, data, context=context)
        self.has_reveal = has_reveal
        if has_reveal:
            self.fields["reveal"] = forms.ChoiceField(
                choices=Validation.Reveal.choices,
                widget=forms.RadioSelect,
                label=_("Do you want to keep your answer?"),
                error_messages={"required": _("Choose whether to keep your answer.")},
            )
            self.fields["reveal_choice"] = forms.ChoiceField(
                choices=[("", _("No change")), *build_choices(config, example)],
                required=False,
                label=_("Your new answer, if you change it"),
            )
            self.fields["reveal_comment"] = forms.CharField(
                max_length=500, required=False, label=_("Why?")
            )

    def clean(self) -> dict[str, Any]:
        super().clean()
        is_changed = self.cleaned_data.get("reveal") == Validation.Reveal.CHANGE
        if is_changed and not self.cleaned_data.get("reveal_choice"):
            self.add_error("reveal_choice", gettext("Choose your new answer"))
        return self.cleaned_data

    @property
    def reveal_answers(self) -> dict[str, str]:
        """Return the answers to the reveal step."""
        names = ("reveal", "reveal_choice", "reveal_comment")
        return {name: self.cleaned_data.get(name, "") for name in names}
