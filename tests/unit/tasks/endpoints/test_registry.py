import pytest

from tasks.targets.endpoints.base import EndpointConfig, EndpointError
from tasks.targets.endpoints.registry import ADAPTERS, build

from .conftest import qa, sentiment

OPTIONS = {
    "open_inference_v2": {"model": "m", "label_output": "label"},
    "openai_chat": {"model": "m"},
}


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_every_adapter_is_built_by_name(adapter: str) -> None:
    endpoint = build(adapter, sentiment("http://127.0.0.1/x", options=OPTIONS.get(adapter, {})))
    assert type(endpoint).__module__ == ADAPTERS[adapter].partition(":")[0]


def test_an_unknown_adapter_names_the_valid_ones() -> None:
    with pytest.raises(EndpointError, match="dynalab, http, open_inference_v2") as caught:
        build("htpp", sentiment("http://127.0.0.1"))
    assert caught.value.permanent


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_an_unknown_option_names_the_valid_ones(adapter: str) -> None:
    options = OPTIONS.get(adapter, {}) | {"modle": "m"}
    with pytest.raises(EndpointError, match="'modle'") as caught:
        build(adapter, sentiment("http://127.0.0.1", options=options))
    assert caught.value.reason == "misconfigured"


@pytest.mark.parametrize(
    ("adapter", "options"),
    [
        ("open_inference_v2", {"label_output": "label"}),
        ("open_inference_v2", {"model": 3, "label_output": "label"}),
        ("open_inference_v2", {"model": "m"}),
        ("open_inference_v2", {"model": "m", "label_output": "label", "rank": 3}),
        ("open_inference_v2", {"model": "m", "prob_output": "p", "label_order": ["positive"]}),
        ("openai_chat", {}),
        ("openai_chat", {"model": "m", "structured": "perhaps"}),
        ("dynalab", {"version": 3}),
        ("open_inference_v2", {"model": "m", "label_output": "l", "label_map": {"a": ["b"]}}),
        ("dynalab", {"version": "2"}),
        ("dynalab", {"field_map": {"text": None}}),
        ("scripted", {"rules": "often"}),
        ("scripted", {"delay": "long"}),
        ("scripted", {"rules": [{"contains": 3, "label": "positive"}]}),
        ("scripted", {"fail": "tired"}),
        ("scripted", {"rules": [{"contians": "x"}]}),
    ],
)
def test_options_are_checked_when_the_endpoint_is_built(
    adapter: str, options: dict[str, object]
) -> None:
    with pytest.raises(EndpointError) as caught:
        build(adapter, sentiment("http://127.0.0.1", options=options))
    assert caught.value.reason == "misconfigured"


def test_a_passage_must_be_among_the_fields() -> None:
    with pytest.raises(EndpointError, match="passage_field"):
        qa("http://127.0.0.1", fields=("question", "context"))
    qa("http://127.0.0.1", fields=("question", "context"), options={"passage_field": "context"})


def test_a_target_needs_fields() -> None:
    with pytest.raises(EndpointError, match="at least one"):
        EndpointConfig(url="http://127.0.0.1", fields=(), output="label")
