"""Streams in OpenAI's words: what is told with each piece is told once."""

import time
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from serving.generation.conversation import Piece, ReportedToken, create_conversation
from serving.generation.replies import Reply, count_usage
from serving.generation.sampling import Sampling

TOLD = [
    ReportedToken(0, -0.5, [(0, -0.5)]),
    ReportedToken(1, -0.25, [(1, -0.25)]),
    ReportedToken(2, -1.0, [(0, -0.1)]),
]
PIECES = [Piece("aab", None, TOLD[:2], 2), Piece("", "stop", TOLD[2:], 3)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(WordLevel({"aa": 0, "b": 1, "</s>": 2}, unk_token="b"))


def chunks(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    return [orjson.loads(line.removeprefix(b"data: ")) for line in lines]


def test_a_stream_tells_the_logprobs_of_the_whole_answer(tokenizer: Tokenizer) -> None:
    reply = Reply("chat.completion", "m", "digest", tokenizer)
    told = chunks(line for piece in PIECES for line in reply.build_piece_events(piece))
    logprobs = [one["choices"][0]["logprobs"]["content"] for one in told]
    assert [[one["token"] for one in some] for some in logprobs] == [["aa", "b"], ["</s>"]]
    assert [one["choices"][0]["finish_reason"] for one in told] == [None, "stop"]
    assert "usage" not in told[0]


def test_offsets_of_a_text_go_on_from_piece_to_piece(tokenizer: Tokenizer) -> None:
    reply = Reply("text_completion", "m", "digest", tokenizer)
    told = chunks(line for piece in PIECES for line in reply.build_piece_events(piece))
    assert [one["choices"][0]["logprobs"]["text_offset"] for one in told] == [[0, 2], [3]]


def test_a_last_piece_with_text_tells_its_tokens_once(tokenizer: Tokenizer) -> None:
    reply = Reply("chat.completion", "m", "digest", tokenizer)
    told = chunks(reply.build_piece_events(Piece("aab", "length", TOLD[:2], 2)))
    assert [bool(one["choices"][0]["logprobs"]) for one in told] == [True, False]


def test_each_piece_may_tell_the_tokens_so_far(tokenizer: Tokenizer) -> None:
    one = create_conversation(
        [0, 1], Sampling(9), tokenizer, frozenset([2]), on_piece=print, deadline=time.monotonic()
    )
    reply = Reply("chat.completion", "m", "digest", tokenizer)
    (first,) = chunks(
        reply.build_piece_events(PIECES[0], count_usage(one, PIECES[0].answer_token_count))
    )
    assert {**first["usage"], "prompt_tokens_details": None} == {
        "prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4,
        "prompt_tokens_details": None,
    }  # fmt: skip
