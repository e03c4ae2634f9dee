"""What is learnt from a server's refusals: limits, and how much room a text leaves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.targets.endpoints.completions import build_reported_error
from tasks.targets.endpoints.server_quirks import (
    MIN_REMAINING_TOKENS,
    NO_QUIRKS,
    compute_remaining_tokens,
    learn_quirks,
)


def payload(limit: int, name: str = "max_tokens") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x"}], name: limit}


TOO_LONG = (
    "This model's maximum context length is 512 tokens. Your request has 900 input tokens.",
    "You passed 513 input tokens and requested 0 output tokens. The context length is only 512.",
    "Requested tokens (2065) exceed context window of 2048",
    "request (3021 tokens) exceeds the available context size (2048 tokens), try increasing it",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000",
    "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens and 256",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    "Input is too long for requested model.",
    "The input (3000 tokens) is longer than the model's context length (2048 tokens).",
    "Prompt length (3000) should not exceed max_input_len (2048)",
    "input_ids length 3000 is larger than 2048",
    "Model input cannot be longer than 2048 tokens",
    "Total tokens of image and text exceed max message tokens",
    "Trying to keep the first 4294 tokens. The model is loaded with context length of only 4096.",
    "请求输入长度超过模型最大限制",
)  # fmt: skip
UNFIT = (
    "Server is pinned to '/models/a'; requested 'b'.",
    "No endpoints found for b.",
    "b is not a valid model ID",
    "Could not find model b",
    "'b' is not served by this server",
    "Malformed token",
    "Access denied",
)


@pytest.mark.parametrize("words", TOO_LONG)
def test_a_text_that_is_too_long_is_told_in_many_ways(words: str) -> None:
    assert build_reported_error({"message": words}, 400).reason == "too_long"
    assert compute_remaining_tokens(words, payload(256)) == 0


@pytest.mark.parametrize("words", UNFIT)
def test_a_wrong_name_or_key_is_no_fault_of_the_text(words: str) -> None:
    assert build_reported_error({"message": words}, 400).reason == "misconfigured"


@pytest.mark.parametrize("key", ["code", "type"])
def test_the_name_of_an_error_counts_where_its_words_tell_nothing(key: str) -> None:
    error = {"message": "No.", key: "context_length_exceeded"}
    assert build_reported_error(error, 400).reason == "too_long"
    assert build_reported_error({"message": "No.", key: "other"}, 400).reason == "refused"


@pytest.mark.parametrize(
    ("words", "asked", "room"),
    [
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum "
            "context length is 512 tokens and your request has 37 input tokens (1024 > 512 - 37).",
            1024,
            475,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 8300 "
            "tokens (8044 in the messages, 256 in the completion).",
            256,
            148,
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1900 `inputs` tokens and "
            "256 `max_new_tokens`",
            256,
            148,
        ),
        ("input length and `max_tokens` exceed context limit: 19000 + 2000 > 20000", 2000, 1000),
        ("max_tokens=1024 cannot be greater than max_model_len=512.", 1024, 256),
        ('{"message": "1024 > 512 - 37 of 512", "code": 400}', 1024, 475),
        ("You asked for 256 tokens.", 256, 0),  # of no context
        ("The context is 600 tokens, 100 are read and 256 asked for.", 256, 0),  # it would fit
        ("The context is 512 tokens, 500 are read and 256 asked for.", 256, 0),  # too few are left
        ("The context is 512 tokens.", 0, 0),
    ],
)
def test_the_room_beside_a_text_is_learnt(words: str, asked: int, room: int) -> None:
    assert compute_remaining_tokens(words, payload(asked)) == room
    assert compute_remaining_tokens(words, payload(asked, "max_completion_tokens")) == room


@given(st.integers(64, 10**6), st.data())
def test_what_is_asked_for_next_fits(context: int, data: st.DataObject) -> None:
    prompt = data.draw(st.integers(1, context - MIN_REMAINING_TOKENS))
    asked = data.draw(st.integers(context - prompt + 1, 2 * 10**6))
    words = f"The limit is {context}: {prompt} of the text, {asked} of the answer"
    if asked not in (context, prompt) and asked != context - prompt:
        assert MIN_REMAINING_TOKENS <= compute_remaining_tokens(words, payload(asked)) <= context


@pytest.mark.parametrize(
    "words",
    [
        "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, got 8192.",
        "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
        "max_tokens must be less than or equal to `4096`, the maximum for the `context_window`",
    ],
)
def test_the_longest_answer_is_learnt(words: str) -> None:
    habits = learn_quirks(NO_QUIRKS, payload(8192), words)
    assert habits.adapt_payload(payload(8192))["max_tokens"] == 4096
    assert habits.adapt_payload(payload(100))["max_tokens"] == 100
    assert (
        learn_quirks(habits, habits.adapt_payload(payload(8192)), words) == habits
    )  # it is not learnt again


def test_the_limit_of_something_else_is_none_of_answers() -> None:
    assert (
        learn_quirks(NO_QUIRKS, payload(256), "Invalid 'n': expected a value <= 128").max_tokens
        == 0
    )
