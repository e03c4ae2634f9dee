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
from validation.decisions.awaited import waits_for_judges
from validation.models import Consensus, ExampleTag, OwnerDecision, Validation

MOST_TAGS = 200
"""Tags of contexts that a choice offers; where there are more, people type one."""
STANDS = Q(retracted_at__isnull=True)
DECIDED = Q(consensus__state=Consensus.State.DECIDED)
BY_OWNER = Q(consensus__decided_by=Consensus.DecidedBy.OWNER)
# An author corrects an example by an edit, whose parent is what was sent back.
SENT_BACK = OwnerDecision.objects.filter(is_sent_back=True, example=OuterRef("parent"))
OPEN = STANDS & (Q(consensus__isnull=True) | Q(consensus__state=Consensus.State.UNDECIDED))
STATES = {
    "valid": STANDS & Q(consensus__is_verified=True),
    "not-valid": STANDS & DECIDED & Q(consensus__is_verified=False, consensus__is_sent_back=False),
    "no-consensus": STANDS & Q(consensus__state=Consensus.State.NO_CONSENSUS),
    "by-owner": STANDS & BY_OWNER,
    "sent-back": STANDS & Q(consensus__is_sent_back=True),
    "mended": STANDS & Q(Exists(SENT_BACK)),
    "withdrawn": ~STANDS,
}
STATE_WORDS = [
    ("waiting", _("Waiting")),
    ("kept", _("Kept without judging")),
    ("valid", _("Confirmed")),
    ("not-valid", _("Decided, not confirmed")),
    ("no-consensus", _("No consensus")),
    ("by-owner", _("Decided by owners")),
    ("sent-back", _("Sent back to the author")),
    ("mended", _("Mended by the author")),
    ("withdrawn", _("Withdrawn")),
]
OUTCOMES = [
    (Example.Outcome.FOOLED, _("Fooled the model")),
    (Example.Outcome.NOT_FOOLED, _("Model right")),
    # Translators: votes do not give a result yet
    (Example.Outcome.UNDECIDED, _("Undecided")),
    (Example.Outcome.NO_MODEL, _("No model was asked")),
    (Example.Outcome.UNKNOWN, _("Unknown")),
]
PATHS = {
    "round": "round__number",
    "outcome": "outcome",
    "author": "annotator__pseudonym",
    "slice": "context__tag",
}
COLUMNS = {"context": "context__fields", "input": "inputs", "metadata": "metadata"}
"""Where an example keeps the fields of a place; the others are of answers and of votes."""
AGREEMENT = [("all", _("All say the same")), ("split", _("They differ"))]
REPORTS = [("context", _("The context is reported")), ("flagged", _("Somebody flagged it"))]


@dataclass(frozen=True, slots=True)
class Searched:
    """A searchable field of the configuration: its location, and how it is searched."""

    place: str
    component: Component

    @property
    def name(self) -> str:
        """Return the field's name in forms and URLs, such as `input.label`."""
        return f"{self.place}.{self.component.name}"


def iter_searched_fields(config: TaskConfig) -> Iterator[Searched]:
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
    for place, components in groups.items():
        yield from (Searched(place, component) for component in components)


