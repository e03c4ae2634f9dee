"""Rows of context files, and the words for those that cannot be stored."""

import csv
import datetime
import gzip
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from core.text.words import compose
from tasks.config.loading import load_config
from tasks.contexts.files import (
    MAX_BINS,
    MAX_LISTED_PROBLEMS,
    Duplicate,
    build_histogram,
    hash_context,
    read_new_rows,
    read_rows,
    summarise_file,
)
from tasks.line_files import FileError, LineError, Row

CONFIG = load_config("""
version: 1
name: Test
goal: {text: Write a statement}
context:
  - {name: premise, type: text, max_length: 60}
  - {name: source, type: text, required: false}
  - {name: year, type: number, minimum: 1900, required: false}
  - {name: options, type: candidates, required: false}
input:
  - {name: hypothesis, type: long_text}
  - {name: label, type: multiclass, labels: [a, b]}
output:
  - {name: label, type: multiclass}
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
""")


def read(text, name="file.jsonl"):
    raw = text if isinstance(text, bytes) else text.encode()
    return list(read_rows(io.BytesIO(raw), name, CONFIG))


def test_a_jsonl_row_keeps_its_fields_tag_and_metadata():
    row = {"premise": "The shop opened.", "year": 1990, "tag": "trade", "metadata": {"id": "x-1"}}
    assert read(json.dumps(row)) == [Row(1, row)]


def test_the_same_rows_as_csv():
    text = (
        "premise,year,options,tag,metadata\r\n"
        '"The shop, a small one,\nopened.",1990,"[""x"", ""y""]",trade,"{""id"": ""x-1""}"\r\n'
        "2024,,,7,\r\n"
    )
    first = {
        "premise": "The shop, a small one,\nopened.",
        "year": 1990,
        "options": ["x", "y"],
        "tag": "trade",
        "metadata": {"id": "x-1"},
    }
    assert read(text, "a.CSV") == [Row(2, first), Row(4, {"premise": "2024", "tag": "7"})]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_byte_order_mark_and_blank_lines_are_no_errors(name):
    body = (
        "premise\n\nThe shop opened.\n"
        if name == "a.csv"
        else '\n{"premise": "The shop opened."}\n'
    )
    rows = read(b"\xef\xbb\xbf" + body.encode(), name)
    assert [row.values for row in rows] == [{"premise": "The shop opened."}]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"tag": "x"}', "`premise` is missing; add it"),
        ('{"premise": "  "}', "`premise` is missing; add it"),
        ('{"premise": null}', "`premise` is missing; add it"),
        ('{"premise": 3}', "`premise`: premise must be a text"),
        ('{"premise": "' + "x" * 61 + '"}', "at most 60 characters; it is 61"),
        ('{"premise": "x", "yaer": 1990}', 'there is no field `yaer`; did you mean "year"?'),
        ('{"premise": "x", "zzz": 1}', "use one of: premise, source, year, options, tag, metadata"),
        ('{"premise": "x", "year": 1800}', "`year`: year must be at least 1900"),
        ('{"premise": "x", "year": 1e999}', "`year`: year must be a number"),
        ('{"premise": "x", "year": NaN}', "NaN isn't a number in JSON"),
        ('{"premise": "x", "tag": 3}', "`tag` is not a text; write it in quotes"),
        ('{"premise": "x", "tag": "' + "t" * 101 + '"}', "`tag` has 101 characters"),
        ('{"premise": "x", "metadata": []}', "`metadata` is not an object"),
        ('{"premise": "x", "metadata": {"n": 1e999}}', "a number that is too large"),
        ('{"premise": "x", "metadata": {"n": ["\\u0000"]}}', "a control character"),
        ('{"premise": "x", "metadata": {"\\ud800": 1}}', "half a character"),
        ('{"premise": "x", "metadata": {"n": ' + "[" * 100 + "]" * 100 + "}}", "nest less deeply"),
        ('{"premise": "x", "premise": "y"}', "`premise` is there twice"),
        ('{"premise": "x"', "not JSON at character"),
        ('[{"premise": "x"}]', "not an object; write one {…} a line"),
        ('{"premise": ' + "1" * 5000 + "}", "a number with too many digits"),
        ("[" * 100_000, "nest less deeply"),
    ],
)
def test_a_bad_jsonl_line_says_what_to_do(line, words):
    good = '{"premise": "The shop opened."}'
    first, bad, last = read(f"{good}\n{line}\n{good}")
    assert isinstance(first, Row)
    assert isinstance(last, Row)
    assert bad.line == 2
    assert words in bad.message


