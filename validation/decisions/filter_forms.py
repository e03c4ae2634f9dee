"""Filters for a reviewer's search: by every field, by answers and votes, and by tags."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Concat
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.models import Example, Report, TargetOutput
from core.accounts.models import Annotator
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.models import Context, Task
from validation.decisions.awaited import build_waiting_condition
from validation.models import Consensus, ExampleTag, OwnerDecision, Validation

MAX_TAGS = 200
"""The most tags of contexts that a choice field offers; if there are more, people type one."""
STANDING_CONDITION = Q(retracted_at__isnull=True)
DECIDED_CONDITION = Q(consensus__state=Consensus.State.DECIDED)
OWNER_CONDITION = Q(consensus__decided_by=Consensus.DecidedBy.OWNER)
# Authors correct an example by an edit, whose parent is the example sent back.
SENT_BACK_DECISIONS = OwnerDecision.objects.filter(is_sent_back=True, example=OuterRef("parent"))
OPEN_CONDITION = STANDING_CONDITION & (
    Q(consensus__isnull=True) | Q(consensus__state=Consensus.State.UNDECIDED)
)
STATE_CONDITIONS = {
    "valid": STANDING_CONDITION & Q(consensus__is_verified=True),
    "not-valid": STANDING_CONDITION
    & DECIDED_CONDITION
    & Q(consensus__is_verified=False, consensus__is_sent_back=False),
    "no-consensus": STANDING_CONDITION & Q(consensus__state=Consensus.State.NO_CONSENSUS),
    "by-owner": STANDING_CONDITION & OWNER_CONDITION,
    "sent-back": STANDING_CONDITION & Q(consensus__is_sent_back=True),
    "mended": STANDING_CONDITION & Q(Exists(SENT_BACK_DECISIONS)),
    "withdrawn": ~STANDING_CONDITION,
}
STATE_WORDS = [
    ("waiting", _("Waiting")),
    ("kept", _("Saved without judging")),
    ("valid", _("Confirmed")),
    ("not-valid", _("Not confirmed")),
    ("no-consensus", _("No consensus")),
    ("by-owner", _("Decided by owners")),
    ("sent-back", _("Sent back to the author")),
    ("mended", _("Fixed by the author")),
    ("withdrawn", _("Withdrawn")),
]
OUTCOME_CHOICES = [
    (Example.Outcome.FOOLED, _("Model was wrong")),
    (Example.Outcome.NOT_FOOLED, _("Model was right")),
    # Translators: votes do not give a result yet
    (Example.Outcome.UNDECIDED, _("Undecided")),
    (Example.Outcome.NO_MODEL, _("No model in the round")),
    (Example.Outcome.UNKNOWN, _("Unknown")),
]
FIELD_PATHS = {
    "round": "round__number",
    "outcome": "outcome",
    "author": "annotator__pseudonym",
    "slice": "context__tag",
}
COLUMNS = {"context": "context__fields", "input": "inputs", "metadata": "metadata"}
"""The columns of an example by section; fields of other sections belong to answers and votes."""
AGREEMENT_CHOICES = [("all", _("Judges agree")), ("split", _("Judges disagree"))]
REPORT_CHOICES = [
    ("context", _("The text was reported")),
    ("flagged", _("The example was flagged")),
]
NO_WORK_MESSAGES = {
    "annotator": _("This person hasn't written any example in this task. Check the name."),
    "validator": _("This person hasn't judged any example in this task. Check the name."),
}
"""Errors of a filter by person, by the path to that person."""


@dataclass(frozen=True, slots=True)
class SearchedField:
    """A searchable field of the configuration, and the section that it is in."""

    section: str
    component: Component

    @property
    def name(self) -> str:
        """Return the field's name in forms and URLs, such as `input.label`."""
        return f"{self.section}.{self.component.name}"


def iter_searched_fields(config: TaskConfig) -> Iterator[SearchedField]:
    """Yield every searchable field of a configuration.

    output: models' answers; metadata: authors' answers to later questions; judges: validators'
    answers.
    """
    groups = {
        "context": config.context,
        "input": config.input,
        "output": config.output,
        "metadata": config.metadata.create,
        "judges": config.judge_questions,
    }
    for index, components in groups.items():
        yield from (SearchedField(index, component) for component in components)


