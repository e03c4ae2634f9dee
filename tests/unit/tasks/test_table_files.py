"""Tables as programs and people write them."""

import codecs
import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.line_files import BadRow, FileError, LineError, Row, iter_plain_lines
from tasks.table_files import read_table

DIALECTS = [",", ";", "\t", "|"]
ENDS = ["\n", "\r\n", "\r"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16"]
LETTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t,;|\"'")
CELL = st.text(LETTERS, max_size=20).filter(lambda text: text.strip())
PLAIN_CELL = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=20
).filter(lambda text: text.strip())


def read(data, ending="csv"):
    return list(read_table(iter_plain_lines([data]), list, lambda name, cell: cell, ending))


def values(data, ending="csv"):
    rows = read(data, ending)
    assert all(isinstance(row, Row) for row in rows), rows
    return [dict(row.values) for row in rows]


@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5),
    delimiter=st.sampled_from(DIALECTS),
    end=st.sampled_from(ENDS),
    encoding=st.sampled_from(ENCODINGS),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    announced=st.booleans(),
)
def test_a_csv_of_any_dialect_is_read_as_it_was_written(
    rows, delimiter, end, encoding, quoting, announced
):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writerows([("text", "label"), *rows])
    text = f"sep={delimiter}\n" * announced + file.getvalue()
    data = text.replace("\n", end).encode(encoding)
    assert values(data) == [{"text": text, "label": label} for text, label in rows]


@given(
    rows=st.lists(st.tuples(PLAIN_CELL, PLAIN_CELL), min_size=1, max_size=5),
    end=st.sampled_from(ENDS),
    encoding=st.sampled_from(ENCODINGS),
)
def test_a_tsv_has_no_quotes(rows, end, encoding):
    lines = ["text\tlabel", *("\t".join(row) for row in rows), ""]
    found = values(end.join(lines).encode(encoding), "tsv")
    for row, (text, label) in zip(found, rows, strict=True):
        for cell, read_cell in ((text, row["text"]), (label, row["label"])):
            assert read_cell == cell or cell[0] == cell[-1] == '"'


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ('"Tis the season\tpositive', ('"Tis the season', "positive")),
        ('and then "\tnegative', ('and then "', "negative")),
        ('"good"\tpositive', ('"good"', "positive")),
        ('"She said ""hi"""\tpositive', ('She said "hi"', "positive")),
        ('"good"\t"positive"', ("good", "positive")),
    ],
)
def test_quotes_in_a_tsv(line, cells):
    found = values(f"text\tlabel\n{line}\n".encode(), "tsv")
    assert found == [dict(zip(("text", "label"), cells, strict=True))]


@given(st.lists(PLAIN_CELL, min_size=1, max_size=8))
def test_a_tsv_of_one_column_has_as_many_rows_as_lines(cells):
    assert len(values("\n".join(["text", *cells]).encode(), "tsv")) == len(cells)


def test_a_cell_may_have_any_length():
    long = "word " * 100_000
    assert values(f"text,label\n{long},x\n".encode())[0]["text"] == long


def test_empty_cells_at_the_end_are_none():
    data = b"text,label,\nFine,positive,\nBad,negative\n,,\n , \nGood,positive,,\n"
    assert [row["label"] for row in values(data)] == ["positive", "negative", "positive"]


@pytest.mark.parametrize(
    ("data", "ending", "line"),
    [
        (b"text,label\nFine\n", "csv", 2),
        (b"text,label\nFine,positive,more\n", "csv", 2),
        (b"text\tlabel\nFine\n", "tsv", 2),
        (b"text\tlabel\na\tb\nc\n", "tsv", 3),
        (b"text,label\n\xc4rger,negative\n", "csv", 2),
        (b"text\tlabel\n\xc4rger\tnegative\n", "tsv", 2),
        (b"t\xe4xt,label\na,b\n", "csv", 1),
        (b"t\xe4xt\tlabel\na\tb\n", "tsv", 1),
        (b'text,label\n"open,positive\n', "csv", 2),
        (b"sep=;\ntext;label\nFine\n", "csv", 3),
    ],
)
def test_what_does_not_fit_is_an_error_with_its_line(data, ending, line):
    errors = [row for row in read(data, ending) if isinstance(row, LineError)]
    assert [error.line for error in errors] == [line]


def test_a_header_that_is_refused_ends_the_reading():
    def refuse(cells):
        raise BadRow("no")

    for ending, data in (("csv", b"a,b\n1,2\n"), ("tsv", b"a\tb\n1\t2\n")):
        (error,) = read_table(iter_plain_lines([data]), refuse, lambda name, cell: cell, ending)
        assert (error.line, error.message) == (1, "no")


def test_a_value_that_is_refused_names_its_column():
    def refuse(name, cell):
        raise BadRow("no")

    (error,) = read_table(iter_plain_lines([b"a,b\n1,2\n"]), list, refuse)
    assert (error.line, error.message) == (2, "`a`: no")


def test_blank_lines_are_no_rows():
    assert [row["a"] for row in values(b"a\tb\n\n1\t2\n \t \n", "tsv")] == ["1"]


def test_an_empty_table_has_no_rows():
    assert read(b"") == read(b"", "tsv") == read(b"text,label\n") == []


@given(st.lists(st.binary(max_size=5)), st.integers(1, 7))
def test_lines_are_the_same_however_a_file_comes_in_parts(parts, size):
    data = b"".join(parts)
    in_parts = [data[place : place + size] for place in range(0, len(data), size)]
    try:
        whole = list(iter_plain_lines([data]))
    except FileError:
        with pytest.raises(FileError):
            list(iter_plain_lines(in_parts))
    else:
        assert list(iter_plain_lines(in_parts)) == whole


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufeff")))
@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf_16_with_its_mark_becomes_utf_8(mark, text):
    encoding = "utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be"
    data = b"".join(iter_plain_lines([mark + text.encode(encoding)])).decode("utf-8-sig")
    assert data == text


def test_half_a_letter_of_utf_16_is_told():
    with pytest.raises(FileError):
        list(iter_plain_lines([codecs.BOM_UTF16_LE + b"a"]))


def test_an_endless_line_comes_in_parts():
    assert [len(line) for line in iter_plain_lines([b"x" * 10], 4)] == [4, 4, 2]


@pytest.mark.parametrize(
    ("data", "ending", "line"),
    [
        (b"\n \ntext;label\na;b\n", "csv", 4),
        (b"\n\nsep=;\n\ntext;label\na;b\n", "csv", 6),
        (b"\xef\xbb\xbf\r\ntext,label\r\na,b\r\n", "csv", 3),
        (b"\n\t\ntext\tlabel\na\tb\n", "tsv", 4),
    ],
)
def test_blank_lines_may_stand_before_the_header(data, ending, line):
    (row,) = read(data, ending)
    assert (row.line, dict(row.values)) == (line, {"text": "a", "label": "b"})


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_of_blank_lines_has_no_rows(ending):
    assert read(b"\n\n", ending) == []
