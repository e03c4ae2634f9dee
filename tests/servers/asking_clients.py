"""Ask a model server with each client that is installed, as its documentation says.

Run by test_clients.py in an environment of the clients: `python asking_clients.py URL MODEL`. It
prints a JSON object: for each client and way the label that came, or the error.
"""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal

URL, MODEL = sys.argv[1:]
os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": URL, "LITELLM_LOG": "ERROR"}
QUESTION = 'Is "a great film" positive or negative?'
MESSAGES = [{"role": "user", "content": QUESTION}]
WAYS: dict[str, Callable[[], Any]] = {}

from pydantic import BaseModel, Field  # noqa: E402


class Label(Enum):
    """A choice as an enumeration."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Answer(BaseModel):
    """A choice as literals."""

    label: Literal["positive", "negative"]


class Described(BaseModel):
    """A choice by reference, with a description."""

    label: Label = Field(description="what it is")


class Free(BaseModel):
    """What no small model can be held to."""

    word: str


def way(module: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Ask in this way if the client's module is installed."""

    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        if importlib.util.find_spec(module):
            WAYS[f"{module} {function.__name__}"] = function
        return function

    return add


def sdk() -> Any:
    import openai

    return openai.OpenAI(max_retries=0)


def text_of(chunks: Iterable[Any]) -> str:
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    return "".join(choice.delta.content or "" for choice in choices)


def plain(**how: Any) -> Any:
    return sdk().chat.completions.create(
        **{"model": MODEL, "messages": MESSAGES, "max_tokens": 6} | how
    )


@way("openai")
def whole() -> Any:
    return plain().choices[0].message.content


@way("openai")
def streamed() -> Any:
    return text_of(plain(stream=True, stream_options={"include_usage": True}))


@way("openai")
def streamed_logprobs() -> Any:
    chunks = plain(stream=True, logprobs=True, top_logprobs=2)
    return text_of(chunk for chunk in chunks if chunk.choices[0].logprobs)


@way("openai")
def everything_off() -> Any:
    names = (
        "audio frequency_penalty function_call functions logit_bias logprobs metadata modalities n "
        "parallel_tool_calls prediction presence_penalty reasoning_effort response_format seed "
        "service_tier stop store temperature tool_choice tools top_logprobs top_p user verbosity "
        "web_search_options"
    )
    return plain(**dict.fromkeys(names.split())).choices[0].message.content


@way("openai")
def defaults() -> Any:
    how = {"n": 1, "tool_choice": "none", "metadata": {"a": "b"}, "service_tier": "auto"}
    return plain(**how, extra_body={"top_k": -1, "min_p": 0}).choices[0].message.content


@way("openai")
def answered_before() -> Any:
    turns = [*MESSAGES, plain().choices[0].message, {"role": "user", "content": "And now?"}]
    return plain(messages=turns).choices[0].message.content


@way("openai")
def parsed() -> Any:
    return plain_parsed(Answer)


@way("openai")
def parsed_described() -> Any:
    return plain_parsed(Described)


@way("openai")
def parsed_free() -> Any:
    return plain_parsed(Free)


def plain_parsed(kind: type[BaseModel]) -> Any:
    asked = {"model": MODEL, "messages": MESSAGES, "response_format": kind}
    return sdk().chat.completions.parse(**asked).choices[0].message.parsed


@way("openai")
def asynchronous() -> Any:
    import openai

    async def ask() -> Any:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            asked = {"model": MODEL, "messages": MESSAGES, "max_tokens": 4}
            return (await client.chat.completions.create(**asked)).choices[0].message.content

    return asyncio.run(ask())


@way("openai")
def completed() -> Any:
    return sdk().completions.create(model=MODEL, prompt="The sky is", max_tokens=4).choices[0].text


@way("openai")
def listed() -> Any:
    return [one.id for one in sdk().models.list()]


@way("openai")
def responses() -> Any:
    return sdk().responses.create(model=MODEL, input=QUESTION).output_text


@way("openai")
def json_object() -> Any:
    return plain(response_format={"type": "json_object"})


@way("openai")
def called() -> Any:
    function = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    answer = plain(tools=[{"type": "function", "function": function}])
    # The model may choose, and ours calls nothing.
    return answer.choices[0].message.content


@way("litellm")
def openai_model() -> Any:
    return by_litellm("openai", max_tokens=6, seed=1, user="somebody").content


@way("litellm")
def openai_schema() -> Any:
    return by_litellm("openai", response_format=Answer).content


@way("litellm")
def vllm_schema() -> Any:
    return by_litellm("hosted_vllm", response_format=Described).content


def by_litellm(provider: str, **how: Any) -> Any:
    import litellm

    answer = litellm.completion(
        f"{provider}/{MODEL}", MESSAGES, api_base=URL, api_key="none", num_retries=0, **how
    )
    return answer.choices[0].message


