"""Words of servers, in whatever form: read, cut, without keys or signs that are not shown."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.targets.endpoints.server_words import (
    MAX_QUOTE_CHARS,
    clean_message,
    concerns_settings,
    mask_copies,
    read_error,
    read_message,
)

SAID = "The model tarn-2 does not exist"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": SAID, "type": "invalid_request_error"}},
        {"error": SAID},
        {"error": {"error": {"detail": SAID}}},
        {"detail": SAID},
        {"detail": [{"loc": ["body", "model"], "msg": SAID}]},
        {"message": SAID},
        {"title": SAID, "status": 404},
        [{"error": {"code": 404, "message": SAID}}],
        SAID,
    ],
)
def test_an_error_is_read_in_whatever_form_it_comes(body: Any) -> None:
    assert read_message(json.dumps(body).encode()) == SAID


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (SAID.encode(), SAID),
        (b"<!DOCTYPE html><html><head><title>404 Not&nbsp;Found</title>", "404 Not Found"),
        (b"<html><body><h1><b>Bad</b> gateway</h1></body>", "Bad gateway"),
        (b"<html><script>x</script>", ""),
        (
            b"<!doctype html><title>Error response</title><style>p {}</style><body>"
            b"<script>alert(1)</script><!-- why --><p>Error code: 501</p><p>No POST here.",
            "Error code: 501 No POST here.",
        ),
        (b"<html><head><title>Gone</title></head><body> <br> </body></html>", "Gone"),
        (b"", ""),
        (b"{}", ""),
        (b"[]", ""),
        (b'{"error": {"param": 3}}', ""),
        (b"[" * 100_000, "[" * MAX_QUOTE_CHARS),
        (b"\xff\xfe not UTF-8", "\ufffd\ufffd not UTF-8"),
    ],
)
def test_what_is_no_error_of_json_is_read_as_a_text(body: bytes, words: str) -> None:
    assert read_message(body) == words


def test_the_error_itself_stays_whole() -> None:
    assert read_error(b'{"error": {"param": "temperature"}}') == {"param": "temperature"}


@pytest.mark.parametrize(
    "words",
    [
        "Incorrect API key provided: sk-abc1****wxyz.",
        "got Authorization: Bearer 0123456789abcdef",
        '{"api_key": "0123456789"}',
        "token=a1b2c3d4e5",
        "hf_0123456789abcdef is invalid",
    ],
)
def test_what_looks_like_a_key_is_not_repeated(words: str) -> None:
    shown = clean_message(words)
    assert "[secret]" in shown
    assert not any(digits in shown for digits in ("0123", "abc1", "wxyz", "a1b2"))


@pytest.mark.parametrize(
    "words", [SAID, "Maximum tokens: 4096", "Bearer authentication required", "password: wrong"]
)
def test_other_words_stay_as_they_are(words: str) -> None:
    assert clean_message(words) == words


def test_a_secret_goes_with_the_ends_that_a_server_leaves_of_it() -> None:
    secret = "tarn0123-middle-of-it-4567lund"
    for said in (secret, "tarn0123***4567lund", "tarn0123…", "ends in 4567lund"):
        assert "[secret]" in mask_copies(secret, f"Refused: {said}")
        assert "tarn0123" not in mask_copies(secret, f"Refused: {said}")
        assert "4567lund" not in mask_copies(secret, f"Refused: {said}")
    assert mask_copies("short", "a short word, shor") == "a [secret] word, shor"
    assert mask_copies(None, "a word") == "a word"


@pytest.mark.parametrize("piece", ["sk-", "<script ", "<!--", "a", "tarn0123", "Bearer "])
def test_a_hostile_megabyte_is_read_as_quickly_as_a_line(piece: str) -> None:
    body = (b"<html><body>" + piece.encode() * (2**20 // len(piece)))[: 2**20]
    assert len(read_message(body)) <= MAX_QUOTE_CHARS
    text = json.dumps({"error": piece * 100_000})
    assert len(read_message(text.encode())) <= MAX_QUOTE_CHARS
    mask_copies("tarn0123-middle-of-it-4567lund", text)


@given(st.text(max_size=400))
def test_words_are_one_short_line_of_signs_that_are_shown(words: str) -> None:
    shown = clean_message(words)
    assert len(shown) <= MAX_QUOTE_CHARS
    assert shown == " ".join(shown.split())
    assert all(one.isprintable() or one in "\u200c\u200d" for one in shown)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Model tarn not found", True),
        ("Request for unknown model: 'tarn' is not found", True),
        ("Invalid API key", True),
        ("unexpected inference input 'words' for model 'tarn'", True),
        ("This text holds a sign that cannot be read", False),
        ("", False),
    ],
)
def test_a_refusal_is_about_the_settings_where_it_says_so(words: str, expected: bool) -> None:
    assert concerns_settings(words) is expected
