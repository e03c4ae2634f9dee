"""The form of a task, built from its configuration."""

import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.html import format_html_join
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext, override

from annotation.attempts.conversation_services import list_answered_turns, list_spoken_turns
from annotation.models import Report
from annotation.writing import widgets
from core.text.words import normalise_line_ends
from core.web.form_subjects import build_field_name, find_form_subject, rename_field
from tasks.config.components import Component
from tasks.config.loading import validate_inputs
from tasks.config.passage_spans import find_span_at, find_spans
from tasks.config.schema import TaskConfig
from tasks.config.values import find_value_errors, is_empty, normalise_values
from tasks.contexts.media.selectors import complete_media
from tasks.models import Task

UNCHANGED_MESSAGE = gettext_noop("Edit the sentence, then submit.")
MAX_ANSWER_CHARS = 60
"""The maximum length of an answer in a list of choices. The conversation shows it whole."""
CHALLENGE_FIELD = "support-challenge"  # no field of a task has a hyphen in its name


def build_form_field(component: Component, context: Mapping[str, Any]) -> forms.Field:
    """Build the form field of a component. It is optional: `validate_inputs` checks required ones.

    context: the fields whose texts are the choices, if the component is configured so.
    """
    own_field = component.kind.build_form_input(component)
    field_options: dict[str, Any] = {
        "label": component.title,
        "help_text": component.help or "",
        "required": False,
    }
    if own_field is None:  # of an earlier release; nobody can fill it
        return forms.CharField(disabled=True, **field_options)
    widget = _find_form_class(own_field.widget)
    if own_field.template:
        attributes = {"template_name": own_field.template, "title": component.title}
        widget = type(own_field.widget, (_TitledWidget, widget), attributes)
    field: forms.Field = _find_form_class(own_field.field)(
        widget=widget(own_field.attrs), **field_options
    )
    choices = own_field.choices or [
        (text, text) for text in component.kind.list_options(component, context)
    ]
    if choices:  # a field with choices hands them on to its widget
        choice_owner: Any = field if isinstance(field, forms.ChoiceField) else field.widget
        choice_owner.choices = choices
        field.widget.colours = component.colours
    return field


def _find_form_class(name: str) -> Any:
    return getattr(widgets, name, None) or getattr(forms, name)