class FilterForm(forms.Form):
    """A form with all filters, each optional; examples must match all that are set."""

    are_all_optional = True  # so none says it

    text = forms.CharField(
        required=False, max_length=200, label=_("Words"),
        help_text=_("In the context or in what the author wrote."),
    )  # fmt: skip
    round = forms.TypedChoiceField(coerce=int, required=False, empty_value=None, label=_("Round"))
    state = forms.ChoiceField(choices=STATE_WORDS, required=False, label=_("State"))
    # Translators: noun: whether the model was fooled
    outcome = forms.ChoiceField(choices=OUTCOMES, required=False, label=_("Outcome"))
    # Translators: noun: people who judge examples
    agreement = forms.ChoiceField(choices=AGREEMENT, required=False, label=_("Judges"))
    reports = forms.ChoiceField(choices=REPORTS, required=False, label=_("Reports"))
    tag = forms.ChoiceField(required=False, label=_("Tag"))
    slice = forms.ChoiceField(required=False, label=_("Tag of the context"))
    author = forms.CharField(required=False, max_length=40, label=_("Author"))
    judge = forms.CharField(required=False, max_length=40, label=_("Judged by"))
    since = forms.DateField(required=False, label=_("Written since"))
    until = forms.DateField(required=False, label=_("Written until"))

    def __init__(self, task: Task, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        self.task, self.config = task, task.config
        self.searched = list(iter_searched_fields(self.config))
        label_format = gettext("Round %(number)d")
        numbers = task.rounds.order_by("-number").values_list("number", flat=True)
        choices = {
            "round": [(number, label_format % {"number": number}) for number in numbers],
            "tag": [(name, name) for name in tags_of(task)],
        }
        context_tags = context_tags_of(task)
        choices["slice"] = [(name, name) for name in context_tags]
        if len(context_tags) > MOST_TAGS:
            # A longer choice is slow to read and to send, so that people type the tag.
            label = self.fields["slice"].label
            self.fields["slice"] = forms.CharField(required=False, max_length=200, label=label)
        for searched_field in self.searched:
            self.fields[searched_field.name] = _field(searched_field)
        for name, field in self.fields.items():
            if isinstance(field, forms.ChoiceField):
                offered = choices.get(name, field.choices)
                field.choices = [("", gettext("Any")), *offered]  # type: ignore[misc]
            if isinstance(field, forms.DateField):
                field.widget = forms.DateInput(attrs={"type": "date"})

    def clean_author(self) -> str:
        """Allow only people who wrote in the task, so that other accounts are not revealed."""
        name: str = self.cleaned_data["author"].strip()
        return self._known(name, "annotator", Example.objects.filter(round__task=self.task))

    def clean_judge(self) -> str:
        """Allow only people who judged in the task, as `clean_author` does."""
        name: str = self.cleaned_data["judge"].strip()
        votes = Validation.objects.filter(example__round__task=self.task)
        return self._known(name, "validator", votes)

    def _known(self, name: str, path: str, rows: QuerySet[Any]) -> str:
        imported = Annotator.Source.IMPORT  # their names may be ids of a panel
        people = rows.exclude(**{f"{path}__source": imported}).filter(
            **{f"{path}__pseudonym": name}
        )
        if name and not people.exists():
            raise forms.ValidationError(gettext("Nobody of this name has done so in the task."))
        return name

    @cached_property
    def waits(self) -> Q:
        """Return the condition that an open example of the task is waiting for judges.

        At most two queries.
        """
        return waits_for_judges(Example.objects.filter(round__task=self.task))

    @property
    def chosen(self) -> dict[str, Any]:
        """Return the filters that are set, as query parameters."""
        values = ((name, self.cleaned_data.get(name)) for name in self.fields)
        return {name: str(value) for name, value in values if value not in (None, "")}

    def examples(self) -> QuerySet[Example]:
        """Select the examples that match all filters, oldest first. Call only on a valid form."""
        filters = {
            name: value for name, value in self.cleaned_data.items() if value not in (None, "")
        }
        states = {**STATES, "waiting": OPEN & self.waits, "kept": OPEN & ~self.waits}
        conditions = [
            states[filters["state"]] if "state" in filters else STANDS,
            Q(round__task=self.task),
        ]
        conditions += [
            Q(**{path: filters[name]}) for name, path in PATHS.items() if name in filters
        ]
        conditions += [
            _build_condition(searched_field, place, filters[searched_field.name])
            for place, searched_field in enumerate(self.searched)
            if searched_field.name in filters
        ]
        if "text" in filters:
            conditions.append(self._words(filters["text"]))
        # Numbered, as a field may have the name of a column.
        columns: dict[str, Any] = {
            f"f{place}": _text(searched_field.component, COLUMNS[searched_field.place])
            for place, searched_field in enumerate(self.searched)
            if searched_field.place in COLUMNS
        }
        # Aliases serve the conditions alone, so that rows do not carry them.
        rows = Example.objects.alias(answers=Subquery(_answers()), **columns)
        return rows.filter(*conditions, *_iter_other_conditions(filters)).order_by("pk")

    def _words(self, words: str) -> Q:
        """Return the condition that one of the example's visible texts contains the words."""
        condition = Q()
        for place, searched_field in enumerate(self.searched):
            if searched_field.place in ("context", "input"):
                condition |= Q(**{f"f{place}__icontains": words})
        return condition


def _iter_other_conditions(filters: Mapping[str, Any]) -> Iterator[Q]:
    """Yield conditions on votes, reports and tags, and on the time of writing."""
    # EXISTS and no join: an example with several votes must come once.
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
        # To the end of the day that is named.
        yield Q(created_at__lte=datetime.combine(filters["until"], time.max, UTC))


def tags_of(task: Task) -> list[str]:
    """List the current tags of a task's examples, in alphabetical order."""
    rows = ExampleTag.objects.filter(example__round__task=task).order_by("name")
    return list(rows.values_list("name", flat=True).distinct())


def context_tags_of(task: Task) -> list[str]:
    """List the tags of a task's contexts, sorted by name; at most MOST_TAGS + 1."""
    tagged = Context.objects.filter(round__task=task).exclude(tag="").order_by("tag")
    return list(tagged.values_list("tag", flat=True).distinct()[: MOST_TAGS + 1])


def _answers() -> QuerySet[Any]:
    """Return a subquery that counts the different answers in the votes on an example."""
    votes = Validation.objects.filter(example=OuterRef("pk")).order_by().values("example")
    # One of both is filled, so that together they are one answer.
    choice = Concat("label", Value(":"), "verdict")
    return votes.annotate(kinds=Count(choice, distinct=True)).values("kinds")


def _field(searched_field: Searched) -> forms.Field:
    """Build a choice field if the configuration lists the values, else a text field."""
    component = searched_field.component
    label_formats = {
        # Translators: field: its title; in brackets, whose field it is
        "context": gettext("%(field)s (context)"),
        # Translators: field: its title; in brackets, whose field it is
        "input": gettext("%(field)s (author)"),
        # Translators: field: its title; in brackets, whose field it is
        "output": gettext("%(field)s (model)"),
        "metadata": gettext("%(field)s (author, afterwards)"),
        # Translators: field: its title; in brackets, whose field it is
        "judges": gettext("%(field)s (judges)"),
    }
    label = label_formats[searched_field.place] % {"field": component.others_title}
    if component.labels:
        choices = [(choice.value, choice.words) for choice in component.labels]
        return forms.ChoiceField(choices=choices, required=False, label=label)
    return forms.CharField(required=False, max_length=200, label=label)


def _build_condition(searched_field: Searched, place: int, value: str) -> Q:
    """Return the condition that the field equals, or contains, the value."""
    component = searched_field.component
    if searched_field.place in COLUMNS:
        return _value_condition(component, f"f{place}", value)
    answers: Any = (
        TargetOutput.objects.alias(value=_text(component, "output"))
        if searched_field.place == "output"
        else Validation.objects.alias(value=_text(component, "metadata"))
    )
    return Q(
        Exists(answers.filter(_value_condition(component, "value", value), example=OuterRef("pk")))
    )


def _text(component: Component, column: str) -> Cast:
    """Cast a field's value in a JSON column to text."""
    return Cast(KeyTextTransform(component.name, column), TextField())


def _value_condition(component: Component, name: str, value: str) -> Q:
    if not component.labels:
        return Q(**{f"{name}__icontains": value})
    if not component.kind.is_list(component):
        return Q(**{name: value})
    quoted = {json.dumps(value), json.dumps(value, ensure_ascii=False)}  # as the database keeps it
    condition = Q()
    for text in quoted:
        condition |= Q(**{f"{name}__contains": text})
    return condition
