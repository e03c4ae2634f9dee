from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointConfig, EndpointError
from tasks.targets.endpoints.registry import ADAPTERS, build_endpoint, parse_option
from tests.support.adapter_options import GIVEN

from .conftest import qa, sentiment

OPTIONS = {
    "open_inference_v2": {"model": "m", "label_output": "label"},
    "openai_chat": {"model": "m"},
}


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_every_adapter_is_built_by_name(adapter: str) -> None:
    endpoint = build_endpoint(
        adapter, sentiment("http://127.0.0.1/x", options=OPTIONS.get(adapter, {}))
    )
    assert type(endpoint).__module__ == ADAPTERS[adapter].partition(":")[0]


def test_an_unknown_adapter_names_the_valid_ones() -> None:
    with pytest.raises(EndpointError, match="dynalab, http, open_inference_v2") as caught:
        build_endpoint("htpp", sentiment("http://127.0.0.1"))
    assert caught.value.is_permanent


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_an_unknown_option_names_the_valid_ones(adapter: str) -> None:
    options = OPTIONS.get(adapter, {}) | {"modle": "m"}
    with pytest.raises(EndpointError, match="'modle'") as caught:
        build_endpoint(adapter, sentiment("http://127.0.0.1", options=options))
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
        build_endpoint(adapter, sentiment("http://127.0.0.1", options=options))
    assert caught.value.reason == "misconfigured"


def test_a_passage_must_be_among_the_fields() -> None:
    with pytest.raises(EndpointError, match="passage_field"):
        qa("http://127.0.0.1", fields=("question", "context"))
    qa("http://127.0.0.1", fields=("question", "context"), options={"passage_field": "context"})


def test_a_target_needs_fields() -> None:
    with pytest.raises(EndpointError):
        EndpointConfig(url="http://127.0.0.1", fields=(), output="label")


def known_options(adapter: str) -> set[str]:
    return set(
        type(
            build_endpoint(adapter, sentiment("http://127.0.0.1", options=OPTIONS.get(adapter, {})))
        ).OPTIONS
    )


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_every_option_can_be_given_as_a_text(adapter: str) -> None:
    assert GIVEN[adapter].keys() == known_options(adapter)
    read = {name: parse_option(adapter, name, text) for name, (text, _) in GIVEN[adapter].items()}
    assert read == {name: value for name, (_, value) in GIVEN[adapter].items()}
    for name, value in read.items():
        if adapter == "scripted" and name == "fail":
            continue
        build_endpoint(
            adapter, sentiment("http://127.0.0.1", options=OPTIONS.get(adapter, {}) | {name: value})
        )


@pytest.mark.parametrize(
    ("adapter", "name", "value"),
    [
        ("openai_chat", "max_tokens", True),
        ("openai_chat", "max_tokens", "60"),
        ("openai_chat", "logprobs", 1),
        ("dynalab", "version", True),
    ],
)
def test_the_kind_of_an_option_is_checked(adapter: str, name: str, value: Any) -> None:
    options = OPTIONS.get(adapter, {}) | {name: value}
    with pytest.raises(EndpointError, match=name):
        build_endpoint(adapter, sentiment("http://127.0.0.1", options=options))


def test_an_option_that_is_no_json_says_what_it_must_be() -> None:
    with pytest.raises(EndpointError, match="max_tokens"):
        parse_option("openai_chat", "max_tokens", "sixty")
    assert parse_option("openai_chat", "modle", "x") == "x"  # its name is refused later


@pytest.mark.parametrize(
    ("adapter", "path"),
    [
        ("openai_chat", "/v1/chat/completions"),
        ("openai_chat", "/v1/chat/completions/"),
        ("openai_chat", "/v1"),
        ("openai_chat", "/v1/"),
        ("openai_chat", "/v1/models"),
        ("openai_chat", "/v1/completions"),
        ("http", "/models/m/predict"),
        ("http", "/models/m/"),
        ("open_inference_v2", "/v2/models/m"),
        ("open_inference_v2", "/v2/models/m/infer"),
        ("open_inference_v2", "/v2"),
        ("open_inference_v2", ""),
    ],
)
def test_complete_addresses_are_understood(adapter: str, path: str) -> None:
    config = sentiment(f"http://127.0.0.1/base{path}", options=OPTIONS.get(adapter, {}))
    bases = {"openai_chat": "/base/v1", "open_inference_v2": "/base", "http": "/base/models/m"}
    assert build_endpoint(adapter, config)._url.path == bases[adapter]  # type: ignore[attr-defined]
