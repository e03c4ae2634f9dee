"""The fields of a task, and what a field type must define."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from core.registry import check_parts, register_member
from core.text.words import compose_value
from tasks.config.criteria import MAX_CRITERIA
from tasks.config.parsing import Finding, Loc, locate_inside

T = TypeVar("T")
TupleOf = Annotated[tuple[T, ...], Strict(False)]  # YAML has lists; a frozen model holds tuples
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60)]
Share = Annotated[float, Field(ge=0, le=1)]
NonEmptyText = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
MAX_TACTIC_CHARS = 30
Tactic = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_TACTIC_CHARS, strip_whitespace=True)
]
Section = Literal["context", "input", "output", "metadata"]
SECTIONS: tuple[Section, ...] = get_args(Section)
Colour = Literal["blue", "teal", "orange", "pink", "olive", "sky"]
COLOURS: tuple[Colour, ...] = get_args(Colour)
"""The colours for labels and tags.

Each is readable on light and on dark pages. The label or tag is always shown as text, too.
"""
COMMON_KEYS = ("name", "type", "label", "help", "required", "when", "judges_see", "judges_label")
OUTCOMES = ("fooled", "not_fooled", "undecided", "no_model")
FIELD_TYPES: dict[str, "FieldType"] = {}
"""The field types by name. The modules of `tasks.config.field_types` fill it."""


class ConfigPart(BaseModel):
    """Base class of a configuration's parts: frozen, strict, without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Label(ConfigPart):
    """A choice of a field. A configuration may give just the value as a text instead."""

    value: NonEmptyText
    """The text that is stored and compared."""
    display: NonEmptyText | None = None
    """The text that people read; null: the value."""
    goal: NonEmptyText | None = None
    """The text for the goal sentence; null: `display`, or else the value."""
    help: str | None = None
    """A definition shown with the choice."""

    @property
    def words(self) -> str:
        """Return the text that people read for the choice."""
        return self.display or self.value


def _read_label(value: object) -> object:
    if not isinstance(value, str | dict | Label):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    if isinstance(value, str):
        return {"value": value}
    return value


class Answers(ConfigPart):
    """The two possible answers to a question about the model's answer, in the task's wording."""

    correct: Annotated[NonEmptyText, Field(max_length=100)]
    incorrect: Annotated[NonEmptyText, Field(max_length=100)]


LabelOrText = Annotated[Label, BeforeValidator(_read_label, json_schema_input_type=str | Label)]


class Condition(ConfigPart):
    """A condition. Exactly one of `outcome`, `verdict` and `field` (with `equals`) is set."""

    outcome: Literal["fooled", "not_fooled", "undecided", "no_model"] | None = None
    """The required result of the verdict rule."""
    verdict: Literal["correct", "incorrect", "flagged"] | None = None
    """The required vote of the validator."""
    field: Name | None = None
    """The name of a multiclass field."""
    equals: str | None = None
    """The label that `field` must have."""

    def is_met(
        self,
        values: Mapping[str, Any],
        *,
        outcome: str | None = None,
        verdict: str | None = None,
    ) -> bool:
        """Return whether the condition holds for these values.

        outcome: the verdict rule's result; None while unknown. verdict: the validator's vote; None
        while unknown.
        """
        if self.outcome is not None:
            return self.outcome == outcome
        if self.verdict is not None:
            return self.verdict == verdict
        return self.field is not None and values.get(self.field) == self.equals


def _check_type(name: str) -> str:
    if name not in FIELD_TYPES:
        expected = " or ".join(map(repr, sorted(FIELD_TYPES)))
        raise PydanticKnownError("literal_error", {"expected": expected})
    return name


