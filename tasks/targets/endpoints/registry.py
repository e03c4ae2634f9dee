"""The adapters by name, imported on first use."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from tasks.targets.endpoints.base import Endpoint, EndpointConfig, misconfigured

ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "http": "tasks.targets.endpoints.http:HttpEndpoint",
        "open_inference_v2": "tasks.targets.endpoints.open_inference:OpenInferenceEndpoint",
        "openai_chat": "tasks.targets.endpoints.openai_chat:OpenAIChatEndpoint",
        "dynalab": "tasks.targets.endpoints.dynalab:DynalabEndpoint",
        "scripted": "tasks.targets.endpoints.scripted:ScriptedEndpoint",
    }
)


def build(adapter: str, config: EndpointConfig) -> Endpoint:
    """The endpoint of a configuration; raises EndpointError(misconfigured) saying what to mend."""
    if adapter not in ADAPTERS:
        raise misconfigured(f"Unknown adapter {adapter!r}; valid: {', '.join(sorted(ADAPTERS))}.")
    module, name = ADAPTERS[adapter].split(":")
    endpoint: Endpoint = getattr(import_module(module), name)(config)
    return endpoint
