"""The fields of a task: what they are, and whether a value fits them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, StringConstraints
from pydantic_core import PydanticCustomError

T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]  # YAML has lists; a frozen model holds tuples
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60)]
Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
ComponentType = Literal[
    "text", "long_text", "image", "audio", "span", "spans", "multiclass", "multilabel",
    "number", "slider", "prob", "chat", "candidates",
]  # fmt: skip

CHOICES = ("multiclass", "multilabel")
COMMON_KEYS = ("name", "type", "label", "help", "required", "when")
KEYS: Mapping[str, tuple[str, ...]] = {
    "text": ("placeholder", "min_length", "max_length", "counter"),
    "long_text": ("placeholder", "min_length", "max_length", "counter"),
    "image": (),
    "audio": (),
    "span": ("reference", "placeholder", "max_length"),
    "spans": ("reference", "tags"),
    "multiclass": ("labels",),
    "multilabel": ("labels",),
    "number": ("minimum", "maximum", "step"),
    "slider": ("minimum", "maximum", "step"),
    "prob": ("reference", "single"),
    "chat": (),
    "candidates": ("reference",),
}
WHOLE: Mapping[str, tuple[str, ...]] = {
    "context": ("text", "long_text", "number", "multiclass"),
    "input": ("text", "long_text", "span", "multiclass", "multilabel", "number", "slider"),
    "output": ("text", "long_text", "span", "multiclass", "number", "slider", "prob"),
    "metadata": ("text", "long_text", "span", "multiclass", "multilabel", "number", "slider"),
}
"""The types that work, by place: from writing and judging to the release."""
OUTCOMES = ("fooled", "not_fooled", "undecided", "no_model")


class Part(BaseModel):
    """What all parts of a configuration share: frozen, no unknown keys, no silent conversion."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Label(Part):
    """One choice; a plain text stands for its value."""

    value: Words
    """What is stored and compared."""
    display: Words | None = None
    """What people read; without it the value."""
    goal: Words | None = None
    """The words of the goal sentence; without them `display`."""
    help: str | None = None
    """A definition shown beside the choice."""

    @property
    def words(self) -> str:
        """What people read."""
        return self.display or self.value


def _as_label(value: object) -> object:
    if not isinstance(value, str | dict | Label):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    return {"value": value} if isinstance(value, str) else value


LabelOrText = Annotated[Label, BeforeValidator(_as_label, json_schema_input_type=str | Label)]


class When(Part):
    """A condition: exactly one of outcome, verdict, or field with equals."""

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
        """Whether the question is asked, given what is known by then."""
        if self.outcome is not None:
            return self.outcome == outcome
        if self.verdict is not None:
            return self.verdict == verdict
        return self.field is not None and values.get(self.field) == self.equals


class Component(Part):
    """One field of the context, the input, the model's output or the questions afterwards."""

    name: Name
    """The key in files and in the API."""
    type: ComponentType
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
    tags: Many[Words] = ()
    """spans: the names that a stretch of text can get."""
    minimum: float | None = None
    """Smallest number."""
    maximum: float | None = None
    """Largest number."""
    step: float | None = Field(default=None, gt=0)
    """Distance between allowed numbers, from `minimum` (or 0)."""
    single: bool = False
    """prob: one probability instead of one a label."""
    when: When | None = None
    """The field is asked only if this holds."""

    @property
    def title(self) -> str:
        """What people read above the field."""
        return self.label or self.name

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the labels."""
        return tuple(label.value for label in self.labels)