@pytest.mark.parametrize(
    "name", ["a.CSV.GZ", "b 100% #1.jsonl.gz", "\u202e😀.Txt.gz", "c.CSV", "d.TXT.", "e.NDJSON.gz."]
)
def test_texts_may_be_packed_and_named_in_any_way(name):
    lines = {"csv": "premise\nIt rains.", "jsonl": '{"premise": "It rains."}', "txt": "It rains."}
    lower = name.lower()
    kind = next((kind for kind in lines if kind in lower), "jsonl")
    data = lines[kind].encode("utf-16")
    data = gzip.compress(data) if "gz" in lower else data
    (row,) = summarise_file(data, name, CONFIG, stored_digests=()).rows
    assert row.values == {"premise": "It rains."}


def test_what_gzip_unpacks_is_bounded(monkeypatch):
    monkeypatch.setattr("tasks.contexts.files.MAX_UNPACKED_BYTES", 2**20)
    for data in (gzip.compress(b" " * (2**20 + 1)), gzip.compress(b"{}")[:-4], b"\x1f\x8bno"):
        with pytest.raises(FileError):
            summarise_file(data, "a.jsonl.gz", CONFIG, stored_digests=())


def test_a_plain_text_has_a_context_a_line():
    found = read(b"The shop opened. \n\n\xff\nIt closed.\r\n", "a.txt")
    assert [(one.line, getattr(one, "values", None)) for one in found] == [
        (1, {"premise": "The shop opened."}),
        (3, None),
        (4, {"premise": "It closed."}),
    ]


def test_a_plain_text_does_not_fit_contexts_of_several_texts():
    config = replace(CONFIG, context=(CONFIG.context[0],) * 2)
    with pytest.raises(FileError, match="use a table"):
        next(read_rows(iter(()), "a.txt", config))


def test_a_table_with_tabs():
    (row,) = read("premise\ttag\nThe shop, at nine.\tx\n", "a.tsv")
    assert row.values == {"premise": "The shop, at nine.", "tag": "x"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("premise;tga\nx;y\n", 1, 'there is no field `tga`; did you mean "tag"?'),
        ("premise,tga\nx,y\n", 1, 'there is no field `tga`; did you mean "tag"?'),
        ("premise,premise\nx,y\n", 1, "the column `premise` is there twice"),
        ("tag\nx\n", 1, "the column `premise` is missing; add it"),
        ("premise,tag\nx,y,z\n", 2, "3 cells, but the header has 2"),
        ("premise,year\nx,soon\n", 2, "`year`: not JSON"),
        ('premise,year\nx,"""1990"""\n', 2, "`year`: not a number"),
        ("premise,tag\n,y\n", 2, "`premise` is missing; add it"),
        ('premise,tag\n"x,y\nz,z\n', 2, "is a quote left open?"),
    ],
)
def test_a_bad_csv_says_what_to_do(text, line, words):
    *_, bad = read(text, "a.csv")
    assert isinstance(bad, LineError)
    assert bad.line == line
    assert words in bad.message


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.jsonl", b'{"premise": "x"}\n{"premise": "caf\xe9"}\n{"premise": "y"}\n'),
        ("a.csv", b"premise\ncaf\xe9\ny\n"),
    ],
)
def test_only_the_line_that_is_not_utf8_is_refused(name, raw):
    items = read(raw, name)
    bad = [item for item in items if isinstance(item, LineError)]
    assert [error.line for error in bad] == [2]
    assert items[-1].values == {"premise": "y"}


def test_a_header_that_is_not_utf8_ends_the_reading():
    (error,) = read(b"pr\xe9mise\nx\n", "a.csv")
    assert (type(error), error.line) == (LineError, 1)


def test_another_kind_of_file_is_refused():
    with pytest.raises(FileError, match=r"name the file \.jsonl, \.csv, "):
        read("{}", "contexts.pdf")


def test_duplicates_name_the_first_line_or_the_round():
    texts = ["one", "two", "one", "three"]
    lines = "\n".join(json.dumps({"premise": text, "tag": str(n)}) for n, text in enumerate(texts))
    stored = {hash_context({"premise": "three"})}
    items = list(read_new_rows(io.BytesIO(lines.encode()), "a.jsonl", CONFIG, stored))
    assert items[2:] == [Duplicate(3, 1), Duplicate(4, None)]
    assert len({item.message for item in items[2:]}) == 2


