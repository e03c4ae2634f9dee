"""The forms of the steps. Each shows a part of a draft's data and writes it back."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.words import compose
from dynabench.manage.wizard.step_form import StepForm, build_text_area, require_both
from evaluation.scoring.metrics import METRICS as SCORED
from tasks.config.schema import ERROR_METRICS
from tasks.making.outline import (
    SHOWN_KEYS,
    Data,
    find_answer_names,
    get_value,
    list_field_names,
    list_fitting_metrics,
    list_fitting_rules,
    set_value,
)

# Screen readers read each choice without the field's label, so each names the model.
RULE_LABELS = {
    "exact_match": gettext_lazy("The model's answer differs from the writer's"),
    "string_f1": gettext_lazy("The model's answer shares too few words with the writer's"),
    "contains": gettext_lazy("The model's text does not contain the writer's answer"),
    "spans_f1": gettext_lazy("The model marks different parts of the text than the writer"),
    "rank": gettext_lazy("The model orders the texts differently from the writer"),
    "ask_user": gettext_lazy("The writer says the model's answer is wrong, and judges check that"),
    "pattern": gettext_lazy(
        "The model's text lacks a required pattern or contains a forbidden one"
    ),
    "secret": gettext_lazy("The model reveals the secret of the conversation"),
    "criteria": gettext_lazy("The model's answer meets too few of the writer's criteria"),
}
POLICY_WORDS = {
    "n-equal": gettext_lazy("N matching votes decide, however many people vote"),
    "at-least": gettext_lazy("N matching votes out of at most M decide"),
    "strict": gettext_lazy("More than half of all votes decide"),
    "plurality": gettext_lazy("The most common vote decides"),
}
ASKING_RULES = ("ask_user", "pattern", "string_f1")
"""The verdict types that may ask the writer whether the model is right."""
THRESHOLD_RULES = ("string_f1", "rank", "spans_f1", "criteria")
SUPPORT_PATH = ("content_warning", "support")
PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)\}")


def find_metric_title(metric: str) -> str:
    """Return the title of a metric on pages; a custom metric's name."""
    if metric in SCORED:
        return SCORED[metric].title
    return metric


