"""Where words stand in a passage, over line breaks and in every script."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.words import compose
from tasks.config.components import Component
from tasks.config.field_types.spans import format_marks
from tasks.config.passage_spans import LINE_BREAK_SIGN, find_span_at, find_spans, join_lines

PASSAGE = (
    "💩 He left for\nNorth\u2028Vale,\x85for North, é 👩\u200d🚒 "
    + "עד\n\nسوق\u00a0 for\nNorth. x̄ a ⏎ b"
)
ALPHABET = "ab \n\n\u2028\x85\u00a0⏎💩\u0301é@1=.\u200d\u202eعא"


def made(kind: str, **keys: Any) -> Component:
    return Component.model_validate(
        {"name": "it", "type": kind, "reference": "passage", **keys}, strict=False
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("left for⏎North", "left for\nNorth"),
        ("left  for North", "left for\nNorth"),
        ("left for\r\n North", "left for\nNorth"),
        ("for North", "for North"),  # as it is written, before what is written alike
        ("North\u2028Vale", "North\u2028Vale"),
        ("North Vale", "North\u2028Vale"),
        ("Vale,\x85for", "Vale,\x85for"),
        ("e\u0301 👩\u200d🚒", "é 👩\u200d🚒"),
        ("עד ⏎ سوق", "עד\n\nسوق"),
        ("سوق for", "سوق\u00a0 for"),
        ("a⏎b", "a ⏎ b"),
        ("⏎", "⏎"),
        ("North Tarn", None),
        ("⏎ ⏎", None),
        ("", None),
        (" ", " "),
    ],
)
def test_words_are_found_over_line_breaks(line: str, text: str | None) -> None:
    found = find_spans(line, PASSAGE)
    assert [PASSAGE[start:end] for start, end in found[:1]] == ([] if text is None else [text])
    if text is not None:
        assert find_span_at(line, PASSAGE, found[0][0]) == found[0]


def test_the_place_says_which_of_those_written_alike() -> None:
    at = PASSAGE.index("for\nNorth")
    assert find_span_at("for North", PASSAGE, at) == (at, at + len("for\nNorth"))
    assert find_span_at("for North", PASSAGE, at + 1) is find_span_at("", PASSAGE, 0) is None


def test_places_of_a_page_are_found_in_a_passage_of_before_line_ends_were_lf() -> None:
    old = "First line.\r\nTarn is\r\nhere,\r\nTarn"
    page = old.replace("\r\n", "\n")
    for words in ("Tarn is\nhere", "here", "is\nhere,\nTarn"):
        start = old.index(words.replace("\n", "\r\n"))
        found = (start, start + len(words.replace("\n", "\r\n")))
        assert find_span_at(words, old, page.index(words)) == found
    assert find_span_at("Tarn", old, page.rindex("Tarn")) == (len(old) - 4, len(old))
    assert find_span_at("First", old, 0) == (0, 5)
    assert find_span_at("First", old, -1) is None


@given(st.text(ALPHABET, max_size=40).map(compose), st.data())
def test_lines_bring_marks_back_whole(passage: str, data: st.DataObject) -> None:
    """Marks that begin and end with a letter, as people choose them."""
    edges = [
        i for i, letter in enumerate(passage) if not letter.isspace() and letter != LINE_BREAK_SIGN
    ]
    if not edges:
        return
    start, last = sorted((data.draw(st.sampled_from(edges)), data.draw(st.sampled_from(edges))))
    mark = {"text": passage[start : last + 1], "start": start, "end": last + 1}
    context = {"passage": passage}
    for tags in ((), ("place",)):
        spans = made("spans", tags=tags)
        marks = [mark | {"tag": tag} for tag in tags] or [mark]
        lines = format_marks(marks)
        assert "\n" not in lines
        assert spans.kind.parse_typed_value(spans, lines, context) == marks
        assert spans.kind.check(spans, marks, context) == []
    span = made("span")
    stored = span.kind.parse_typed_value(span, mark["text"], context)
    assert stored["text"] == mark["text"]
    assert stored["start"] <= start
    assert span.kind.check(span, stored, context) == []


def test_what_is_nowhere_is_refused() -> None:
    span, context = made("span"), {"passage": PASSAGE}
    assert span.kind.check(span, span.kind.parse_typed_value(span, "Tarn", context), context)
    spans = made("spans")
    for passage in (PASSAGE, "one line"):
        context = {"passage": passage}
        assert spans.kind.check(
            spans, spans.kind.parse_typed_value(spans, "Tarn", context), context
        )


def test_no_passage_takes_long() -> None:
    began = time.process_time()
    for words, passage in (
        ("a b", "a" + " " * 50_000 + "c"),
        ("a a c", "a " * 25_000),
        ("a" * 5_000 + "b", "a" * 20_000),
        ("a \n b", "a\n" * 25_000),
    ):
        find_spans(words, passage)
    assert time.process_time() - began < 2


def test_line_breaks_are_shown_on_one_line() -> None:
    assert join_lines("left for\nNorth Vale") == "left for⏎North Vale"
