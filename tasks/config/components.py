"""The fields of a task, and what a type of field must bring."""

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
from core.text.words import composed_value
from tasks.config.parsing import Finding, Loc, locate_inside

T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]  # YAML has lists; a frozen model holds tuples
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60)]
Share = Annotated[float, Field(ge=0, le=1)]
Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Place = Literal["context", "input", "output", "metadata"]
PLACES: tuple[Place, ...] = get_args(Place)
Colour = Literal["blue", "teal", "orange", "pink", "olive", "sky"]
COLOURS: tuple[Colour, ...] = get_args(Colour)
"""Each is readable on light and on dark pages; the words always stand beside it."""
COMMON_KEYS = ("name", "type", "label", "help", "required", "when", "judges_see", "judges_label")
OUTCOMES = ("fooled", "not_fooled", "undecided", "no_model")
FIELD_TYPES: dict[str, "FieldType"] = {}
"""By name; the modules of `tasks.config.field_types` fill it."""


class ConfigPart(BaseModel):
    """Base class of a configuration's parts: frozen, no unknown keys, no implicit conversion."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Label(ConfigPart):
    """One choice. A plain text is short for a label with this value."""

    value: Words
    """What is stored and compared."""
    display: Words | None = None
    """What people read; without it the value."""
    goal: Words | None = None
    """The words of the goal sentence; without them `display`."""
    help: str | None = None
    """A definition shown with the choice."""

    @property
    def words(self) -> str:
        """Return the text that people read for the choice."""
        return self.display or self.value


def _as_label(value: object) -> object:
    if not isinstance(value, str | dict | Label):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    if isinstance(value, str):
        return {"value": value}
    return value


class Answers(ConfigPart):
    """The two possible answers to a question about a model's answer, in the task's wording."""

    correct: Annotated[Words, Field(max_length=100)]
    incorrect: Annotated[Words, Field(max_length=100)]


LabelOrText = Annotated[Label, BeforeValidator(_as_label, json_schema_input_type=str | Label)]


class When(ConfigPart):
    """A condition. Exactly one of `outcome`, `verdict` and `field` (with `equals`) is set."""

    outcome: Literal["fooled", "not_fooled", "undecided", "no_model"] | None = None
    """What the verdict rule said."""
    verdict: Literal["correct", "incorrect", "flagged"] | None = None
    """What the validator says."""
    field: Name | None = None
    """A multiclass field."""
    equals: str | None = None
    """The label of `field` that makes the condition hold."""

    def holds(
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


def _known_type(name: str) -> str:
    if name not in FIELD_TYPES:
        expected = " or ".join(map(repr, sorted(FIELD_TYPES)))
        raise PydanticKnownError("literal_error", {"expected": expected})
    return name


class Component(ConfigPart):
    """One field of the context, the input, the model's output or the follow-up questions."""

    name: Name
    """The key in files and in the API."""
    type: Annotated[str, AfterValidator(_known_type)]
    """What kind of value it holds."""
    label: str | None = None
    """What people read above the field; without it the name."""
    help: str | None = None
    """A sentence below the label."""
    placeholder: str | None = None
    """Grey text in the empty field."""
    required: bool = True
    """Whether it must be filled (when its condition holds)."""
    min_length: int | None = Field(default=None, ge=0)
    """Fewest characters."""
    max_length: int | None = Field(default=None, ge=1)
    """Most characters."""
    counter: bool = False
    """Whether the number of characters is shown."""
    labels: Many[LabelOrText] = ()
    """The choices."""
    reference: Name | None = None
    """span, spans: a context text; prob: the labels' field; candidates: those of the context."""
    rank: bool = False
    """candidates: all of them, best first, instead of one."""
    tags: Many[Words] = ()
    """spans: the names that a stretch of text can get."""
    colours: dict[Words, Colour] = Field(default_factory=dict)
    """What labels or tags are marked with, beside their words."""
    minimum: float | None = None
    """Smallest number."""
    maximum: float | None = None
    """Largest number."""
    step: float | None = Field(default=None, gt=0)
    """Distance between allowed numbers, from `minimum` (or 0)."""
    max_turns: int | None = Field(default=None, ge=1, le=49)
    """chat: most turns that a person writes in one conversation."""
    system: Words | None = None
    """chat: what the model is told first; `{secret}` becomes a word that the server draws."""
    single: bool = False
    """prob: one probability instead of one a label."""
    when: When | None = None
    """The field is asked only if this holds."""
    judges_see: bool | None = None
    """Of the input: whether judges read it; null: if the model reads it, or it is judged itself."""
    judges_label: Words | None = None
    """Of the input: what judges read above it; null: the label, or for a chat "Conversation"."""

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.label))  # a mapping, as of colours, has no hash

    @property
    def title(self) -> str:
        """Return the label above the field."""
        return self.label or self.name

    @property
    def others_title(self) -> str:
        """Return the heading above another person's text: “Your post” becomes “Post”."""
        words = self.judges_label or self.title.removeprefix("Your ")
        return words[:1].upper() + words[1:]

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

    def works_in(self, place: str) -> bool:
        """Return whether pages, judges and models support the field in this place."""
        return place in self.kind.places


