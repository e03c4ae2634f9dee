"""Lines of programs in containers: what is a question, what is refused, and what is no message."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.adversaries.kinds.container_lines import (
    ContainerQuestion,
    LineError,
    QuestionError,
    read_question,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(TEXTS, TEXTS.filter(lambda text: len(text) <= 200), st.booleans(), st.none() | st.integers())
def test_a_question_is_read_as_it_was_written(text, label, is_offered, context):
    fields = {"text": text, "label": label, "context": context}
    line = json.dumps({"propose" if is_offered else "ask": fields}).encode()
    assert read_question(line) == ContainerQuestion(text, label, "", context, is_offered)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_question_or_refused(line):
    with suppress(LineError, QuestionError):  # any other error fails
        assert isinstance(read_question(line), ContainerQuestion)


@pytest.mark.parametrize(
    "line", [b"", b"null", b"[]", b'{"ask": {}, "propose": {}}', b'{"end": {}}', b"[" * 9999]
)
def test_what_is_no_message_names_the_shape(line):
    with pytest.raises(LineError, match="ask"):
        read_question(line)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "text"),
        ({"text": "A"}, "label"),
        ({"text": "A", "label": "b", "step": 1}, "step"),
        ({"text": "A", "label": "b", "tokens": 0}, "tokens"),
        ({"text": "A", "label": "b", "context": 1.5}, "context"),
    ],
)
def test_a_wrong_field_is_named(fields, field):
    with pytest.raises(QuestionError) as error:
        read_question(json.dumps({"ask": fields}).encode())
    assert error.value.field == field
