"""Read, check and write configurations, and check people's inputs against them."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tasks.config.advice import find_advice
from tasks.config.checks import find_contradictions, find_unsupported_fields
from tasks.config.components import FIELD_TYPES, list_names
from tasks.config.messages import list_problems, sort_problems
from tasks.config.parsing import ConfigError, Document, Finding, Problem, dump_yaml, read_yaml
from tasks.config.schema import CUSTOM_PATTERN, ERROR_METRICS, LLM_JUDGE, METRIC_NAMES, TaskConfig
from tasks.config.values import (
    NOT_ASKED_MESSAGE,
    build_missing_message,
    find_value_errors,
    is_empty,
)

_config_adapter: TypeAdapter[TaskConfig] = TypeAdapter(TaskConfig)


ARENA_DEFAULTS: Mapping[str, Any] = {
    "goal": {"text": "Compare two answers"},
    "input": [{"name": "messages", "type": "long_text"}],
    "output": [{"name": "answer", "type": "long_text"}],
    "verdict": {"type": "ask_user"},
    "metrics": {"main": "exact_match"},
}
"""The settings that the configuration of an arena omits. Its models read and answer a chat."""
ARENA_KEYS = (
    "version",
    "kind",
    "name",
    "summary",
    "language",
    "instructions",
    "content_warning",
    "battles",
    "about",
)


def load_config(text: str) -> TaskConfig:
    """Parse and check a configuration in YAML or JSON.

    Raises ConfigError with all problems found.
    """
    return _parse_config(read_yaml(text))


def _parse_config(document: Document) -> TaskConfig:
    data = document.data
    # An arena leaves out what it does not have; the rest of the code reads the same object.
    if isinstance(data, dict) and data.get("kind") == "arena":
        fix = f"use these: {', '.join(ARENA_KEYS)}"
        extra_findings = [Finding((key,), f"an arena has no {key}", fix) for key in data]
        if refused_findings := [
            finding for finding in extra_findings if finding.loc[0] not in ARENA_KEYS
        ]:
            raise ConfigError(sort_problems(map(document.build_problem, refused_findings)))
        data = {**ARENA_DEFAULTS, **data}
    elif isinstance(data, dict) and "battles" in data:
        finding = Finding(
            ("battles",), "only an arena has battles", "remove it, or add kind: arena"
        )
        raise ConfigError([document.build_problem(finding)])
    try:  # as JSON, because only there do pydantic's strict rules take a mapping for a model
        config = _config_adapter.validate_json(json.dumps(data))
    except ValidationError as error:
        raise ConfigError(list_problems(error, document, build_json_schema())) from None
    if contradictions := find_contradictions(config):
        raise ConfigError(sort_problems(map(document.build_problem, contradictions)))
    return config


def dump_config(config: TaskConfig) -> str:
    """Return the configuration as YAML, which `load_config` reads back unchanged."""
    data = _config_adapter.dump_python(config, mode="json", exclude_defaults=True)
    if config.kind == "arena":
        data = {key: value for key, value in data.items() if key not in ARENA_DEFAULTS}
    return dump_yaml(data)


def check_config(text: str) -> tuple[TaskConfig | None, list[Problem]]:
    """Return the configuration, or None if it cannot be stored, and all errors and warnings."""
    try:
        document = read_yaml(text)
        config = _parse_config(document)
    except ConfigError as error:
        return None, error.problems
    errors = [document.build_problem(finding) for finding in find_unsupported_fields(config)]
    warnings = [document.build_problem(finding, "warning") for finding in find_advice(config)]
    if errors:
        return None, errors + warnings
    return config, warnings


def validate_inputs(
    config: TaskConfig, context: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the errors in an annotator's inputs: messages by field name; empty if there are none.

    Required fields must be filled in if they are asked for, and no other fields are allowed. Types,
    lengths, labels and spans in `context` are checked.
    """
    errors: dict[str, list[str]] = {}
    for component in config.input:
        value = inputs.get(component.name)
        is_asked = component.when is None or component.when.is_met(inputs)
        # An empty field is wrong only if it is asked and required.
        if is_empty(value):
            messages = []
            if is_asked and component.required:
                messages = [build_missing_message(component)]
        else:
            messages = (
                find_value_errors(component, value, context) if is_asked else [NOT_ASKED_MESSAGE]
            )
        if messages:
            errors[component.name] = messages
    for name in inputs.keys() - set(list_names(config.input)):
        errors[name] = [f"This task has no field “{name}”; leave it out"]
    return errors


@cache
def build_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of configurations, for text editors."""
    schema = _config_adapter.json_schema()
    component = schema["$defs"]["Component"]
    component["properties"]["type"]["enum"] = list(FIELD_TYPES)
    metrics = schema["$defs"]["Metrics"]["properties"]
    metrics["main"]["enum"] = [name for name in METRIC_NAMES if name not in ERROR_METRICS]
    name_schema = {"enum": list(METRIC_NAMES)}
    name_schema["enum"].append(LLM_JUDGE)
    metrics["also"]["items"] = {
        "anyOf": [name_schema, {"type": "string", "pattern": f"^{CUSTOM_PATTERN.pattern}$"}]
    }
    schema["$defs"]["Output"] = {
        **component,
        "required": ["name"],
        "description": "An output; its type is the input's or context's where it is not given.",
    }
    output = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Output"}]}
    schema["properties"]["output"]["items"] = output
    required_keys = []
    for key in schema["required"]:
        if key in ARENA_DEFAULTS:
            required_keys.append(key)
    schema["required"] = [key for key in schema["required"] if key not in ARENA_DEFAULTS]
    arena_condition = {"properties": {"kind": {"const": "arena"}}, "required": ["kind"]}
    # Editors that read the schema then ask for the right keys of each kind.
    schema |= {"if": arena_condition, "then": {}, "else": {"required": required_keys}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