class Component(ConfigPart):
    """A field of the context, the input, the model's output or the follow-up questions."""

    name: Name
    """The key in files and in the API."""
    type: Annotated[str, AfterValidator(_check_type)]
    """The type of its values."""
    label: str | None = None
    """The text above the field; null: the name."""
    help: str | None = None
    """A sentence below the label."""
    placeholder: str | None = None
    """Grey text in the empty field."""
    required: bool = True
    """Whether it must be filled in (if its condition holds)."""
    min_length: int | None = Field(default=None, ge=0)
    """The minimum number of characters."""
    max_length: int | None = Field(default=None, ge=1)
    """The maximum number of characters."""
    counter: bool = False
    """Whether to show the number of characters."""
    labels: TupleOf[LabelOrText] = ()
    """The choices."""
    reference: Name | None = None
    """The field that this one refers to.

    For span and spans, a context text; for prob, the field with the labels; for candidates, the
    candidates of the context.
    """
    rank: bool = False
    """For candidates: whether to rank all of them, best first, instead of choosing one."""
    tags: TupleOf[NonEmptyText] = ()
    """For spans: the tags that a span can get."""
    colours: dict[NonEmptyText, Colour] = Field(default_factory=dict)
    """The colours of labels or tags, shown beside their words."""
    minimum: float | None = None
    """The smallest allowed number."""
    maximum: float | None = None
    """The largest allowed number."""
    step: float | None = Field(default=None, gt=0)
    """The distance between allowed numbers, starting at `minimum` (or 0)."""
    max_turns: int | None = Field(default=None, ge=1, le=49)
    """For chat: the maximum number of turns that a person writes in one conversation."""
    system: NonEmptyText | None = None
    """For chat: the system message. The server replaces `{secret}` in it with a random word."""
    single: bool = False
    """For prob: whether to ask for one probability instead of one per label."""
    points: bool = False
    """For criteria: whether authors give each criterion points; false: each has one point."""
    max_criteria: int | None = Field(default=None, ge=1, le=MAX_CRITERIA)
    """For criteria: the maximum number of an example's criteria; null: 10."""
    when: Condition | None = None
    """The condition under which the field is asked for; null: always."""
    judges_see: bool | None = None
    """For the input: whether judges read the field.

    null: yes if the model reads the field, or if judges decide whether its value is correct.
    """
    judges_label: NonEmptyText | None = None
    """For the input: the text above the field for judges.

    null: the label, or "Conversation" for a chat.
    """

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.label))  # a mapping, as of colours, has no hash

    @property
    def title(self) -> str:
        """Return the text above the field."""
        return self.label or self.name

    @property
    def third_person_title(self) -> str:
        """Return the heading above another person's text, so that “Your post” becomes “Post”."""
        title = self.judges_label or self.title.removeprefix("Your ")
        return title[:1].upper() + title[1:]

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values of the labels."""
        return tuple(label.value for label in self.labels)

    @property
    def is_media(self) -> bool:
        """Return whether the field holds a picture or a recording."""
        return self.kind.element != "text"

    @property
    def kind(self) -> "FieldType":
        """Return the registered `FieldType` of this field."""
        return FIELD_TYPES[self.type]

    def is_allowed_in(self, section: str) -> bool:
        """Return whether pages, judges and models support the field in this section."""
        return section in self.kind.sections


def map_by_name(components: Iterable[Component]) -> dict[str, Component]:
    """Return the fields by name."""
    return {component.name: component for component in components}


def list_names(components: Iterable[Component]) -> tuple[str, ...]:
    """Return the names of the fields in their order."""
    return tuple(component.name for component in components)


class FormInput(NamedTuple):
    """The form field and widget that ask for a value.

    Classes are given by name, because this module is pure. They are in `annotation.writing.widgets`
    or `django.forms`. field, widget: names of classes. attrs: the widget's HTML attributes.
    """

    field: str = "CharField"
    widget: str = "TextInput"
    attrs: Mapping[str, Any] = {}
    choices: Sequence[tuple[str, str]] = ()
    template: str = ""
    """A template in place of the widget's own. It may read `widget.title`, the field's title."""


class FieldType(ABC):
    """A type of field, with all behaviour that depends on the type, from writing to the release.

    A subclass with a name, `class Text(FieldType, name="text")`, registers the type. Raises
    TypeError if the subclass lacks one of PARTS. Subclasses without a name are shared bases.
    """

    PARTS: ClassVar = (
        *("title", "place", "keys", "sections"),
        *("check", "build_form_input", "display", "describe_value"),
    )

    name: ClassVar[str]
    title: ClassVar[str]
    """The name of the type that owners see when they add a field, untranslated."""
    place: ClassVar[int]
    """The type's position, from 1, in the list that owners choose from."""
    keys: ClassVar[tuple[str, ...]]
    """The configuration keys of this type in addition to COMMON_KEYS."""
    sections: ClassVar[tuple[Section, ...]]
    """The sections in which the type works. It is refused elsewhere."""

    is_text: ClassVar[bool] = False
    """Whether it is free text, which slices, generators and training read."""
    is_read: ClassVar[bool] = True
    """Whether a model reads it in the input. Choices and numbers may be the answer itself."""
    can_be_in_prompt: ClassVar[bool] = False
    """Whether it can be in a prompt of lm-evaluation-harness and Inspect."""
    cell_type: ClassVar[Literal["text", "number", "json"]] = "json"
    """The form of a value in a CSV file and in a plain form."""
    element: ClassVar[Literal["text", "image", "audio"]] = "text"
    """The kind of element that shows a value on a page. `tasks.contexts.media` has the files."""
    hub_category: ClassVar[str] = "other"
    """The Hugging Face Hub's task category for tasks whose answer has this type."""
    own_metrics: ClassVar[tuple[str, ...]] = ()
    """Metrics that can score only answers of this type."""
    missing_message: ClassVar[str] = "Enter {title}"
    """The message for an empty field."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: Any) -> None:
        # Registered when the class is made, so that importing the module is all that a new type
        # needs.
        super().__init_subclass__(**kwargs)
        if not name:
            return
        # Refused at import: a type without a part would fail only when somebody uses that page.
        check_parts(cls, cls.PARTS, "field type", name)
        if unknown := set(cls.keys) - Component.model_fields.keys() | set(cls.sections) - set(
            SECTIONS
        ):
            raise TypeError(f"The field type {name} names what is not there: {sorted(unknown)}.")
        register_member(cls, name, FIELD_TYPES, noun="field type")

    @abstractmethod
    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        """Return error messages for the author of a value; empty if the value is valid."""

    @abstractmethod
    def build_form_input(self, component: Component) -> FormInput | None:
        """Return the form field that asks for a value; None if no form can ask for it."""

    @abstractmethod
    def display(self, component: Component, value: Any) -> str:
        """Return the text that writers and judges read for a value.

        A value from a model may have any type and may be invalid.
        """

    @abstractmethod
    def describe_value(self, component: Component) -> str:
        """Return a description of a released value, for the dataset's card."""

    def find_contradictions(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        """Yield contradictions in the configuration of a field.

        groups: the fields of the context, input and output.
        """
        yield from ()

    def find_unsupported_settings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        """Yield settings that are refused in new configurations but allowed in stored ones.

        groups: the fields of the context, input and output.
        """
        yield from ()

    def is_list(self, component: Component) -> bool:
        """Return whether a value of the field is a list."""
        return False

    def list_options(self, component: Component, context: Mapping[str, Any]) -> Sequence[str]:
        """Return the texts of the context from which people choose."""
        return ()

    def check_shape(self, component: Component, value: Any) -> list[str]:
        """Return the error messages that do not depend on the context."""
        return self.check(component, value, {})

    def get_verdict_rule(self, component: Component) -> str:
        """Return the only verdict rule that can compare the field's values; "" for equality."""
        return ""

    def list_metrics(self, component: Component) -> tuple[str, ...]:
        """Return the subset of `own_metrics` that can score this field's answers."""
        return self.own_metrics

    def parse_typed_value(
        self, component: Component, typed_value: Any, context: Mapping[str, Any]
    ) -> Any:
        """Return the value to store for the content of a form field."""
        return typed_value

    def normalise(self, component: Component, value: Any) -> Any:
        """Return a value from any source in its normal form for storage."""
        return compose_value(value)

    def build_initial_value(self, value: Any) -> Any:
        """Return the initial content of a form field for a value."""
        return value

    def extract_authored_text(self, value: Any) -> str:
        """Return the author's own text for finding near-duplicates; "" if there is none."""
        if self.is_text and value:
            return str(value)
        return ""

    def build_placeholder(self, component: Component) -> Any:
        """Return a placeholder for previews without an example; None to show nothing."""
        return None


def display_plainly(kind: FieldType, component: Component, value: Any) -> str:
    """Return the text that people read for a value of a type whose settings do not affect it."""
    return format_value(value)


def format_value(value: Any) -> str:
    """Return the text that people read for any value.

    >>> format_value([{"text": "red", "start": 0, "end": 3}, 2, 0.0])
    'red, 2, 0'
    """
    if value is None:
        return ""
    # 3.0 is read as 3.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Mapping) and "text" in value:
        return str(value["text"])
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value))
    return str(value)


