"""Which column of a file of contexts fills which field."""

import io

import pytest

from tasks.config.loading import load_config
from tasks.contexts.columns import MAX_COLUMNS, are_field_names, guess_matching, read_columns
from tasks.contexts.files import read_rows, summarise_file
from tasks.line_files import FileError, LineError, Row

CONFIG = load_config("""
version: 1
name: Test
goal: {text: Write a statement}
context:
  - {name: premise, type: text}
  - {name: year, type: number, required: false}
input:
  - {name: hypothesis, type: long_text}
output:
  - {name: answer, type: text}
verdict: {type: ask_user}
metrics: {main: rouge_l}
""")


def matched(text, name, matching):
    return list(read_rows(io.BytesIO(text.encode()), name, CONFIG, matching=matching))


@pytest.mark.parametrize(
    ("data", "name", "columns"),
    [
        (b"\xef\xbb\xbfText, Year ,\nx,1,2\n", "a.csv", ["Text", "Year"]),
        (b"Text\tYear\nx\t1\n", "a.tsv", ["Text", "Year"]),
        (b'{"a": 1}\nnone\n{"b": 2, "a": 3}\n', "a.jsonl", ["a", "b"]),
        (b"one text\n", "a.txt", []),
        (b"", "a.csv", []),
    ],
)
def test_columns(data, name, columns):
    assert read_columns(data, name) == columns


def test_too_many_columns_are_refused():
    names = ",".join(f"c{number}" for number in range(MAX_COLUMNS + 1))
    with pytest.raises(FileError, match="100 columns"):
        summarise_file(names.encode(), "a.csv", CONFIG, [])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["premise", "year"], True),
        (["premise", "tag"], True),
        (["year"], False),
        (["premise", "text"], False),
    ],
)
def test_columns_that_are_fields_already(columns, expected):
    assert are_field_names(columns, CONFIG) is expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["Premise ", "YEAR"], {"Premise ": "premise", "YEAR": "year"}),
        (["PREMISE", "premise"], {"premise": "premise"}),
        (["text"], {"text": "premise"}),
        (["text", "Tag"], {"text": "premise", "Tag": "tag"}),
        (["text", "title"], {}),
    ],
)
def test_guesses(columns, expected):
    assert guess_matching(columns, CONFIG) == expected


def test_a_matched_table_fills_fields_and_leaves_the_rest_out():
    matching = {"Text": "premise", "when": "year"}
    assert matched("id,Text,when,id\n7,The shop.,1990,{\n", "a.csv", matching) == [
        Row(2, {"premise": "The shop.", "year": 1990})
    ]
    (bad,) = matched("Text,when\nThe shop.,soon\n", "a.csv", matching)
    assert isinstance(bad, LineError)
    (twice,) = matched("Text,Text\nx,y\n", "a.csv", matching)
    assert "there twice" in twice.message


def test_matched_objects():
    rows = '{"body": "The shop.", "id": 7}\n{"id": 8}\n'
    good, bad = matched(rows, "a.jsonl", {"body": "premise"})
    assert good == Row(1, {"premise": "The shop."})
    assert "`premise` is missing" in bad.message
