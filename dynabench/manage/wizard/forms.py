"""The forms of the steps: each shows a part of a draft's data, and writes it back."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.words import composed
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

RULE_WORDS = {
    "exact_match": gettext_lazy("Its answer differs from the writer's"),
    "string_f1": gettext_lazy("Its answer has too few words in common with the writer's"),
    "contains": gettext_lazy("Its text does not hold the writer's answer"),
    "spans_f1": gettext_lazy("It marks other parts of the text than the writer"),
    "rank": gettext_lazy("It puts the texts in another order than the writer"),
    "ask_user": gettext_lazy("The writer says that its answer is wrong; others judge that"),
    "pattern": gettext_lazy("Its text lacks a pattern, or holds a forbidden one"),
    "secret": gettext_lazy("It tells the secret of the conversation"),
}
POLICY_WORDS = {
    "n-equal": gettext_lazy("So many equal votes decide, however many are cast"),
    "at-least": gettext_lazy("So many equal votes of at most so many decide"),
    "strict": gettext_lazy("More than half of all votes decide"),
    "plurality": gettext_lazy("The most frequent vote decides"),
}
ASKING_RULES = ("ask_user", "pattern", "string_f1")
"""The verdicts that may ask the writer whether the model is right."""
SUPPORT_PATH = ("content_warning", "support")
PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)\}")


def find_metric_title(metric: str) -> str:
    """Return the title of a metric on pages; the name for a custom metric."""
    if metric in SCORED:
        return SCORED[metric].title
    return metric


class GoalForm(StepForm):
    """A form for the task's name and goal."""

    PATHS = {
        "name": ("name",),
        "goal_text": ("goal", "text"),
        "goal_field": ("goal", "field"),
        "summary": ("summary",),
        "language": ("language",),
    }
    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    goal_text = forms.CharField(
        label=gettext_lazy("Goal"),
        max_length=300,
        required=False,
        help_text=gettext_lazy(
            "The sentence above the form, such as: Write a review that the model misreads."
        ),
    )
    goal_field = forms.ChoiceField(
        label=gettext_lazy("Label that the goal asks for"),
        required=False,
        help_text=gettext_lazy(
            "A choice among labels that people fill in: the site draws one of them for each "
            "example. Write its name in braces into the goal, such as {label}."
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
        help_text=gettext_lazy("A language tag such as en or pt-BR; empty: en."),
        error_messages={"invalid": gettext_lazy("Use a language tag such as en or pt-BR")},
    )

    def arrange(self, data: Data) -> None:
        # Voters are given no goal.
        if data.get("kind") == "arena":
            del self.fields["goal_text"], self.fields["goal_field"]
        else:
            labelled = list_field_names(data, "input", "multiclass")
            self.choose("goal_field", labelled)
            if not labelled:
                self.fields["goal_field"].help_text = _(
                    "Add a field of labels in the step Fields first. Then choose it here."
                )

    def clean(self) -> dict[str, Any]:
        """Refuse placeholders in braces that name no field, because no preview could fill them."""
        values: dict[str, Any] = super().clean() or {}
        for name in PLACEHOLDER_PATTERN.findall(values.get("goal_text") or ""):
            if name != values.get("goal_field"):
                words = _("Choose the label that {%(name)s} stands for below, or remove the braces")
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
        label=gettext_lazy("Least agreement"),
        required=False,
        min_value=0.01,
        max_value=1,
        help_text=gettext_lazy("Above 0, at most 1. Of words in common, marked parts and orders."),
    )
    pattern = forms.CharField(
        # Translators: noun: a regular expression
        label=gettext_lazy("Pattern"),
        required=False,
        max_length=500,
        strip=False,
        help_text=gettext_lazy("A regular expression; (?i) at its beginning ignores case."),
    )
    forbidden = forms.BooleanField(
        label=gettext_lazy("The pattern is forbidden: the model is fooled if it is found"),
        required=False,
    )
    marked_is_wrong = forms.BooleanField(
        label=gettext_lazy("Writers who mark an answer say by this that it is wrong"),
        required=False,
    )
    asked = forms.CharField(
        label=gettext_lazy("Question for writers, where they decide"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Leave empty for: Is the model's answer acceptable?"),
    )
    asked_correct = forms.CharField(
        label=gettext_lazy("Writers' answer if the model is right"), max_length=100, required=False
    )
    asked_incorrect = forms.CharField(
        label=gettext_lazy("Writers' answer if the model is wrong"), max_length=100, required=False
    )
    main = forms.ChoiceField(label=gettext_lazy("Models are ranked by"))
    also = forms.MultipleChoiceField(
        label=gettext_lazy("And scored by"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def arrange(self, data: Data) -> None:
        current = str(self.initial.get("rule") or "")
        rule_names = list(list_fitting_rules(data))
        if current and current not in rule_names:
            rule_names.append(current)
        rule_field: Any = self.fields["rule"]
        rule_field.choices = [(name, RULE_WORDS[name]) for name in rule_names]
        if rule_names == ["ask_user"]:
            self.fields["rule"].help_text = _(
                "To compare answers, open a field that people fill in and tick that the model "
                "answers it too."
            )
        # Those that can score the answers of these fields.
        metric_names = list_fitting_metrics(data)
        main_names = [name for name in metric_names if name not in ERROR_METRICS]
        self.choose("main", main_names, empty_choice=("", _("Choose one")))
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
        if not {"string_f1", "rank", "spans_f1"} & set(rule_names):
            del self.fields["threshold"]
        if not list_field_names(data, "input", "chat"):
            del self.fields["marked_is_wrong"]

    def clean(self) -> dict[str, Any]:
        require_both(self, "asked_correct", "asked_incorrect")
        return self.cleaned_data

    def write(self, data: Data) -> None:
        values = self.cleaned_data
        former_rule, kind = get_value(data, ("verdict",), {}), values["rule"]
        rule: Data = {"type": kind}
        if kind == "exact_match":
            # Fields chosen by hand stay.
            rule["fields"] = get_value(former_rule, ("fields",)) or find_answer_names(data)
        elif kind != "ask_user":
            rule["field"] = get_value(former_rule, ("field",)) or next(
                iter(find_answer_names(data)), ""
            )
        # No threshold is the default one.
        if kind in ("string_f1", "rank", "spans_f1") and values.get("threshold"):
            rule["threshold"] = values["threshold"]
        if kind == "pattern":
            rule["pattern"] = values["pattern"]
            if values["forbidden"]:
                rule["forbidden"] = True
        if kind in ASKING_RULES:
            self._put_question(rule, kind)
        if former_rule.get("type") == kind:
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

    def _put_question(self, rule: Data, kind: str) -> None:
        """Write the question to the author and its answers into the rule."""
        values = self.cleaned_data
        if kind == "ask_user" and values.get("marked_is_wrong"):
            rule["marked_is_wrong"] = True
        set_value(rule, ("question",), composed(values["asked"]))
        for key in ("correct", "incorrect"):
            set_value(rule, ("answers", key), composed(values[f"asked_{key}"]))


class WordsForm(StepForm):
    """A form for the instructions and the content warning, which people read before they write."""

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
        help_text=gettext_lazy("If the texts may hurt: people read this page first."),
    )

    help_lines = forms.CharField(
        label=gettext_lazy("Where people find help, by country"),
        required=False,
        strip=False,  # errors name lines
        widget=build_text_area(3),
        help_text=gettext_lazy("One place a line, such as “France: 3114”, shown on a help page."),
    )

    def arrange(self, data: Data) -> None:
        entries = get_value(data, SUPPORT_PATH, ())
        if not isinstance(entries, list):  # a text of YAML that has errors may be anything
            entries = []
        lines = []
        for entry in entries:
            if isinstance(entry, dict):
                lines.append(f"{entry.get('region', '')}: {entry.get('text', '')}")
        self.initial["help_lines"] = "\n".join(lines)

    def clean_help_lines(self) -> list[dict[str, str]]:
        """Return the region and text of each line."""
        places = []
        for number, line in enumerate(self.cleaned_data["help_lines"].splitlines(), 1):
            before, _colon, after = line.partition(":")
            region, text = before.strip(), after.strip()
            if line.strip() and not (region and text):
                message = _("Line %(number)d: write a country, a colon, and where help is.")
                raise forms.ValidationError(message % {"number": number})
            if region:
                places.append({"region": region, "text": text})
        return places

    def clean(self) -> dict[str, Any]:
        """Refuse helplines without a content warning, because they are part of it."""
        values: dict[str, Any] = super().clean() or {}
        if values.get("help_lines") and not values.get("warning"):
            self.add_error("warning", _("Say here of what people are warned who may need help."))
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
        label=gettext_lazy("Judges say"),
        choices=[
            ("label", gettext_lazy("Their own label, before they see any other")),
            ("verdict", gettext_lazy("Correct, incorrect or flagged")),
        ],
        widget=forms.RadioSelect,
    )
    asks = forms.ChoiceField(
        label=gettext_lazy("Judges are asked about"),
        required=False,
        choices=[
            ("", gettext_lazy("The default")),
            ("answer", gettext_lazy("The model's answer")),
            ("attempt", gettext_lazy("The attempt: whether it is fair and easy to follow")),
        ],
        help_text=gettext_lazy("Where a pattern or a secret decides whether the model was fooled."),
    )
    question = forms.CharField(
        label=gettext_lazy("Question for judges"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Leave empty for: Is the model's answer correct?"),
    )
    correct = forms.CharField(
        label=gettext_lazy("Words for “correct”"), max_length=100, required=False
    )
    incorrect = forms.CharField(
        label=gettext_lazy("Words for “incorrect”"), max_length=100, required=False
    )
    rule = forms.ChoiceField(
        # Translators: noun: the rule by which votes decide
        label=gettext_lazy("Policy"),
        choices=list(POLICY_WORDS.items()),
        widget=forms.RadioSelect,
    )
    needed = forms.IntegerField(
        label=gettext_lazy("Equal votes that decide"), min_value=1, max_value=99, required=False
    )
    of = forms.IntegerField(
        label=gettext_lazy("Most votes"), min_value=1, max_value=99, required=False
    )
    judge_not_fooled = forms.FloatField(
        label=gettext_lazy("Share of examples to judge that fooled no model"),
        min_value=0,
        max_value=1,
        help_text=gettext_lazy("From 0 to 1. Those that fooled it are all judged."),
    )
    corrections = forms.BooleanField(
        label=gettext_lazy("Judges may type the right answer where the model's is wrong"),
        required=False,
    )
    reveal = forms.BooleanField(
        label=gettext_lazy("After their vote judges see the label and the model's answer"),
        required=False,
    )

    def arrange(self, data: Data) -> None:
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
        "write_programs": ("programs", "write"),
        "judge_programs": ("programs", "judge"),
        "prompt_field": ("support", "prompt_field"),
        "minimal_edit": ("support", "minimal_edit"),
        "worked": ("support", "examples"),
        "suggestions": ("support", "suggestions"),
    }
    tries_per_context = forms.IntegerField(
        label=gettext_lazy("Tries of a person with one context"), min_value=1
    )
    tries_per_day = forms.IntegerField(label=gettext_lazy("Tries of a person a day"), min_value=1)
    share_of_round = forms.FloatField(
        label=gettext_lazy("Largest share of a round that one person writes"),
        min_value=0.001,
        max_value=1,
        help_text=gettext_lazy("0.05 is one in twenty. It counts in rounds from 400 examples on."),
    )
    share_of_votes = forms.FloatField(
        label=gettext_lazy("Largest share of a round's votes that one person gives"),
        min_value=0.001,
        max_value=1,
        help_text=gettext_lazy("With fewer than twenty judges choose more; 1: any number."),
    )
    show_confidence = forms.ChoiceField(
        label=gettext_lazy("How sure the model is"),
        choices=[
            ("full", gettext_lazy("Writers see it")),
            ("rounded", gettext_lazy("Writers see it rounded to ten percent")),
            ("hidden", gettext_lazy("Writers do not see it")),
        ],
    )
    write_programs = forms.BooleanField(
        label=gettext_lazy("Programs may write examples, which are kept apart"), required=False
    )
    judge_programs = forms.BooleanField(
        label=gettext_lazy("Votes of programs count"), required=False
    )
    prompt_field = forms.ChoiceField(
        label=gettext_lazy("Given text that the text field starts with"),
        required=False,
        help_text=gettext_lazy("People change it. Models and judges do not see it."),
    )
    minimal_edit = forms.BooleanField(
        label=gettext_lazy("People may change somebody's example so that its label flips"),
        required=False,
    )
    worked = forms.BooleanField(
        label=gettext_lazy("People may look at others' examples that worked"), required=False
    )
    suggestions = forms.BooleanField(
        label=gettext_lazy("People may ask the task's generator for a text"), required=False
    )

    def arrange(self, data: Data) -> None:
        self.choose("prompt_field", list_field_names(data, "context", "text", "long_text"))


FORMS: Mapping[str, type[StepForm]] = {
    "goal": GoalForm,
    "answer": AnswerForm,
    "words": WordsForm,
    "judging": JudgingForm,
    "limits": LimitsForm,
}