def map_by_name(components: Iterable[Component]) -> dict[str, Component]:
    """Return a mapping from names to fields."""
    return {component.name: component for component in components}


def list_names(components: Iterable[Component]) -> tuple[str, ...]:
    """Return the names of the fields in their order."""
    return tuple(component.name for component in components)


class FormInput(NamedTuple):
    """The form field and widget that ask for a value.

    Classes are given by name, because this module is pure; they are those of
    `annotation.writing.widgets` and of `django.forms`.
    """

    field: str = "CharField"
    widget: str = "TextInput"
    attrs: Mapping[str, Any] = {}
    choices: Sequence[tuple[str, str]] = ()
    template: str = ""
    """Instead of the widget's own; it may read `widget.title`, the component's."""


class FieldType(ABC):
    """A type of field: all behaviour that depends on the type, from writing to the release.

    A subclass with a name, `class Text(FieldType, name="text")`, registers the type. Raises
    TypeError if the subclass lacks one of PARTS. Subclasses without a name are shared bases.
    """

    PARTS: ClassVar = (
        *("title", "place", "keys", "places"),
        *("check", "form_input", "display", "described"),
    )

    name: ClassVar[str]
    title: ClassVar[str]
    """What owners choose when they add a field, untranslated."""
    place: ClassVar[int]
    """Its place among the types that owners choose from, from 1."""
    keys: ClassVar[tuple[str, ...]]
    """Keys of the configuration besides COMMON_KEYS."""
    places: ClassVar[tuple[Place, ...]]
    """Where it works, from writing and judging to the release; elsewhere nobody may store it."""

    is_text: ClassVar[bool] = False
    """Written freely: people may start from it, and slices, generators and training read it."""
    is_read: ClassVar[bool] = True
    """A model reads it in the input. A choice or number may be the very answer, so it does not."""
    in_prompt: ClassVar[bool] = False
    """It can stand in a prompt of lm-evaluation-harness and Inspect."""
    cell: ClassVar[Literal["text", "number", "json"]] = "json"
    """How a CSV file and a plain form hold a value."""
    element: ClassVar[Literal["text", "image", "audio"]] = "text"
    """How a page shows a value; the others are files, which `tasks.contexts.media` stores."""
    category: ClassVar[str] = "other"
    """The Hugging Face Hub's task category where it is the answer."""
    own_metrics: ClassVar[tuple[str, ...]] = ()
    """Metrics that score answers of this type alone."""
    missing: ClassVar[str] = "Enter {title}"
    """What is said of an empty field."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: Any) -> None:
        # Registered when the class is made, so that importing the module is all that a new type
        # needs.
        super().__init_subclass__(**kwargs)
        if not name:
            return
        # Refused at import: a type without a part would fail only when somebody uses that page.
        check_parts(cls, cls.PARTS, "field type", name)
        if unknown := set(cls.keys) - Component.model_fields.keys() | set(cls.places) - set(PLACES):
            raise TypeError(f"The field type {name} names what is not there: {sorted(unknown)}.")
        register_member(cls, name, FIELD_TYPES, noun="field type")

    @abstractmethod
    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        """Return error messages for the author of a value; empty if the value is valid."""

    @abstractmethod
    def form_input(self, component: Component) -> FormInput | None:
        """Return the form field that asks for a value; None if no form can."""

    @abstractmethod
    def display(self, component: Component, value: Any) -> str:
        """Return the text that writers and judges read for a value.

        A model's value may be anything, not only a valid one.
        """

    @abstractmethod
    def described(self, component: Component) -> str:
        """Return a description of a released value, for the dataset's card."""

    def findings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        """Yield contradictions in a configuration. groups: the context, input and output."""
        yield from ()

    def unfinished(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        """Yield settings that are refused in new configurations but allowed in stored ones.

        groups: the context, input and output.
        """
        yield from ()

    def is_list(self, component: Component) -> bool:
        """Return whether a single value is a list."""
        return False

    def offered(self, component: Component, context: Mapping[str, Any]) -> Sequence[str]:
        """Return the texts of the context among which people choose."""
        return ()

    def check_shape(self, component: Component, value: Any) -> list[str]:
        """Return the errors that `check` can find without the context."""
        return self.check(component, value, {})

    def rule(self, component: Component) -> str:
        """Return the only verdict rule that can compare this field's values; "" for equality."""
        return ""

    def metrics(self, component: Component) -> tuple[str, ...]:
        """Return the subset of `own_metrics` that can score this field's answers."""
        return self.own_metrics

    def stored(self, component: Component, typed: Any, context: Mapping[str, Any]) -> Any:
        """Convert a form field's content to a value."""
        return typed

    def kept(self, component: Component, value: Any) -> Any:
        """Normalise a value from any source for storage."""
        return composed_value(value)

    def typed(self, value: Any) -> Any:
        """Return the initial content of a form's field for a value."""
        return value

    def own_words(self, value: Any) -> str:
        """Return the author's own text, which is compared to find near-duplicates."""
        if self.is_text and value:
            return str(value)
        return ""

    def stand_in(self, component: Component) -> Any:
        """Return a placeholder value for previews without an example; None to show nothing."""
        return None


def display_plainly(kind: FieldType, component: Component, value: Any) -> str:
    """Return the displayed text for a type that needs nothing from the configuration."""
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
    """Return labels separated by commas, in quotes if one of them contains a comma.

    >>> join_labels(["yes", "no"]), join_labels(["yes", "yes, but"])
    ('yes, no', '“yes”, “yes, but”')
    """
    return ", ".join(quote_labels(labels))


def quote_labels(labels: Sequence[str]) -> list[str]:
    """Return each label as `join_labels` shows it."""
    if not any("," in label for label in labels):
        return list(labels)
    return [f"“{label}”" for label in labels]


def check_reference(
    loc: Loc, component: Component, names: Sequence[str], description: str
) -> Iterator[Finding]:
    """Yield a finding if the field's reference is missing or not one of `names`.

    description: a noun phrase for the names, used in messages.
    """
    fix = f"name {description}: {', '.join(names)}" if names else f"add {description} first"
    if component.reference is None:
        yield Finding(loc, f"a {component.type} needs a reference", fix)
    elif component.reference not in names:
        yield Finding(
            locate_inside(loc, "reference"), f'"{component.reference}" is not {description}', fix
        )


def check_required_reference(
    loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
) -> Iterator[Finding]:
    """Yield a finding if the reference names a context field that may be empty."""
    for context_field in groups["context"]:
        if context_field.name == component.reference and not context_field.required:
            message = f"{context_field.name} may be empty, so there may be nothing to choose from"
            yield Finding(
                locate_inside(loc, "reference"), message, f"make {context_field.name} required"
            )