def test_a_summary_counts_everything_and_names_some():
    rows = [{"premise": "xxxx", "source": "y", "year": 1900 + n} for n in range(25)]
    lines = [json.dumps(row) for row in rows + [rows[0]] * (MAX_LISTED_PROBLEMS + 7)]
    data = "\n".join([*lines, *["bad"] * (MAX_LISTED_PROBLEMS + 5)]).encode()
    summary = summarise_file(data, "a.jsonl", CONFIG, set())
    counts = (summary.new_count, summary.error_count, summary.duplicate_count)
    assert counts == (25, MAX_LISTED_PROBLEMS + 5, MAX_LISTED_PROBLEMS + 7)
    assert summary.row_count == sum(counts)
    kept = (len(summary.rows), len(summary.errors), len(summary.duplicates))
    assert kept == (25, MAX_LISTED_PROBLEMS, MAX_LISTED_PROBLEMS)
    assert set(summary.lengths) == {5}


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=50))
def test_a_histogram_counts_every_length_once(lengths):
    bins = build_histogram(lengths)
    assert len(bins) <= MAX_BINS
    assert sum(count for _, _, count in bins) == len(lengths)
    for first, last, count in bins:
        assert count == sum(first <= length <= last for length in lengths)


TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=60)


@settings(deadline=None)
@given(st.lists(TEXT.filter(str.strip), min_size=1, max_size=5))
def test_what_is_written_is_read_from_both_formats(texts):
    jsonl = "\n".join(json.dumps({"premise": text}) for text in texts)
    table = io.StringIO()
    csv.writer(table).writerows([["premise"], *([text] for text in texts)])
    expected = [{"premise": compose(text)} for text in texts]
    assert [row.values for row in read(jsonl)] == expected
    assert [row.values for row in read(table.getvalue(), "a.csv")] == expected


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["a.jsonl", "a.csv"]))
def test_no_bytes_break_the_reader(raw, name):
    for item in read(raw, name):
        assert isinstance(item, Row | LineError)


def sheet(*rows, title="First"):
    book = Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    book.create_sheet("Second").append(["nothing of this"])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_a_spreadsheet_is_a_table_by_its_rows():
    table = sheet(
        ["premise", "year", "source", "options", "tag", None],
        ["The shop,\n\"so\", opened.", 1990, datetime.date(2026, 1, 31), '["x", "y"]', True],
        [None],
        ["It rained.", 2024.0, 0.5],
        ["It snowed.", "late"],
        ["It froze.", None, None, None, None, None, "stray"],
    )  # fmt: skip
    first = {"premise": 'The shop,\n"so", opened.', "year": 1990, "source": "2026-01-31",
             "options": ["x", "y"], "tag": "true"}  # fmt: skip
    good, other, *bad = read(table, "contexts.xlsx")
    assert good == Row(2, first)
    assert other == Row(4, {"premise": "It rained.", "year": 2024, "source": "0.5"})
    assert [(one.line, type(one)) for one in bad] == [(5, LineError), (6, LineError)]
    assert "`year`" in bad[0].message
    found = summarise_file(table, "contexts.xlsx", CONFIG, stored_digests=())
    assert (found.columns, found.new_count, found.error_count) == (
        ["premise", "year", "source", "options", "tag"], 2, 2,
    )  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"premise\nA text.\n", sheet(["premise"])[:-400]])
def test_what_is_no_spreadsheet_is_refused(data):
    with pytest.raises(FileError):
        read(data, "contexts.xlsx")


def test_a_spreadsheet_names_the_column_that_it_lacks():
    [error] = read(sheet(["year"], [1990]), "contexts.xlsx")
    assert (error.line, "`premise`" in error.message) == (1, True)
    assert read(sheet(), "contexts.ods") == []


def test_a_row_is_kept_in_nfc():
    row = {"premise": "cafe\u0301", "tag": "cafe\u0301", "metadata": {"by": "Zoe\u0308"}}
    kept = {"premise": "caf\u00e9", "tag": "caf\u00e9", "metadata": {"by": "Zo\u00eb"}}
    assert read(json.dumps(row)) == [Row(1, kept)]
