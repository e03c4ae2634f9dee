"""Streams of chat models, however their bytes are cut and their lines end."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.streams import StreamAssembler, parse_completion

MARK = b"\xef\xbb\xbf"
TEXTS = st.lists(st.text(alphabet="aé漢🙂 \n\u2028", min_size=1), min_size=1, max_size=4)
OTHERS = st.sampled_from(
    [b": keepalive", b"event: message", b"id: 3", b"data:", b"data: {}", b"data: : PROCESSING"]
)


def chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode()


def text_of(completion: dict[str, object]) -> str:
    return completion["choices"][0]["message"]["content"]  # type: ignore[index]


@given(
    texts=TEXTS, end=st.sampled_from([b"\n", b"\r\n", b"\r"]), mark=st.sampled_from([b"", MARK]),
    other=OTHERS, is_open=st.booleans(), size=st.integers(1, 40), data=st.data(),
)  # fmt: skip
def test_a_stream_is_the_same_however_it_is_written(texts, end, mark, other, is_open, size, data):
    """`is_open`: nothing ends the last line, in which the reason is told."""
    lines = [chunk(text) for text in texts[:-1]] + [chunk(texts[-1], "stop")]
    lines.insert(data.draw(st.integers(0, len(lines))), other)
    body = mark + (end * 2).join(lines) + (b"" if is_open else end * 2 + b"data: [DONE]" + end)
    heard: list[str] = []
    deltas = StreamAssembler(heard.append)
    for start in range(0, len(body), size):
        deltas.feed(body[start : start + size])
    assert text_of(deltas.answer) == "".join(texts)
    assert text_of(parse_completion(body)) == "".join(texts)


@pytest.mark.parametrize("cut", [5, 20, 45])
def test_half_an_event_at_the_end_is_broken_off(cut):
    deltas = StreamAssembler(lambda text: None)
    deltas.feed(chunk("Nine") + b"\n\n" + chunk(".", "stop")[:cut])
    with pytest.raises(EndpointError) as broken:
        _ = deltas.answer
    assert broken.value.reason == "down"


def test_an_error_in_a_last_line_without_end_is_told():
    deltas = StreamAssembler(lambda text: None)
    deltas.feed(b'data: {"error": {"message": "Rate limit", "code": 429}}')
    with pytest.raises(EndpointError) as refused:
        _ = deltas.answer
    assert refused.value.reason == "busy"


WHOLE = {"choices": [{"index": 0, "message": {"content": "Nine."}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("before", [b"", MARK, b"\n\n\n"])
@pytest.mark.parametrize("after", [b"", b"\n\ndata: [DONE]\n\n"])
def test_a_whole_body_may_have_a_mark_and_the_end_of_a_stream(before, after):
    assert parse_completion(before + json.dumps(WHOLE, indent=1).encode() + after) == WHOLE


@pytest.mark.parametrize("body", [b"", b"data", b"{}{}", b"<html>", b'{"a": 1}\n{"b": 2}'])
def test_what_is_neither_is_no_answer(body):
    with pytest.raises(EndpointError) as refused:
        parse_completion(body)
    assert refused.value.reason == "rubbish"