def join_labels(labels: Sequence[str]) -> str:
    """Return the labels separated by commas, quoted if one of them contains a comma.

    >>> join_labels(["yes", "no"]), join_labels(["yes", "yes, but"])
    ('yes, no', '“yes”, “yes, but”')
    """
    return ", ".join(quote_labels(labels))


def quote_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels; each in quotes if one of them contains a comma."""
    if not any("," in label for label in labels):
        return list(labels)
    return [f"“{label}”" for label in labels]


def find_reference_errors(
    loc: Loc, component: Component, names: Sequence[str], description: str
) -> Iterator[Finding]:
    """Yield a finding if the field's reference is missing or not one of `names`.

    description: a noun phrase for the names, for use in messages.
    """
    fix = f"name {description}: {', '.join(names)}" if names else f"add {description} first"
    if component.reference is None:
        yield Finding(loc, f"a {component.type} needs a reference", fix)
    elif component.reference not in names:
        yield Finding(
            locate_inside(loc, "reference"), f'"{component.reference}" is not {description}', fix
        )


def find_optional_reference(
    loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
) -> Iterator[Finding]:
    """Yield a finding if the reference names a context field that may be empty."""
    for context_field in groups["context"]:
        if context_field.name == component.reference and not context_field.required:
            message = f"{context_field.name} may be empty, so there may be nothing to choose from"
            yield Finding(
                locate_inside(loc, "reference"), message, f"make {context_field.name} required"
            )
