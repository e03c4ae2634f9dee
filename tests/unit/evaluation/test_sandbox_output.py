"""Frames and lines, however the stream was cut on its way."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.contract import InvalidOutput
from evaluation.isolation.sandbox.output import STDERR, STDOUT, FrameParser, LineSplitter

cuts = st.lists(st.integers(1, 30), max_size=40)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [*parts, data]


def test_a_frame_may_come_in_pieces():
    wire = struct.pack(">BxxxL", STDERR, 5) + b"hello"
    frames = FrameParser()
    found = [part for piece in (wire[:3], wire[3:10], wire[10:]) for part in frames.feed(piece)]
    assert found == [(STDERR, b"he"), (STDERR, b"llo")]


def test_the_last_line_may_lack_its_end():
    lines = LineSplitter(9)
    assert [*lines.feed(b"one\ntw"), *lines.feed(b"o"), *lines.flush()] == [b"one", b"two"]
    assert list(lines.flush()) == []


@given(st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40))), cuts)
def test_frames_survive_any_cut(frames, sizes):
    wire = b"".join(struct.pack(">BxxxL", stream, len(data)) + data for stream, data in frames)
    reader, found = FrameParser(), {STDOUT: b"", STDERR: b""}
    for part in cut(wire, sizes):
        for stream, data in reader.feed(part):
            found[stream] += data
    for stream in found:
        assert found[stream] == b"".join(data for which, data in frames if which == stream)


@given(st.binary(max_size=300), cuts)
def test_lines_survive_any_cut(data, sizes):
    lines = LineSplitter(400)
    found = [line for part in cut(data, sizes) for line in lines.feed(part)]
    found += lines.flush()
    assert b"\n".join(found) == data.removesuffix(b"\n")
    unfinished = bool(data) and not data.endswith(b"\n")
    assert lines.count == len(found) == data.count(b"\n") + unfinished


def test_a_long_line_is_named_before_it_ends():
    lines = LineSplitter(10)
    assert list(lines.feed(b"short\n12345")) == [b"short"]
    with pytest.raises(InvalidOutput, match=r"^Line 2: .* 10 bytes"):
        list(lines.feed(b"678901"))


def test_a_long_line_is_named_when_it_came_at_once():
    with pytest.raises(InvalidOutput, match="Line 1"):
        list(LineSplitter(10).feed(b"12345678901\n"))