class GoalForm(StepForm):
    """A form for the task's name, goal, summary and language."""

    PATHS = {
        "name": ("name",),
        "goal_text": ("goal", "text"),
        "goal_field": ("goal", "field"),
        "summary": ("summary",),
        "language": ("language",),
        "pairs": ("battles", "pairs"),
    }
    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    goal_text = forms.CharField(
        label=gettext_lazy("Goal"),
        max_length=300,
        required=False,
        help_text=gettext_lazy(
            "Shown above the form. For example: Write a review that the model misreads."
        ),
    )
    goal_field = forms.ChoiceField(
        label=gettext_lazy("Label field for the goal"),
        required=False,
        help_text=gettext_lazy(
            "Choose a label field. Each example then asks for one of its labels. Write "
            "the field's name in braces in the goal, for example {label}."
        ),
    )
    summary = forms.CharField(
        label=gettext_lazy("Summary"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("One sentence for the list of tasks."),
    )
    language = forms.RegexField(
        r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        label=gettext_lazy("Language of the texts"),
        required=False,
        help_text=gettext_lazy("A language tag, for example en or pt-BR. Leave empty for English."),
        error_messages={"invalid": gettext_lazy("Enter a language tag, for example en or pt-BR.")},
    )

    pairs = forms.ChoiceField(
        choices=[
            ("informative", gettext_lazy("Where a vote tells most, weighted back")),
            ("uniform", gettext_lazy("All pairs alike")),
        ],
        label=gettext_lazy("Pairs of models"),
        help_text=gettext_lazy("How we choose the two models of a battle."),
    )

    def adapt_fields(self, data: Data) -> None:
        # Voters are given no goal.
        if data.get("kind") == "arena":
            del self.fields["goal_text"], self.fields["goal_field"]
        else:
            del self.fields["pairs"]
            label_fields = list_field_names(data, "input", "multiclass")
            self.set_choices("goal_field", label_fields)
            if not label_fields:
                self.fields["goal_field"].help_text = _(
                    "Add a label field in the step Fields first, then choose it here."
                )

    def clean(self) -> dict[str, Any]:
        """Check that placeholders in braces name the chosen field. Others can't be filled."""
        values: dict[str, Any] = super().clean() or {}
        for name in PLACEHOLDER_PATTERN.findall(values.get("goal_text") or ""):
            if name != values.get("goal_field"):
                words = _(
                    "Below, choose the label that {%(name)s} stands for, or remove the braces."
                )
                self.add_error("goal_text", words % {"name": name})
        return values


class AnswerForm(StepForm):
    """A form for the metrics and the rule that decides when a model is fooled."""

    PATHS = {
        "rule": ("verdict", "type"),
        "threshold": ("verdict", "threshold"),
        "pattern": ("verdict", "pattern"),
        "forbidden": ("verdict", "forbidden"),
        "asked": ("verdict", "question"),
        "asked_correct": ("verdict", "answers", "correct"),
        "asked_incorrect": ("verdict", "answers", "incorrect"),
        "marked_is_wrong": ("verdict", "marked_is_wrong"),
        "main": ("metrics", "main"),
        "also": ("metrics", "also"),
    }
    rule = forms.ChoiceField(
        label=gettext_lazy("The model is fooled when"), widget=forms.RadioSelect
    )
    threshold = forms.FloatField(
        label=gettext_lazy("Minimum agreement"),
        required=False,
        min_value=0.01,
        max_value=1,
        help_text=gettext_lazy(
            "A number above 0, up to 1. Used for shared words, marked parts, orders and criteria."
        ),
    )
    pattern = forms.CharField(
        # Translators: noun: a regular expression
        label=gettext_lazy("Pattern"),
        required=False,
        max_length=500,
        strip=False,
        help_text=gettext_lazy("A regular expression. Start with (?i) to ignore case."),
    )
    forbidden = forms.BooleanField(
        label=gettext_lazy(
            "Forbid the pattern: the model is fooled if its text contains the pattern"
        ),
        required=False,
    )
    marked_is_wrong = forms.BooleanField(
        label=gettext_lazy("Treat answers that the writer marks as wrong answers"),
        required=False,
    )
    asked = forms.CharField(
        label=gettext_lazy("Question for writers, if they decide"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Leave empty to ask “Is the model's answer acceptable?”"),
    )
    asked_correct = forms.CharField(
        label=gettext_lazy("Answer that means the model is right"), max_length=100, required=False
    )
    asked_incorrect = forms.CharField(
        label=gettext_lazy("Answer that means the model is wrong"), max_length=100, required=False
    )
    main = forms.ChoiceField(label=gettext_lazy("Rank models by"))
    also = forms.MultipleChoiceField(
        label=gettext_lazy("Also score by"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def adapt_fields(self, data: Data) -> None:
        current = str(self.initial.get("rule") or "")
        rule_names = list(list_fitting_rules(data))
        if current and current not in rule_names:
            rule_names.append(current)
        rule_field: Any = self.fields["rule"]
        rule_field.choices = [(name, RULE_LABELS[name]) for name in rule_names]
        if rule_names == ["ask_user"]:
            self.fields["rule"].help_text = _(
                "To compare answers, edit a field that writers fill in and tick “The "
                "model answers this too”."
            )
        # Those that can score the answers of these fields.
        metric_names = list_fitting_metrics(data)
        main_names = [name for name in metric_names if name not in ERROR_METRICS]
        self.set_choices("main", main_names, empty_choice=("", _("Choose a metric")))
        also_field: Any = self.fields["also"]
        also_names = list(metric_names)
        for name in self.initial.get("also") or ():
            if name not in also_names:  # chosen before the fields changed
                also_names.append(name)
        also_field.choices = [(name, find_metric_title(name)) for name in also_names]
        main_field: Any = self.fields["main"]
        main_choices = []
        for name, words in main_field.choices:
            if name:  # the first one says to choose
                words = find_metric_title(name)
            main_choices.append((name, words))
        main_field.choices = main_choices
        if "pattern" not in rule_names:
            del self.fields["pattern"], self.fields["forbidden"]
        # Other rules compare without a threshold.
        if not {*THRESHOLD_RULES} & set(rule_names):
            del self.fields["threshold"]
        if not list_field_names(data, "input", "chat"):
            del self.fields["marked_is_wrong"]

    def clean(self) -> dict[str, Any]:
        require_both(self, "asked_correct", "asked_incorrect")
        return self.cleaned_data

    def write(self, data: Data) -> None:
        values = self.cleaned_data
        former_rule, rule_type = get_value(data, ("verdict",), {}), values["rule"]
        rule: Data = {"type": rule_type}
        rule |= _choose_compared_fields(data, former_rule, rule_type)
        # No threshold is the default one.
        if rule_type in THRESHOLD_RULES and values.get("threshold"):
            rule["threshold"] = values["threshold"]
        if rule_type == "pattern":
            rule["pattern"] = values["pattern"]
            if values["forbidden"]:
                rule["forbidden"] = True
        if rule_type in ASKING_RULES:
            self._write_question(rule, rule_type)
        if former_rule.get("type") == rule_type:
            # The same rule keeps what this form does not show.
            for key, value in former_rule.items():
                if key not in SHOWN_KEYS["verdict"]:
                    rule[key] = value
        set_value(data, ("verdict",), rule)
        set_value(data, ("metrics", "main"), values["main"])
        set_value(
            data,
            ("metrics", "also"),
            [metric for metric in values["also"] if metric != values["main"]],
        )

    def _write_question(self, rule: Data, rule_type: str) -> None:
        """Write the question to the writer and its answers into the rule."""
        values = self.cleaned_data
        if rule_type == "ask_user" and values.get("marked_is_wrong"):
            rule["marked_is_wrong"] = True
        set_value(rule, ("question",), compose(values["asked"]))
        for key in ("correct", "incorrect"):
            set_value(rule, ("answers", key), compose(values[f"asked_{key}"]))


def _choose_compared_fields(data: Data, former_rule: Data, rule_type: str) -> Data:
    """Return the part of a verdict that names what it compares. Fields chosen by hand stay."""
    if rule_type == "exact_match":
        return {"fields": get_value(former_rule, ("fields",)) or find_answer_names(data)}
    if rule_type == "ask_user":
        return {}
    if rule_type == "criteria":
        return {"field": next(iter(list_field_names(data, "input", "criteria")), "")}
    field = get_value(former_rule, ("field",)) or next(iter(find_answer_names(data)), "")
    return {"field": field}


class WordsForm(StepForm):
    """A form for the instructions, the content warning and the help lines."""

    PATHS = {"instructions": ("instructions",), "warning": ("content_warning", "text")}
    instructions = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        strip=False,
        widget=build_text_area(12),
        help_text=gettext_lazy("Markdown. The steps first, then the rules."),
    )
    warning = forms.CharField(
        label=gettext_lazy("Content warning"),
        required=False,
        widget=build_text_area(2),
        help_text=gettext_lazy(
            "Fill this in if texts may upset people. They see this warning first."
        ),
    )

    help_lines = forms.CharField(
        label=gettext_lazy("Help lines by country"),
        required=False,
        strip=False,  # errors name lines
        widget=build_text_area(3),
        help_text=gettext_lazy("One per line, for example “France: 3114”. Shown on a help page."),
    )

    def adapt_fields(self, data: Data) -> None:
        entries = get_value(data, SUPPORT_PATH, ())
        if not isinstance(entries, list):  # a text of YAML that has errors may be anything
            entries = []
        lines = []
        for entry in entries:
            if isinstance(entry, dict):
                lines.append(f"{entry.get('region', '')}: {entry.get('text', '')}")
        self.initial["help_lines"] = "\n".join(lines)

    def clean_help_lines(self) -> list[dict[str, str]]:
        """Return the country and the text of each line.

        Raises ValidationError for incomplete lines.
        """
        help_lines = []
        for number, line in enumerate(self.cleaned_data["help_lines"].splitlines(), 1):
            before, _colon, after = line.partition(":")
            region, text = before.strip(), after.strip()
            if line.strip() and not (region and text):
                message = _("Line %(number)d: enter a country, a colon and where to find help.")
                raise forms.ValidationError(message % {"number": number})
            if region:
                help_lines.append({"region": region, "text": text})
        return help_lines

    def clean(self) -> dict[str, Any]:
        """Check that help lines have a content warning, because they are shown only with one."""
        values: dict[str, Any] = super().clean() or {}
        if values.get("help_lines") and not values.get("warning"):
            self.add_error(
                "warning", _("Add a content warning. Help lines are shown only with one.")
            )
        return values

    def write(self, data: Data) -> None:
        super().write(data)
        set_value(data, SUPPORT_PATH, self.cleaned_data["help_lines"] or None)
        if not self.cleaned_data["warning"]:
            data.pop("content_warning", None)  # its other parts say nothing without it


class JudgingForm(StepForm):
    """A form for how examples are judged."""

    PATHS = {
        "mode": ("validation", "mode"),
        "asks": ("validation", "asks"),
        "question": ("validation", "question"),
        "correct": ("validation", "answers", "correct"),
        "incorrect": ("validation", "answers", "incorrect"),
        "rule": ("validation", "votes", "rule"),
        "needed": ("validation", "votes", "needed"),
        "of": ("validation", "votes", "of"),
        "judge_not_fooled": ("validation", "judge_not_fooled"),
        "corrections": ("validation", "corrections"),
        "reveal": ("validation", "reveal"),
    }
    mode = forms.ChoiceField(
        label=gettext_lazy("Judges choose"),
        choices=[
            ("label", gettext_lazy("A label, before they see anyone else's")),
            ("verdict", gettext_lazy("Correct, incorrect or flagged")),
        ],
        widget=forms.RadioSelect,
    )
    asks = forms.ChoiceField(
        label=gettext_lazy("Judges assess"),
        required=False,
        choices=[
            ("", gettext_lazy("Default")),
            ("answer", gettext_lazy("The model's answer")),
            ("attempt", gettext_lazy("The attempt: is it fair and easy to follow?")),
        ],
        help_text=gettext_lazy(
            "For tasks where a pattern or a secret decides whether the model was fooled."
        ),
    )
    question = forms.CharField(
        label=gettext_lazy("Question for judges"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Leave empty to ask “Is the model's answer correct?”"),
    )
    correct = forms.CharField(
        label=gettext_lazy("Wording of “correct”"), max_length=100, required=False
    )
    incorrect = forms.CharField(
        label=gettext_lazy("Wording of “incorrect”"), max_length=100, required=False
    )
    rule = forms.ChoiceField(
        # Translators: noun: the rule by which votes decide
        label=gettext_lazy("Voting rule"),
        choices=list(POLICY_WORDS.items()),
        widget=forms.RadioSelect,
    )
    needed = forms.IntegerField(
        label=gettext_lazy("Matching votes needed (N)"), min_value=1, max_value=99, required=False
    )
    of = forms.IntegerField(
        label=gettext_lazy("Maximum votes (M)"), min_value=1, max_value=99, required=False
    )
    judge_not_fooled = forms.FloatField(
        label=gettext_lazy("Share of tries to judge when the model was right"),
        min_value=0,
        max_value=1,
        help_text=gettext_lazy("From 0 to 1. Examples that fooled the model are always judged."),
    )
    corrections = forms.BooleanField(
        label=gettext_lazy("Let judges enter the right answer when the model is wrong"),
        required=False,
    )
    reveal = forms.BooleanField(
        label=gettext_lazy("Show judges the label and the model's answer after they vote"),
        required=False,
    )

    def adapt_fields(self, data: Data) -> None:
        if get_value(data, ("verdict", "type")) not in ("pattern", "secret"):
            del self.fields["asks"]

    def clean(self) -> dict[str, Any]:
        require_both(self, "correct", "incorrect")
        return self.cleaned_data

    def write(self, data: Data) -> None:
        super().write(data)
        if self.cleaned_data["rule"] in ("strict", "plurality"):
            set_value(data, ("validation", "votes", "needed"), None)  # it follows from the other
        if not self.cleaned_data["corrections"] and "validation" not in data:
            data["validation"] = {"corrections": False}  # a free answer's would be offered again


class LimitsForm(StepForm):
    """A form for limits and writing aids."""

    PATHS = {
        "tries_per_context": ("limits", "tries_per_context"),
        "tries_per_day": ("limits", "tries_per_day"),
        "share_of_round": ("limits", "share_of_round"),
        "share_of_votes": ("limits", "share_of_votes"),
        "show_confidence": ("limits", "show_confidence"),
        "context_picking": ("context_picking",),
        "write_programs": ("programs", "write"),
        "judge_programs": ("programs", "judge"),
        "prompt_field": ("support", "prompt_field"),
        "minimal_edit": ("support", "minimal_edit"),
        "worked": ("support", "examples"),
        "suggestions": ("support", "suggestions"),
    }
    tries_per_context = forms.IntegerField(
        label=gettext_lazy("Maximum tries per person and text"), min_value=1
    )
    tries_per_day = forms.IntegerField(
        label=gettext_lazy("Maximum tries per person per day"), min_value=1
    )
    share_of_round = forms.FloatField(
        label=gettext_lazy("Maximum share of examples per person"),
        min_value=0.001,
        max_value=1,
        help_text=gettext_lazy(
            "Enter 0.05 for 5 percent. The limit starts once a round has 400 examples."
        ),
    )
    share_of_votes = forms.FloatField(
        label=gettext_lazy("Maximum share of votes per person"),
        min_value=0.001,
        max_value=1,
        help_text=gettext_lazy(
            "Enter a higher share if you have fewer than twenty judges, or 1 for no limit."
        ),
    )
    show_confidence = forms.ChoiceField(
        label=gettext_lazy("Model's confidence"),
        choices=[
            ("full", gettext_lazy("Show confidence to writers")),
            ("rounded", gettext_lazy("Show confidence to writers, rounded to ten percent")),
            ("hidden", gettext_lazy("Hide confidence from writers")),
        ],
    )
    context_picking = forms.ChoiceField(
        label=gettext_lazy("Which text a writer gets"),
        required=False,
        choices=[
            # Empty, so that the default is not written into the configuration.
            ("", gettext_lazy("The one that was given least often")),
            (
                "information",
                gettext_lazy("One that tells more about where the model errs, or any in a tenth"),
            ),
        ],
    )
    write_programs = forms.BooleanField(
        label=gettext_lazy("Let programs write examples (kept separate)"), required=False
    )
    judge_programs = forms.BooleanField(
        label=gettext_lazy("Count votes of programs"), required=False
    )
    prompt_field = forms.ChoiceField(
        label=gettext_lazy("Starting text"),
        required=False,
        help_text=gettext_lazy("Writers edit this text. Models and judges don't see it."),
    )
    minimal_edit = forms.BooleanField(
        label=gettext_lazy("Let writers edit other people's examples to flip the label"),
        required=False,
    )
    worked = forms.BooleanField(
        label=gettext_lazy("Let writers see catches by others"), required=False
    )
    suggestions = forms.BooleanField(
        label=gettext_lazy("Let writers request texts from the suggestion model"), required=False
    )

    def adapt_fields(self, data: Data) -> None:
        self.set_choices("prompt_field", list_field_names(data, "context", "text", "long_text"))


FORMS: Mapping[str, type[StepForm]] = {
    "goal": GoalForm,
    "answer": AnswerForm,
    "words": WordsForm,
    "judging": JudgingForm,
    "limits": LimitsForm,
}