class FilterForm(forms.Form):
    """A form with all filters, each optional; examples must match all that are set."""

    are_all_optional = True  # so no label says so

    text = forms.CharField(
        required=False, max_length=200, label=_("Words"),
        help_text=_("Searches the text and what the author wrote."),
    )  # fmt: skip
    round = forms.TypedChoiceField(coerce=int, required=False, empty_value=None, label=_("Round"))
    state = forms.ChoiceField(choices=STATE_WORDS, required=False, label=_("State"))
    # Translators: noun: whether the model was fooled
    outcome = forms.ChoiceField(choices=OUTCOME_CHOICES, required=False, label=_("Outcome"))
    # Translators: noun: people who judge examples
    agreement = forms.ChoiceField(choices=AGREEMENT_CHOICES, required=False, label=_("Judges"))
    reports = forms.ChoiceField(choices=REPORT_CHOICES, required=False, label=_("Reports"))
    tag = forms.ChoiceField(required=False, label=_("Tag"))
    slice = forms.ChoiceField(required=False, label=_("Tag of the text"))
    author = forms.CharField(required=False, max_length=40, label=_("Author"))
    judge = forms.CharField(required=False, max_length=40, label=_("Judged by"))
    since = forms.DateField(required=False, label=_("Written since"))
    until = forms.DateField(required=False, label=_("Written until"))

    def __init__(self, task: Task, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        self.task, self.config = task, task.config
        self.searched = list(iter_searched_fields(self.config))
        label_format = gettext("Round %(number)d")
        round_numbers = task.rounds.order_by("-number").values_list("number", flat=True)
        choices = {
            "round": [(number, label_format % {"number": number}) for number in round_numbers],
            "tag": [(name, name) for name in list_tags(task)],
        }
        context_tags = list_context_tags(task)
        choices["slice"] = [(name, name) for name in context_tags]
        if len(context_tags) > MAX_TAGS:
            # A longer list would be slow to read and to send, so people type the tag.
            label = self.fields["slice"].label
            self.fields["slice"] = forms.CharField(required=False, max_length=200, label=label)
        for searched_field in self.searched:
            self.fields[searched_field.name] = _build_field(searched_field)
        for name, field in self.fields.items():
            if isinstance(field, forms.ChoiceField):
                values = choices.get(name, field.choices)
                field.choices = [("", gettext("Any")), *values]  # type: ignore[misc]
            if isinstance(field, forms.DateField):
                field.widget = forms.DateInput(attrs={"type": "date"})

    def clean_author(self) -> str:
        """Allow only people who wrote in the task, so that other accounts are not revealed."""
        name: str = self.cleaned_data["author"].strip()
        return self._check_known_person(
            name, "annotator", Example.objects.filter(round__task=self.task)
        )

    def clean_judge(self) -> str:
        """Allow only people who judged in the task, so that other accounts are not revealed."""
        name: str = self.cleaned_data["judge"].strip()
        votes = Validation.objects.filter(example__round__task=self.task)
        return self._check_known_person(name, "validator", votes)

    def _check_known_person(self, name: str, path: str, rows: QuerySet[Any]) -> str:
        imported_people = Annotator.Source.IMPORT  # whose names may be ids of a panel
        people = rows.exclude(**{f"{path}__source": imported_people}).filter(
            **{f"{path}__pseudonym": name}
        )
        if name and not people.exists():
            raise forms.ValidationError(NO_WORK_MESSAGES[path])
        return name

    @cached_property
    def waiting_condition(self) -> Q:
        """Return the condition that an open example of the task is waiting for judges.

        At most two queries.
        """
        return build_waiting_condition(Example.objects.filter(round__task=self.task))

    @property
    def set_filters(self) -> dict[str, Any]:
        """Return the filters that are set, as query parameters."""
        values = ((name, self.cleaned_data.get(name)) for name in self.fields)
        return {name: str(value) for name, value in values if value not in (None, "")}

    def select_examples(self) -> QuerySet[Example]:
        """Select the examples that match all filters, oldest first. Call only on a valid form."""
        filters = {
            name: value for name, value in self.cleaned_data.items() if value not in (None, "")
        }
        states = {
            **STATE_CONDITIONS,
            "waiting": OPEN_CONDITION & self.waiting_condition,
            "kept": OPEN_CONDITION & ~self.waiting_condition,
        }
        conditions = [
            states[filters["state"]] if "state" in filters else STANDING_CONDITION,
            Q(round__task=self.task),
        ]
        conditions += [
            Q(**{path: filters[name]}) for name, path in FIELD_PATHS.items() if name in filters
        ]
        conditions += [
            _build_condition(searched_field, index, filters[searched_field.name])
            for index, searched_field in enumerate(self.searched)
            if searched_field.name in filters
        ]
        if "text" in filters:
            conditions.append(self._build_word_condition(filters["text"]))
        # Numbered, because a field may have the name of a column.
        columns: dict[str, Any] = {
            f"f{index}": _cast_to_text(searched_field.component, COLUMNS[searched_field.section])
            for index, searched_field in enumerate(self.searched)
            if searched_field.section in COLUMNS
        }
        # Aliases, because only the conditions need them, not the rows.
        rows = Example.objects.alias(answers=Subquery(_build_answer_count()), **columns)
        return rows.filter(*conditions, *_iter_other_conditions(filters)).order_by("pk")

    def _build_word_condition(self, words: str) -> Q:
        """Return the condition that one of the example's visible texts contains the words."""
        condition = Q()
        for index, searched_field in enumerate(self.searched):
            if searched_field.section in ("context", "input"):
                condition |= Q(**{f"f{index}__icontains": words})
        return condition


def _iter_other_conditions(filters: Mapping[str, Any]) -> Iterator[Q]:
    """Yield conditions on votes, reports and tags, and on the time of writing."""
    # EXISTS instead of a join: an example with several votes must appear once.
    votes = Validation.objects.filter(example=OuterRef("pk"))
    if "tag" in filters:
        yield Q(Exists(ExampleTag.objects.filter(example=OuterRef("pk"), name=filters["tag"])))
    if "judge" in filters:
        yield Q(Exists(votes.filter(validator__pseudonym=filters["judge"])))
    if filters.get("reports") == "context":
        reports = Report.objects.filter(context=OuterRef("context"), resolved_at=None)
        yield Q(Exists(reports))
    elif "reports" in filters:
        yield Q(Exists(votes.filter(verdict="flagged")))
    if "agreement" in filters:
        yield Q(answers=1) if filters["agreement"] == "all" else Q(answers__gt=1)
    if "since" in filters:
        yield Q(created_at__gte=datetime.combine(filters["since"], time(), UTC))
    if "until" in filters:
        # Up to the end of the chosen day.
        yield Q(created_at__lte=datetime.combine(filters["until"], time.max, UTC))


def list_tags(task: Task) -> list[str]:
    """List the current tags of a task's examples, in alphabetical order."""
    rows = ExampleTag.objects.filter(example__round__task=task).order_by("name")
    return list(rows.values_list("name", flat=True).distinct())


def list_context_tags(task: Task) -> list[str]:
    """List the tags of a task's contexts, sorted by name; at most MAX_TAGS + 1."""
    tagged_contexts = Context.objects.filter(round__task=task).exclude(tag="").order_by("tag")
    return list(tagged_contexts.values_list("tag", flat=True).distinct()[: MAX_TAGS + 1])


def _build_answer_count() -> QuerySet[Any]:
    """Return a subquery that counts the different answers in the votes on an example."""
    votes = Validation.objects.filter(example=OuterRef("pk")).order_by().values("example")
    # Only one of the two is filled in, so together they contain the answer.
    choice = Concat("label", Value(":"), "verdict")
    return votes.annotate(kinds=Count(choice, distinct=True)).values("kinds")


def _build_field(searched_field: SearchedField) -> forms.Field:
    """Build a choice field if the configuration lists the values, else a text field."""
    component = searched_field.component
    label_formats = {
        # Translators: field: its title; in brackets, whose field it is
        "context": gettext("%(field)s (text)"),
        # Translators: field: its title; in brackets, whose field it is
        "input": gettext("%(field)s (author)"),
        # Translators: field: its title; in brackets, whose field it is
        "output": gettext("%(field)s (model)"),
        "metadata": gettext("%(field)s (author, afterwards)"),
        # Translators: field: its title; in brackets, whose field it is
        "judges": gettext("%(field)s (judges)"),
    }
    label = label_formats[searched_field.section] % {"field": component.third_person_title}
    if component.labels:
        choices = [(choice.value, choice.words) for choice in component.labels]
        return forms.ChoiceField(choices=choices, required=False, label=label)
    return forms.CharField(required=False, max_length=200, label=label)


def _build_condition(searched_field: SearchedField, index: int, value: str) -> Q:
    """Return the condition that the field equals, or contains, the value."""
    component = searched_field.component
    if searched_field.section in COLUMNS:
        return _build_value_condition(component, f"f{index}", value)
    answers: Any = (
        TargetOutput.objects.alias(value=_cast_to_text(component, "output"))
        if searched_field.section == "output"
        else Validation.objects.alias(value=_cast_to_text(component, "metadata"))
    )
    return Q(
        Exists(
            answers.filter(
                _build_value_condition(component, "value", value), example=OuterRef("pk")
            )
        )
    )


def _cast_to_text(component: Component, column: str) -> Cast:
    """Cast a field's value in a JSON column to text."""
    return Cast(KeyTextTransform(component.name, column), TextField())


def _build_value_condition(component: Component, name: str, value: str) -> Q:
    if not component.labels:
        return Q(**{f"{name}__icontains": value})
    if not component.kind.is_list(component):
        return Q(**{name: value})
    quoted_value = {
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
    }  # as the database stores it
    condition = Q()
    for text in quoted_value:
        condition |= Q(**{f"{name}__contains": text})
    return condition
