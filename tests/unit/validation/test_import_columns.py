"""Each column of an import is a field of its task, whatever it is called."""

import pytest

from tasks.config.loading import load_config
from tasks.line_files import BadRow
from validation.imports.columns import KnownFields, NewFields, field_name, titled
from validation.imports.rows import row_of

CONFIG = """
version: 1
name: Tone
goal: {text: Write}
context: [{name: passage, type: text, label: Die Quelle}]
input: [{name: text, type: long_text}, {name: label, type: multiclass, labels: [a, b]}]
output: [{name: label}]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
"""


def row(given, context=()):
    return row_of({"uid": "1", "input": dict(given), "context": dict(context)}, "tone")


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("text", "text"),
        ("review-text", "review_text"),
        ("Quelle (URL)", "Quelle_URL"),
        ("Größe", "Groe"),
        ("文本", "column"),
        ("", "column"),
        ("1st", "column_1st"),
        ("id", "column_id"),
        ("x" * 70, "x" * 50),
        ("one", "column_one"),
    ],
)
def test_a_column_has_a_name_that_fields_can_have(column, name):
    assert field_name(column, {"id", "one"}) == name


def test_new_fields_are_told_apart():
    fields = NewFields("label")
    first = fields.fitted(row({"文本": "a", "quelle": "b", "a-b": "c", "label": "d"}, {"a b": "e"}))
    assert first.context == {"a_b": "e"}
    assert first.input == {"column": "a", "quelle": "b", "column_a_b": "c", "column_label": "d"}
    second = fields.fitted(row({"a-b": "f", "章": "g", "a_b": "h"}))
    assert second.input == {"column_a_b": "f", "column_2": "g", "column_a_b_2": "h"}
    assert fields.of("context") == {"a_b": "a b"}
    assert fields.renamed["章"] == "column_2"
    assert "quelle" not in fields.renamed


def test_known_fields_are_found_by_name_and_title_wherever_they_stand():
    fields = KnownFields(load_config(CONFIG), is_strict=True)
    fitted = fields.fitted(row({"text": "a", "Die Quelle": "b"}))
    assert (fitted.context, fitted.input) == ({"passage": "b"}, {"text": "a"})
    assert fields.renamed == {"Die Quelle": "passage"}
    with pytest.raises(BadRow, match=r"`mood`.*passage"):
        fields.fitted(row({"mood": "a"}))
    with pytest.raises(BadRow, match="twice"):
        fields.fitted(row({"passage": "a"}, {"Die Quelle": "b"}))


def test_history_may_tell_more_than_a_task_has():
    fields = KnownFields(load_config(CONFIG), is_strict=False)
    fitted = fields.fitted(row({"mood": "a", "text": "b"}))
    assert fitted.input == {"mood": "a", "text": "b"}
    assert fields.unknown == {"mood": 1}


def test_titles():
    assert titled("a", "a") == {}
    assert titled("column", " ") == {}
    assert titled("a_b", "a-b ") == {"label": "a-b"}


TALK = [{"role": "user", "text": "Hi"}]


def test_fields_of_a_made_task_hold_texts_or_a_conversation_in_every_row():
    fields = NewFields("label")
    first = fields.fitted(row({"n": 3, "no": None}, {"talk": TALK, "mixed": TALK}))
    fields.fitted(row({"n": True, "no": "yes"}, {"talk": TALK, "mixed": "a"}))
    assert (first.context, first.input) == ({"talk": TALK, "mixed": TALK}, {"n": "3"})
    assert fields.talks == {"talk"}
    assert {*fields.of("input")} == {"n", "no"}
