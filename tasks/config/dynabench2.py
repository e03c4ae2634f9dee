"""Convert configurations of Dynabench 2.0 to 1.0, which `dynabench1` converts further.

The format is in docs/examples of mlcommons/dynabench. 2.0 describes models' answers and metrics as
1.0 does. But for what people read, write and choose, it names parts of the page (interfaces).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from tasks.config.messages import list_problems
from tasks.config.parsing import ConfigError, Document

CONVERTED_KEYS = ("goal", "context", "user_input", "model_input", "model_output", "response_fields")
"""Keys of 2.0 that have another name in 1.0 or follow from the fields."""
Name = Annotated[str, Field(min_length=1, alias="field_name_for_the_model")]


class _Options(BaseModel):
    """An interface of 2.0 that asks for one of several labels, its `options`."""

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


class _TextName(BaseModel):
    context: str


class _PlainText(BaseModel):
    type: Literal["plain-text"]
    names: _TextName = Field(alias="field_names_for_the_model")


class _TextAndAnswerNames(_TextName):
    answer: str


class _SelectableText(BaseModel):
    """An interface of 2.0 that shows a text in which people mark the answer."""

    type: Literal["selectable-text"]
    names: _TextAndAnswerNames = Field(alias="field_names_for_the_model")


class _ModelOutput(BaseModel):
    model_prediction_label: str


class _Task(BaseModel):
    goal: Annotated[_Options | _GoalText, Field(discriminator="type")] | None = None
    context: Annotated[_PlainText | _SelectableText, Field(discriminator="type")] | None = None
    user_input: list[Annotated[_TextInput | _Options, Field(discriminator="type")]]
    model_output: _ModelOutput | None = None


def is_dynabench2_config(mapping: Mapping[str, Any]) -> bool:
    """Return whether a configuration is for 2.0, which has `user_input` instead of `input`."""
    return "user_input" in mapping and "input" not in mapping


def convert_to_version_1(document: Document) -> dict[str, Any]:
    """Return a configuration of 2.0 in the format of 1.0, for `dynabench1.convert_config`.

    The field with people's answer gets the name of the model's answer, so that they are compared.
    Raises ConfigError if an interface has no equivalent here.
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
