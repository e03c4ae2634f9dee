"""The form in which people write a study without YAML."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from core.text.money import convert_to_smallest_units
from dynabench.campaigns.ways.registry import way_choices
from dynabench.studies.rules.builder import OUTCOMES, build_plan_text
from dynabench.studies.rules.plan import MAX_EFFECT, read_plan
from tasks.config.parsing import ConfigError

MAX_ARMS, MAX_HYPOTHESES = 6, 12
SMALL_TEXT = forms.Textarea(attrs={"rows": 3})
MODEL_CHOICES = [
    ("none", _("No model")),
    ("script", _("A script that always says the same, for rehearsals")),
    ("api", _("A chat model with an OpenAI-compatible address")),
]
PATH_PATTERNS = (
    (re.compile(r"arms\[(\d+)\]\.(differs|instructions)"), r"arm-\1-\2"),
    (re.compile(r"arms\[(\d+)\]\.model.*"), r"arm-\1-model"),
    (re.compile(r"arms\[(\d+)\].*"), r"arm-\1-name"),
    (re.compile(r"size\.(\w+)"), r"\1"),
    (re.compile(r"setup\.campaign\.(\w+).*"), r"\1"),
    (re.compile(r"exclude.*"), "min_seconds"),
    (re.compile(r"setup\.task.*"), "answers"),
)
"""Which field a part of the plan comes from."""


class StudyDraftForm(forms.Form):
    """What a study asks, its arms, people and money, in plain fields.

    values: what the draft contains, from which the numbers of arms and hypotheses follow. After
    validation `plan_text` is the plan that the fields give.
    """

    title = forms.CharField(label=_("Title"), max_length=100)
    question = forms.CharField(label=_("Research question"), max_length=500, widget=SMALL_TEXT)
    task_name = forms.CharField(
        label=_("Name of the task"), max_length=80, help_text=_("People read it above each case.")
    )
    instructions = forms.CharField(label=_("Instructions"), max_length=5000, widget=SMALL_TEXT)
    case_label = forms.CharField(
        label=_("What a case is"), max_length=60, help_text=_("One word or two: Claim, Patient")
    )
    answer_label = forms.CharField(label=_("Question about each case"), max_length=200)
    answers = forms.CharField(
        label=_("Answers to choose from"),
        max_length=2000,
        help_text=_("One on each line"),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    cases = forms.FileField(
        label=_("File of cases"),
        required=False,
        help_text=_("A table (CSV, XLSX) or JSONL with the columns case and answer. Max 2 MB."),
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.xlsx,.ods,.jsonl"}),
    )
    sure_label = forms.CharField(
        label=_("Question about confidence"), max_length=200, required=False
    )
    people = forms.IntegerField(label=_("People"), min_value=2, max_value=20_000)
    each = forms.IntegerField(
        label=_("Cases per person"), min_value=1, max_value=200, help_text=_("In each arm")
    )
    contexts = forms.IntegerField(label=_("Different cases"), min_value=20, max_value=20_000)
    effect = forms.FloatField(
        label=_("Smallest effect to find"),
        min_value=0.01,
        max_value=MAX_EFFECT,
        help_text=_("In standard deviations: 0.2 is small, 0.5 medium, 0.8 large"),
    )
    power = forms.FloatField(
        # Translators: noun of statistics: how often a study would find an effect
        label=_("Power that you need"),
        min_value=0.05,
        max_value=0.99,
        help_text=_("The usual number is 0.8."),
    )
    min_seconds = forms.FloatField(
        label=_("Leave out people faster than (seconds per case)"),
        min_value=0,
        required=False,
        help_text=_("Leave empty to keep everyone."),
    )
    excluded_percent = forms.FloatField(
        label=_("Expected share of such people (percent)"), min_value=0, max_value=90
    )
    consent = forms.CharField(
        label=_("Consent text"), max_length=20_000, widget=forms.Textarea(attrs={"rows": 4})
    )
    ethics = forms.CharField(label=_("Ethics statement"), max_length=20_000, widget=SMALL_TEXT)
    way = forms.ChoiceField(label=_("Recruitment"))
    minutes = forms.IntegerField(label=_("Time limit in minutes"), min_value=1, max_value=10_000)
    currency = forms.RegexField(
        r"^[A-Z]{3}$", label=_("Currency"), max_length=3, help_text=_("Three letters: EUR")
    )
    pay = forms.DecimalField(label=_("Pay per person"), min_value=0, max_value=100_000)
    completion_url = forms.URLField(
        label=_("Completion URL"),
        required=False,
        assume_scheme="https",
        help_text=_("The panel's URL for people who finish. We replace {code} with the code."),
    )
    code_done = forms.CharField(label=_("Completion code"), max_length=60, required=False)
    code_returned = forms.CharField(
        label=_("Code for people who leave"), max_length=60, required=False
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        files: MultiValueDict[str, Any] | None = None,
        *,
        values: Mapping[str, Any],
        code: str,
        design: str,
    ) -> None:
        super().__init__(data, files, initial=dict(values))
        # From what is stored, not from what was sent: a request must not ask for a thousand rows.
        self.arm_count = min(MAX_ARMS, int(values.get("arms", 2)))
        self.hypothesis_count = min(MAX_HYPOTHESES, int(values.get("hypotheses", 1)))
        self.code, self.design, self.plan_text = code, design, ""
        # People whom the owner invites can't come by one link that leads to all arms.
        ways = [choice for choice in way_choices() if choice[0] not in ("invitation", "mturk")]
        self.fields["way"] = forms.ChoiceField(label=_("Recruitment"), choices=ways)
        arm_choices = []
        for index in range(self.arm_count):
            self._add_arm(index)
            name = self.data.get(f"arm-{index}-name") or values.get(f"arm-{index}-name")
            arm_choices.append((str(index), name or _("Arm %(n)d") % {"n": index + 1}))
        for measure in OUTCOMES:
            self._add_outcome(measure)
        for index in range(self.hypothesis_count):
            self._add_hypothesis(index, arm_choices)

    def _add_arm(self, index: int) -> None:
        """Add the fields of an arm."""
        key = f"arm-{index}-"
        self.fields[key + "name"] = forms.CharField(label=_("Name"), max_length=30)
        self.fields[key + "differs"] = forms.CharField(
            label=_("What differs in this arm"), max_length=300
        )
        self.fields[key + "model"] = forms.ChoiceField(
            label=_("Model that people talk to"), choices=MODEL_CHOICES
        )
        self.fields[key + "reply"] = forms.CharField(
            label=_("What the script says"), max_length=500, required=False
        )
        self.fields[key + "url"] = forms.URLField(
            label=_("Address of the model"),
            required=False,
            assume_scheme="https",
            help_text=_("https://models.example/v1. You add its key after the next step."),
        )
        self.fields[key + "model_name"] = forms.CharField(
            label=_("Name of the model at this address"), max_length=200, required=False
        )
        self.fields[key + "instructions"] = forms.CharField(
            label=_("Instructions of this arm"),
            max_length=5000,
            required=False,
            help_text=_("Leave empty to show the same as in the other arms."),
            widget=SMALL_TEXT,
        )

    def _add_outcome(self, measure: str) -> None:
        """Add the choice of an outcome, and what is assumed of it."""
        choice = OUTCOMES[measure]
        self.fields[f"outcome-{measure}"] = forms.BooleanField(
            label=gettext_lazy(choice.words), help_text=gettext_lazy(choice.help), required=False
        )
        # Translators: the mean that a plan assumes of an outcome
        self.fields[f"mean-{measure}"] = forms.FloatField(label=_("Mean without any effect"))
        if choice.sd is not None:
            self.fields[f"sd-{measure}"] = forms.FloatField(
                label=_("Standard deviation"), min_value=0.001
            )

    def _add_hypothesis(self, index: int, arms: list[tuple[str, Any]]) -> None:
        """Add the fields of a hypothesis. One without an arm is left out."""
        key = f"hypothesis-{index}-"
        outcomes = [(measure, gettext_lazy(choice.words)) for measure, choice in OUTCOMES.items()]
        self.fields[key + "outcome"] = forms.ChoiceField(label=_("Outcome"), choices=outcomes)
        self.fields[key + "expected"] = forms.ChoiceField(
            # Translators: a hypothesis: this outcome is higher in one arm than in another
            label=_("Is"),
            choices=[("higher", _("higher")), ("lower", _("lower"))],
        )
        self.fields[key + "arm"] = forms.ChoiceField(
            # Translators: a hypothesis: an outcome is higher in this arm
            label=_("In arm"),
            choices=[("", "–"), *arms],
            required=False,
        )
        self.fields[key + "compared_with"] = forms.ChoiceField(
            # Translators: a hypothesis: an outcome is higher in one arm than in this one
            label=_("Than in arm"),
            choices=arms,
        )

    def list_group(self, *names: str) -> list[BoundField]:
        """Return these fields, in this order."""
        return [self[name] for name in names if name in self.fields]

    @property
    def sections(self) -> dict[str, list[BoundField]]:
        """Return the fields that no list repeats, by the section of the page."""
        return {
            "question": self.list_group("title", "question"),
            "work": self.list_group(
                "task_name", "instructions", "case_label", "answer_label", "answers"
            ),
            "size": self.list_group("people", "each", "contexts", "effect", "power"),
            "exclude": self.list_group("min_seconds", "excluded_percent"),
            "people": self.list_group(
                *("consent", "ethics", "way", "minutes", "currency", "pay"),
                *("completion_url", "code_done", "code_returned"),
            ),
        }

    @property
    def arm_groups(self) -> Iterator[tuple[int, list[BoundField], list[BoundField]]]:
        """Yield each arm's number, its main fields, and those that few arms need."""
        for index in range(self.arm_count):
            main = self.list_group(
                *(f"arm-{index}-{name}" for name in ("name", "differs", "model"))
            )
            names = ("reply", "url", "model_name", "instructions")
            yield index + 1, main, self.list_group(*(f"arm-{index}-{name}" for name in names))

    @property
    def outcome_groups(self) -> Iterator[tuple[BoundField, list[BoundField]]]:
        """Yield the choice of each outcome with the fields that it needs."""
        for measure in OUTCOMES:
            names = [f"mean-{measure}", f"sd-{measure}"]
            # Its change is measured by a question, before and after.
            if measure == "answer":
                names.append("sure_label")
            yield self[f"outcome-{measure}"], self.list_group(*names)

    @property
    def hypothesis_groups(self) -> Iterator[tuple[int, list[BoundField]]]:
        """Yield each hypothesis's number and its fields."""
        for index in range(self.hypothesis_count):
            names = ("outcome", "expected", "arm", "compared_with")
            yield index + 1, self.list_group(*(f"hypothesis-{index}-{name}" for name in names))

    @property
    def cost(self) -> dict[str, Any] | None:
        """Return what people are paid in all, in the smallest unit; None if a number is wrong."""
        if not self.is_bound or {"people", "pay", "currency"} & self.errors.keys():
            return None
        cleaned = self.cleaned_data
        pay = convert_to_smallest_units(cleaned["pay"], cleaned["currency"])
        people: int = cleaned["people"]
        return {
            "people": people,
            "pay": pay,
            "total": people * pay,
            "currency": cleaned["currency"],
        }

    def list_typed_values(self) -> dict[str, Any]:
        """Return what was typed, right or wrong, with the numbers of arms and hypotheses."""
        # A file is no text, and is stored by itself.
        typed = {name: self.data.get(name, "") for name in self.fields if name != "cases"}
        return typed | {"arms": self.arm_count, "hypotheses": self.hypothesis_count}

    def clean(self) -> None:
        """Build the plan, and give each of its problems to the field that it comes from."""
        if self.errors:
            return
        values = self._collect_values()
        if not values["outcomes"]:
            self.add_error("outcome-correct", gettext("Choose at least one outcome."))
        if not values["hypotheses"]:
            self.add_error("hypothesis-0-arm", gettext("Add at least one hypothesis."))
        for index, row in values["numbered_hypotheses"]:
            if row["outcome"] not in values["outcomes"]:
                message = gettext("Tick this outcome above, or choose another.")
                self.add_error(f"hypothesis-{index}-outcome", message)
        if self.errors:
            return
        rows = [index for index, _row in values["numbered_hypotheses"]]
        text = build_plan_text(values)
        try:
            read_plan(text)
        except ConfigError as error:
            for problem in error.problems:
                words = f"{problem.message}. {problem.fix}" if problem.fix else problem.message
                self.add_error(self._find_field(problem.path, rows), words)
            return
        self.plan_text = text

    def _find_field(self, path: str, rows: list[int]) -> str | None:
        """Return the field that a part of the plan comes from; None if it is none.

        rows: the number of the row that each hypothesis comes from.
        """
        if match := re.match(r"hypotheses\[(\d+)\]", path):
            # Rows without an arm are no hypotheses of the plan.
            return f"hypothesis-{rows[int(match[1])]}-arm"
        for pattern, name in PATH_PATTERNS:
            match = pattern.fullmatch(path)
            if match and match.expand(name) in self.fields:
                return match.expand(name)
        return None

    def _collect_values(self) -> dict[str, Any]:
        """Return the checked values as the plan needs them."""
        cleaned = self.cleaned_data
        hypotheses = self._collect_hypotheses()
        lines = [line.strip() for line in cleaned["answers"].splitlines()]
        return {
            **cleaned,
            "code": self.code,
            "design": self.design,
            "arms": [self._collect_arm(index) for index in range(self.arm_count)],
            "numbered_hypotheses": hypotheses,
            "hypotheses": [row for _index, row in hypotheses],
            "outcomes": self._collect_outcomes(),
            "answers": [line for line in lines if line],
            "pay_task": convert_to_smallest_units(cleaned["pay"], cleaned["currency"]),
        }

    def _collect_arm(self, index: int) -> dict[str, Any]:
        """Return the values of an arm. Adds an error if its model has no address or name."""
        names = ("name", "differs", "model", "reply", "url", "model_name", "instructions")
        arm = {name: self.cleaned_data[f"arm-{index}-{name}"] for name in names}
        if arm["model"] == "api":
            for name in ("url", "model_name"):
                if not arm[name]:
                    message = gettext("Fill this in, or choose another model.")
                    self.add_error(f"arm-{index}-{name}", message)
        return arm

    def _collect_hypotheses(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the hypotheses with the numbers of their rows. Rows without an arm are none."""
        cleaned, rows = self.cleaned_data, []
        for index in range(self.hypothesis_count):
            key = f"hypothesis-{index}-"
            if cleaned[key + "arm"]:
                row = {name: cleaned[key + name] for name in ("outcome", "expected")}
                for name in ("arm", "compared_with"):
                    row[name] = int(cleaned[key + name])
                rows.append((index, row))
        return rows

    def _collect_outcomes(self) -> dict[str, dict[str, float]]:
        """Return what is assumed of the chosen outcomes, by measure."""
        cleaned, outcomes = self.cleaned_data, {}
        for measure in OUTCOMES:
            if cleaned[f"outcome-{measure}"]:
                outcomes[measure] = {"mean": cleaned[f"mean-{measure}"]}
                # Shares have no standard deviation of their own.
                if f"sd-{measure}" in cleaned:
                    outcomes[measure]["sd"] = cleaned[f"sd-{measure}"]
        return outcomes


class StudyYamlForm(forms.Form):
    """The plan of a draft in YAML, with the setup of its tasks."""

    plan_text = forms.CharField(
        label=_("Plan"),
        max_length=50_000,
        help_text=_("YAML with arms, outcomes, hypotheses, size and setup"),
        widget=forms.Textarea(attrs={"rows": 24, "class": "code", "spellcheck": "false"}),
    )
    cases = forms.FileField(
        label=_("File of cases"),
        required=False,
        help_text=_("A file of contexts, each with its key in metadata. Max 2 MB."),
    )

    def __init__(self, *args: Any, code: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.code = code

    def clean_plan_text(self) -> str:
        """Check that the plan can be read, has a setup, and keeps the draft's code."""
        text: str = self.cleaned_data["plan_text"]
        try:
            plan = read_plan(text)
        except ConfigError as error:
            raise forms.ValidationError(str(error)) from None
        if plan.setup is None:
            raise forms.ValidationError(gettext("The plan has no setup, which describes the task."))
        if plan.study != self.code:
            raise forms.ValidationError(gettext("You can't change the code of a study."))
        return text


class OpenStudyForm(forms.Form):
    """Who stands for the ethics statement of a study that opens."""

    ethics_name = forms.CharField(label=_("Who approved the ethics statement"), max_length=200)
