"""Configurations of Dynabench 2.0 in the words of 1.0, which `dynabench1` converts.

Layout: docs/examples of mlcommons/dynabench. 2.0 says as 1.0 does what models answer and how that
is scored; what people read, write and choose it names by interfaces.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from tasks.config.messages import list_problems
from tasks.config.parsing import ConfigError, Document

CONVERTED_KEYS = ("goal", "context", "user_input", "model_input", "model_output", "response_fields")
"""What has other words in 1.0, and what follows from the fields."""
Name = Annotated[str, Field(min_length=1, alias="field_name_for_the_model")]


class _Options(BaseModel):
    """A choice among labels, the `options`."""

    type: Literal["multioptions"]
    name: Name
    options: list[Any]


class _GoalText(BaseModel):
    type: Literal["plain-text"]
    text: str = ""


class _TextInput(BaseModel):
    type: Literal["text"]
    name: Name
    placeholder: str = ""


class _Text(BaseModel):
    context: str


class _PlainText(BaseModel):
    type: Literal["plain-text"]
    names: _Text = Field(alias="field_names_for_the_model")


class _TextAndAnswer(_Text):
    answer: str


class _SelectableText(BaseModel):
    """A text in which people mark the answer."""

    type: Literal["selectable-text"]
    names: _TextAndAnswer = Field(alias="field_names_for_the_model")


class _ModelOutput(BaseModel):
    model_prediction_label: str


class _Task(BaseModel):
    goal: Annotated[_Options | _GoalText, Field(discriminator="type")] | None = None
    context: Annotated[_PlainText | _SelectableText, Field(discriminator="type")] | None = None
    user_input: list[Annotated[_TextInput | _Options, Field(discriminator="type")]]
    model_output: _ModelOutput | None = None


def is_of_dynabench2(mapping: Mapping[str, Any]) -> bool:
    """Return whether a configuration is for 2.0, which has `user_input` instead of `input`."""
    return "user_input" in mapping and "input" not in mapping


def convert_to_1(document: Document) -> dict[str, Any]:
    """Convert a configuration of 2.0 to one of 1.0, for `dynabench1.convert`.

    People's answer and the model's answer get the same name, the model's.
    Raises ConfigError if an interface has no counterpart here.
    """
    try:
        task = _Task.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(list_problems(error, document, _Task.model_json_schema())) from None
    converted_values = {}
    for key, value in document.data.items():
        if key not in CONVERTED_KEYS:
            converted_values[key] = value
    answer = ""
    if task.model_output:
        answer = task.model_output.model_prediction_label
    inputs, texts = [_convert_input(interface) for interface in task.user_input], []
    if isinstance(task.goal, _GoalText):
        converted_values["goal_message"] = task.goal.text or converted_values.get("goal_message")
    elif task.goal:
        inputs.append({**_convert_input(task.goal), "as_goal_message": True})
    if task.context:
        texts = [{"name": task.context.names.context, "type": "string"}]
    if isinstance(task.context, _SelectableText):
        names = task.context.names
        inputs.append({
            "name": names.answer,
            "type": "context_string_selection",
            "reference_name": names.context,
        })  # fmt: skip
    # The label that people choose, or the span that they mark, gets the name of the model's answer,
    # so that the two are compared.
    if answer and len(inputs) > len(task.user_input):
        inputs[-1]["name"] = answer
    return {**converted_values, "context": texts, "input": inputs}


def _convert_input(interface: _TextInput | _Options) -> dict[str, Any]:
    if isinstance(interface, _Options):
        return {"name": interface.name, "type": "multiclass", "labels": interface.options}
    return {"name": interface.name, "type": "string", "placeholder": interface.placeholder}
