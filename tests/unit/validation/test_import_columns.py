"""Each column of an import is a field of its task, whatever it is called."""

import pytest

from tasks.config.loading import load_config
from tasks.line_files import BadRow
from validation.imports.columns import KnownFields, NewFields, build_field_title, choose_field_name
from validation.imports.rows import read_row

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
    return read_row({"uid": "1", "input": dict(given), "context": dict(context)}, "tone")


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
    assert choose_field_name(column, {"id", "one"}) == name


def test_new_fields_are_told_apart():
    fields = NewFields("label")
    first = fields.rename_columns(
        row({"文本": "a", "quelle": "b", "a-b": "c", "label": "d"}, {"a b": "e"})
    )
    assert first.context == {"a_b": "e"}
    assert first.input == {"column": "a", "quelle": "b", "column_a_b": "c", "column_label": "d"}
    second = fields.rename_columns(row({"a-b": "f", "章": "g", "a_b": "h"}))
    assert second.input == {"column_a_b": "f", "column_2": "g", "column_a_b_2": "h"}
    assert fields.get_columns("context") == {"a_b": "a b"}
    assert fields.renamed_columns["章"] == "column_2"
    assert "quelle" not in fields.renamed_columns


def test_known_fields_are_found_by_name_and_title_wherever_they_stand():
    fields = KnownFields(load_config(CONFIG), is_strict=True)
    fitted = fields.rename_columns(row({"text": "a", "Die Quelle": "b"}))
    assert (fitted.context, fitted.input) == ({"passage": "b"}, {"text": "a"})
    assert fields.renamed_columns == {"Die Quelle": "passage"}
    with pytest.raises(BadRow, match=r"`mood`.*passage"):
        fields.rename_columns(row({"mood": "a"}))
    with pytest.raises(BadRow, match="twice"):
        fields.rename_columns(row({"passage": "a"}, {"Die Quelle": "b"}))


def test_history_may_tell_more_than_a_task_has():
    fields = KnownFields(load_config(CONFIG), is_strict=False)
    fitted = fields.rename_columns(row({"mood": "a", "text": "b"}))
    assert fitted.input == {"mood": "a", "text": "b"}
    assert fields.unknown_columns == {"mood": 1}


def test_titles():
    assert build_field_title("a", "a") == {}
    assert build_field_title("column", " ") == {}
    assert build_field_title("a_b", "a-b ") == {"label": "a-b"}


TALK = [{"role": "user", "text": "Hi"}]


def test_fields_of_a_made_task_hold_texts_or_a_conversation_in_every_row():
    fields = NewFields("label")
    first = fields.rename_columns(row({"n": 3, "no": None}, {"talk": TALK, "mixed": TALK}))
    fields.rename_columns(row({"n": True, "no": "yes"}, {"talk": TALK, "mixed": "a"}))
    assert (first.context, first.input) == ({"talk": TALK, "mixed": TALK}, {"n": "3"})
    assert fields.conversation_fields == {"talk"}
    assert {*fields.get_columns("input")} == {"n", "no"}
