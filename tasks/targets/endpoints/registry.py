"""The adapters by name, imported on first use."""

import json
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tasks.targets.endpoints.base import (
    COMMON_OPTIONS,
    Endpoint,
    EndpointConfig,
    build_misconfigured_error,
    describe_option_type,
)

ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "http": "tasks.targets.endpoints.http:HttpEndpoint",
        "open_inference_v2": "tasks.targets.endpoints.open_inference:OpenInferenceEndpoint",
        "openai_chat": "tasks.targets.endpoints.openai_chat:OpenAIChatEndpoint",
        "dynalab": "tasks.targets.endpoints.dynalab:DynalabEndpoint",
        "scripted": "tasks.targets.endpoints.scripted:ScriptedEndpoint",
    }
)


def parse_option(adapter: str, name: str, text: str) -> Any:
    """Return an option's value from the text of a command line or a form field.

    The value stays a text if the adapter expects one; otherwise it is JSON. Raises
    EndpointError with the reason `misconfigured`.
    """
    kind = {**COMMON_OPTIONS, **_load_class(adapter).OPTIONS}.get(name, str)
    if kind is str:
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise build_misconfigured_error(
            f"The option {name!r} must be {describe_option_type(kind)}, not {text!r}."
        ) from None


def build_endpoint(adapter: str, config: EndpointConfig) -> Endpoint:
    """Return the endpoint for a configuration.

    Raises EndpointError with the reason `misconfigured` and a message that says what to correct.
    """
    endpoint: Endpoint = _load_class(adapter)(config)
    return endpoint


def _load_class(adapter: str) -> Any:
    if adapter not in ADAPTERS:
        raise build_misconfigured_error(
            f"Unknown adapter {adapter!r}; valid: {', '.join(sorted(ADAPTERS))}."
        )
    # Imported here, so that a process loads only the adapters that it uses.
    module, name = ADAPTERS[adapter].split(":")
    return getattr(import_module(module), name)
