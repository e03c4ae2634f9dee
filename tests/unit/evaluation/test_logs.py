"""The end of a log: bounded, harmless, and without texts of the examples."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from evaluation.isolation.sandbox.logs import (
    BLOCK_CHARS,
    MIN_MATCH_CHARS,
    REDACTION,
    REMOVED_LINE_TEXT,
    Tail,
    redact_log,
    show_control_characters,
)

PASSAGE = "Greenland's capital Nuuk lies on the southwest coast and has about 19,000 inhabitants."


@given(st.lists(st.binary(max_size=50)))
def test_the_tail_is_the_end(parts):
    tail = Tail(20)
    for part in parts:
        tail.add(part)
    data = b"".join(parts)
    shown = show_control_characters(data[-20:].decode(errors="replace"))
    left_out = max(0, len(data) - 20)
    expected = f"[{left_out} bytes before this were not kept]\n{shown}" if left_out else shown
    assert tail.get_text() == expected


def test_a_short_log_is_whole():
    tail = Tail(4)
    tail.add(b"abc")
    assert tail.get_text() == "abc"


def test_a_long_log_is_cut_at_its_front():
    tail = Tail(4)
    for part in (b"ab", b"cdefghi", b"jk"):
        tail.add(part)
    first, last = tail.get_text().splitlines()
    assert (first.split()[0], last) == ("[7", "hijk")


def test_control_characters_are_shown():
    assert show_control_characters("\x1b[31mred\x1b[0m\x00\x7f\x9b\u202eback") == (
        "␛[31mred␛[0m␀␡\\u009b\\u202eback"
    )


def test_progress_bars_become_lines():
    assert show_control_characters("10%\r20%\r\ndone\n") == "10%\n20%\ndone\n"


@given(st.text())
def test_nothing_visible_steers_a_terminal(text):
    shown = show_control_characters(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]


def test_a_log_without_examples_stays():
    log = "Traceback (most recent call last):\nValueError: shape (3, 4)"
    assert redact_log(log, texts=[PASSAGE, "short"]) == log


def test_lines_that_repeat_an_example_go():
    log = f"start\nreading {PASSAGE!r} now\nend"
    assert redact_log(log, texts=["other", PASSAGE]) == f"start\n{REMOVED_LINE_TEXT}\nend"


def test_secrets_go():
    assert redact_log("token=hf_abc", texts=[], secrets=["hf_abc"]) == f"token={REDACTION}"


def test_values_with_line_breaks_go_line_by_line():
    text = "the first line of it\nthe second line of it"
    assert redact_log(text, texts=[text]) == f"{REMOVED_LINE_TEXT}\n{REMOVED_LINE_TEXT}"


@given(st.integers(0, len(PASSAGE)), st.integers(0, len(PASSAGE)))
def test_long_excerpts_go_wherever_they_begin(start, end):
    excerpt = PASSAGE[start:end]
    hidden = redact_log(f"text: {excerpt}.", texts=[PASSAGE]) == REMOVED_LINE_TEXT
    assert hidden or len(excerpt) < 2 * BLOCK_CHARS


@given(st.text(st.characters(categories=["L"]), min_size=MIN_MATCH_CHARS, max_size=BLOCK_CHARS))
def test_whole_values_go(value):
    assert redact_log(f"x {value} y", texts=[value]) == REMOVED_LINE_TEXT