class _TitledWidget:
    """A mixin that passes a component's title to the template of a widget."""

    title: str

    def get_context(self, *args: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(*args)  # type: ignore[misc]
        context["widget"]["title"] = self.title
        return context


class ComponentForm(forms.Form):
    """A form of configuration components; after validation, `inputs` has the values.

    context: the fields from which spans are selected.
    """

    def __init__(
        self,
        components: Sequence[Component],
        data: Any = None,
        *,
        context: Mapping[str, Any] | None = None,
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.components, self.context = components, context or {}
        for component in components:
            self.fields[component.name] = build_form_field(component, self.context)
            # The label says "(optional)" only where the configuration does.
            self.fields[component.name].widget.is_required_by_task = component.required
            if component.placeholder:
                self.fields[component.name].widget.attrs["placeholder"] = component.placeholder
            if component.counter and component.max_length:
                self.fields[component.name].widget.attrs["data-limit"] = component.max_length

    def values(self) -> dict[str, Any]:
        """Return the non-empty field values."""
        names = (component.name for component in self.components)
        values = {name: _normalise_newlines(self.cleaned_data.get(name)) for name in names}
        return {name: value for name, value in values.items() if not is_empty(value)}

    def clean(self) -> dict[str, Any]:
        """Check the values. If a span's text occurs repeatedly, the first occurrence counts."""
        self.inputs = self.values()
        for component in self.components:
            value = self.inputs.get(component.name)
            if value is None:
                continue
            value = component.kind.parse_typed_value(component, value, self.context)
            value = component.kind.normalise(component, value)
            self.inputs[component.name] = value
            for message in find_value_errors(component, value, self.context):
                self.add_error(component.name, message)
        return self.cleaned_data


def _normalise_newlines(value: Any) -> Any:
    """Convert a text's line breaks to LF; return other values unchanged."""
    return normalise_line_ends(value) if isinstance(value, str) else value


def find_unchanged_fields(
    config: TaskConfig, inputs: Mapping[str, Any], start_text: str
) -> list[str]:
    """Return the names of text fields that are still equal to the text to change, `start_text`.

    Differences in white space do not count. Empty if `start_text` is empty.
    """
    return [
        component.name
        for component in config.input
        if component.type == "long_text"
        and start_text
        and str(inputs.get(component.name, "")).split() == start_text.split()
    ]


def read_typed_values(
    config: TaskConfig, context: Mapping[str, Any], data: MultiValueDict[str, Any]
) -> dict[str, Any]:
    """Return the form's values for a draft, without checking them.

    Texts are cut off at 10,000 characters. Empty values are left out.
    """
    values: dict[str, Any] = {}
    data = rename_field(data, config.text_field, config.text_field)
    for component in config.input:
        widget = build_form_field(component, context).widget
        value = _normalise_newlines(widget.value_from_datadict(data, {}, component.name))
        # Nothing else bounds a draft, as it is not checked.
        values[component.name] = value[:10_000] if isinstance(value, str | list) else value
        start = data.get(f"{component.name}_start", "")
        if component.type == "span" and value and start.isdecimal():
            end = int(start) + len(value)
            values[component.name] = {"text": value, "start": int(start), "end": end}
    return {name: value for name, value in values.items() if value}


def has_typed_input(config: TaskConfig) -> bool:
    """Return whether the main input is text; otherwise a chat, marks, a picture or a recording."""
    return not config.talk and config.get_component(config.text_field).kind.is_text


def is_of_other_assignment(config: TaskConfig, data: Mapping[str, Any], assignment_id: int) -> bool:
    """Return whether the form belongs to another assignment, by the name of its text field."""
    return find_form_subject(data, config.text_field) not in (None, str(assignment_id))


class ExampleForm(ComponentForm):
    """A form for the inputs of an example, except the goal, which the server chose."""

    attempt_key = forms.UUIDField(widget=forms.HiddenInput)
    assignment = forms.IntegerField(widget=forms.HiddenInput)
    goal = forms.CharField(widget=forms.HiddenInput, required=False)
    parent = forms.UUIDField(widget=forms.HiddenInput, required=False)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        config: TaskConfig,
        context: Mapping[str, Any],
        assignment_id: int,
        goal: str,
        start_values: Mapping[str, Any] | None = None,
        text_to_change: str = "",
        parent: uuid.UUID | None = None,
        challenge: str | None = None,
        takes_challenge: bool = False,
        task: Task | None = None,
        refusals: Mapping[str, str] | None = None,
        turns: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Build the fields with `start_values` as their initial values.

        A text equal to `text_to_change` is refused. challenge: the text of the offered challenge.
        takes_challenge: whether the challenge is initially ticked. task: the task whose media files
        the form may name. refusals: messages about rejected uploads, by field. turns: the
        conversation whose answers can be chosen.
        """
        self.config, self.drawn_goal, self.text_to_change = config, goal, text_to_change
        self.assignment_id = assignment_id
        self.is_of_other_assignment = is_of_other_assignment(config, data or {}, assignment_id)
        if data is not None:
            data = rename_field(data, config.text_field, self.add_prefix(config.text_field))
        self.task, self.refusals, self.turns = task, refusals or {}, turns
        initial = {
            **(start_values or {}),
            "attempt_key": uuid.uuid4(),
            "assignment": assignment_id,
            "goal": goal,
            "parent": parent,
            CHALLENGE_FIELD: takes_challenge,
        }
        super().__init__(self._list_asked_components(), data, context=context, initial=initial)
        if challenge:
            self.fields[CHALLENGE_FIELD] = forms.BooleanField(
                label=_("Challenge: %(challenge)s") % {"challenge": challenge},
                help_text=_("Tick this if your example meets the challenge (optional)."),
                required=False,
            )
        for component in self.components:
            if component.type == "span":
                self._add_span(component, start_values or {})
            elif component is config.talk:
                marks: Any = self.fields[component.name]
                marks.choices = _list_answers(turns)
                if len(marks.choices) == 1:  # there is nothing to choose between
                    self.initial.setdefault(component.name, marks.choices[0][0])

    def add_prefix(self, field_name: str) -> str:
        """Return the field's name in HTML; the text field's name includes the assignment's id."""
        if field_name != self.config.text_field or not has_typed_input(self.config):
            return super().add_prefix(field_name)
        return build_field_name(field_name, self.assignment_id)

    @property
    def _is_decision(self) -> bool:
        return self.config.verdict.type == "decide"

    @property
    def main_field(self) -> forms.BoundField:
        """Return the main input field."""
        return self[self.config.text_field]

    def _list_asked_components(self) -> list[Component]:
        """Return the inputs to fill, without the goal and inputs that are irrelevant for it."""
        goal_field = self.config.goal.field
        return [
            component
            for component in self.config.input
            if component.name != goal_field
            # In a decision the whole conversation counts, so no answer is marked.
            and not (component is self.config.talk and self._is_decision)
            and not (
                component.when
                and component.when.field == goal_field
                and component.when.equals != self.drawn_goal
            )
        ]

    def _add_span(self, component: Component, start_values: Mapping[str, Any]) -> None:
        """Add a hidden field for the start of a span, used if its text is ambiguous."""
        span = start_values.get(component.name)
        if isinstance(span, Mapping):
            self.initial[component.name] = span["text"]
            self.initial[f"{component.name}_start"] = span["start"]
        self.fields[f"{component.name}_start"] = forms.IntegerField(
            widget=forms.HiddenInput, required=False
        )

    @property
    def shown_fields(self) -> list[forms.BoundField]:
        """Return the fields to show, in the order of the configuration."""
        return [self[component.name] for component in self.components]

    @property
    def challenge(self) -> forms.BoundField | None:
        """Return the checkbox of the offered challenge, or None."""
        return self[CHALLENGE_FIELD] if CHALLENGE_FIELD in self.fields else None

    @property
    def takes_challenge(self) -> bool:
        """Return whether the challenge is ticked. Call only after validation."""
        return bool(self.cleaned_data.get(CHALLENGE_FIELD))

    @property
    def span_name(self) -> str:
        """Return the name of the field that takes spans of the context; empty if there is none."""
        return next((c.name for c in self.components if c.type in ("span", "spans")), "")

    @property
    def occurrence_field(self) -> forms.BoundField | None:
        """Return the field that asks which occurrence is meant; None if that is clear."""
        name = f"{self.span_name}_start"
        field = self.fields.get(name)
        return field.get_bound_field(self, name) if isinstance(field, forms.ChoiceField) else None

    def _convert_to_stored(self, component: Component, value: Any) -> Any:
        """Convert a form value to the stored format; None if it is refused."""
        if component.type == "span":
            return self._read_span(component, value)
        if component is self.config.talk:  # the value is the place of the marked answer
            return list_spoken_turns(self.turns[: int(value)])
        return component.kind.parse_typed_value(component, value, self.context)

    def clean(self) -> dict[str, Any]:
        values = self.values()
        if self.task:
            values = complete_media(self.task, self.components, values)
        # Files that were not kept left no value, which could be checked below.
        for name, message in self.refusals.items():
            self.add_error(name, message)
        for component in self.components:
            if component.name not in values:
                continue
            values[component.name] = self._convert_to_stored(component, values[component.name])
        if self.config.goal.field:
            values[self.config.goal.field] = self.drawn_goal
        if self.config.talk and self._is_decision:
            values[self.config.talk.name] = list_answered_turns(self.turns) or None
        filled_values = {name: value for name, value in values.items() if value is not None}
        self.inputs = normalise_values(self.config.input, filled_values)
        for name, messages in validate_inputs(self.config, self.context, self.inputs).items():
            if name in self.fields and not self.has_error(name):
                self.add_error(name, messages)
            elif self._is_decision and name == self.config.text_field and self.config.talk:
                # No field of the form is about the conversation.
                self.add_error(None, _("Ask the model first. Then answer."))
        self._refuse_unchanged()
        return self.cleaned_data

    def _read_span(self, component: Component, text: str) -> dict[str, Any] | None:
        passage = str(self.context[str(component.reference)])
        start_name = f"{component.name}_start"
        chosen_start = self.cleaned_data.get(start_name)
        # The chosen place holds only while the words there are still the typed ones.
        span = None if chosen_start is None else find_span_at(text, passage, chosen_start)
        if span is None:
            spans = find_spans(text, passage)
            if len(spans) > 1:
                self._ask_for_occurrence(start_name, component.name, passage, dict(spans))
                return None
            span = next(iter(spans), None)
        if span is None:
            self.add_error(
                component.name,
                _("Choose the answer in the text, or type it exactly as it appears."),
            )
            return None
        start, end = span
        return {"text": passage[start:end], "start": start, "end": end}

    def _ask_for_occurrence(
        self, start_name: str, name: str, passage: str, ends: Mapping[int, int]
    ) -> None:
        """Add a choice of the occurrence that is meant, and an error that asks for it.

        ends: end positions by start position.
        """

        def build_excerpt(start: int, end: int) -> str:
            # About seven words on each side tell one place from another.
            before, after = passage[max(0, start - 40) : start], passage[end : end + 40]
            return f"…{before}[{passage[start:end]}]{after}…"

        choices = [(start, build_excerpt(start, end)) for start, end in ends.items()]
        self.fields[start_name] = forms.ChoiceField(
            label=_("Which occurrence?"), choices=choices, widget=forms.RadioSelect
        )
        message = ngettext(
            "“%(text)s” appears %(number)d time in the text. Choose the occurrence you mean.",
            "“%(text)s” appears %(number)d times in the text. Choose the occurrence you mean.",
            len(ends),
        )
        start, end = next(iter(ends.items()))
        self.add_error(name, message % {"text": passage[start:end], "number": len(ends)})

    def _refuse_unchanged(self) -> None:
        for name in find_unchanged_fields(self.config, self.inputs, self.text_to_change):
            if not self.has_error(name):
                self.add_error(name, _(UNCHANGED_MESSAGE))


def _list_answers(turns: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the target's answers as choices, by their index in the conversation.

    The words of a choice are the answer's number, as shown in the conversation, and its beginning.
    """
    choices: list[tuple[str, str]] = []
    for index, turn in enumerate(turns):
        if turn["role"] == "assistant":
            values = {"number": len(choices) + 1, "text": _shorten_answer(turn["text"])}
            # Translators: a choice: the number of a model's answer, and how the answer begins
            choices.append((str(index), _("Answer %(number)d: %(text)s") % values))
    return choices


def _shorten_answer(text: str) -> str:
    """Return the beginning of an answer on one line."""
    return Truncator(" ".join(text.split())).chars(MAX_ANSWER_CHARS)


def build_why_form(components: Sequence[Component], metadata: Mapping[str, Any]) -> ComponentForm:
    """Return the form of the questions after the verdict, with the answers so far."""
    answers = {
        component.name: component.kind.build_initial_value(metadata[component.name])
        for component in components
        if component.name in metadata
    }
    return ComponentForm(components, initial=answers)


# Rendering is slow, and these are few: the questions of each task, in each language.
@lru_cache(maxsize=256)
def render_blank_fields(components: tuple[Component, ...], language: str | None) -> str:
    """Render an empty form in a language. Cached, because it is the same for everybody."""
    fields = ComponentForm(components)
    with override(language):
        return format_html_join("", "{}", ((bound.as_field_group(),) for bound in fields))


class ReportForm(forms.ModelForm):
    """A form to report a context."""

    class Meta:
        model = Report
        fields = ["reason", "comment"]
        widgets = {"reason": forms.RadioSelect}
        labels = {
            "reason": gettext_lazy("What is wrong?"),
            "comment": gettext_lazy("Describe the problem"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Without the empty choice that Django adds to a field of a model.
        self.fields["reason"].choices = Report.Reason.choices  # type: ignore[attr-defined]