def chain(kind: type[BaseModel], method: str | None) -> Any:
    from langchain_openai import ChatOpenAI

    how = {"method": method} if method else {}
    model = ChatOpenAI(model=MODEL, max_retries=0, max_tokens=20)
    return model.with_structured_output(kind, **how)


@way("langchain_openai")
def default() -> Any:
    return chain(Answer, None).invoke(QUESTION)


@way("langchain_openai")
def called_function() -> Any:
    return chain(Described, "function_calling").invoke(QUESTION)


@way("langchain_openai")
def streamed_schema() -> Any:
    return [*chain(Answer, "json_schema").stream(QUESTION)][-1]


@way("langchain_openai")
def json_mode() -> Any:
    return chain(Answer, "json_mode").invoke(QUESTION + " JSON")


def instructed(mode: str, kind: type[BaseModel]) -> Any:
    import instructor

    client = instructor.from_openai(sdk(), mode=instructor.Mode[mode])
    return client.chat.completions.create(
        model=MODEL, messages=MESSAGES, response_model=kind, max_retries=0
    )


@way("instructor")
def tools() -> Any:
    return instructed("TOOLS", Answer)


@way("instructor")
def schema() -> Any:
    return instructed("JSON_SCHEMA", Described)


def agent(form: str, kind: type[BaseModel]) -> Any:
    import pydantic_ai
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="none"))
    output = getattr(pydantic_ai, form)(kind)
    return pydantic_ai.Agent(model, output_type=output, retries=0)


@way("pydantic_ai")
def tool_output() -> Any:
    return agent("ToolOutput", Answer).run_sync(QUESTION).output


@way("pydantic_ai")
def native_output() -> Any:
    return agent("NativeOutput", Described).run_sync(QUESTION).output


@way("pydantic_ai")
def streamed_output() -> Any:
    async def ask() -> Any:
        async with agent("ToolOutput", Answer).run_stream(QUESTION) as run:
            return await run.get_output()

    return asyncio.run(ask())


def run_agent(kind: type[BaseModel], *, is_strict: bool) -> Any:
    import agents
    import openai

    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(max_retries=0)
    made = agents.Agent(
        name="judge",
        model=agents.OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        output_type=agents.AgentOutputSchema(kind, strict_json_schema=is_strict),
    )
    return agents.Runner.run_sync(made, QUESTION).final_output


@way("agents")
def agent_responses() -> Any:
    import agents

    # The newer protocol, which the SDK speaks unless told otherwise.
    agents.set_tracing_disabled(True)
    settings = agents.ModelSettings(max_tokens=16)
    made = agents.Agent(name="judge", model=MODEL, model_settings=settings)
    return agents.Runner.run_sync(made, QUESTION).final_output


@way("langchain_openai")
def langchain_responses() -> Any:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, use_responses_api=True, max_tokens=16)
    (part,) = model.invoke(QUESTION).content
    return part["text"]


@way("pydantic_ai")
def pydantic_responses() -> Any:
    import pydantic_ai
    from pydantic_ai.models.openai import OpenAIResponsesModel

    made = pydantic_ai.Agent(OpenAIResponsesModel(MODEL), model_settings={"max_tokens": 16})
    return made.run_sync(QUESTION).output


@way("agents")
def strict() -> Any:
    return run_agent(Described, is_strict=True)


@way("agents")
def not_strict() -> Any:
    return run_agent(Answer, is_strict=False)


def ask_llm(*arguments: str) -> str:
    folder = Path(mkdtemp())
    model = (
        f"- model_id: served\n  model_name: {MODEL}\n  api_base: {URL}\n  supports_schema: true\n"
    )
    (folder / "extra-openai-models.yaml").write_text(model)
    command = [Path(sys.executable).with_name("llm"), "-m", "served", *arguments]
    environment = os.environ | {"LLM_USER_PATH": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@way("llm")
def prompted() -> Any:
    return ask_llm(QUESTION, "-o", "max_tokens", "6", "-o", "temperature", "0")


@way("llm")
def with_schema() -> Any:
    return ask_llm(QUESTION, "--schema", json.dumps(Described.model_json_schema()))


def said(function: Callable[[], Any]) -> str:
    """What came: the label or the text; of an error what OpenAI's form says."""
    try:
        value = function()
    except Exception as error:
        body = getattr(error, "body", None) or {}
        status = getattr(error, "status_code", type(error).__name__)
        return f"refused {status} {body.get('param')}"
    label = getattr(value, "label", value)
    return str(getattr(label, "value", label))


if __name__ == "__main__":
    print(json.dumps({name: said(function) for name, function in WAYS.items()}))
