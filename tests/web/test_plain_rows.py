"""manage.py import_examples --judge with plain rows: JSON lines or a table, nothing but texts."""

import gzip
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from tasks.models import Task, TaskMember
from tests.support.factories import importing
from tests.support.judging import judge
from validation.models import Validation

OPTIONS = ("--task", "tone", "--create", "--judge", "--labels", "rude,polite")
ROWS = [
    {"text": "Go away, and take the soup along.", "source": "chat"},
    {"text": "Would you pass me the salt?", "source": "mail"},
]
CSV = 'text,source\n"Go away, and take the soup along.",chat\n\nWould you pass me the salt?,mail\n'
TSV = "text\tsource\n" + "\n".join("\t".join(row.values()) for row in ROWS)
pytestmark = pytest.mark.django_db


def bring(path, *options):
    """What the command said: its last line, and its errors."""
    out, err = StringIO(), StringIO()
    call_command("import_examples", str(path), *importing(options), stdout=out, stderr=err)
    return out.getvalue().splitlines()[-1], err.getvalue()


@pytest.fixture
def write(tmp_path):
    def write(content, name="rows.jsonl"):
        path = tmp_path / name
        if isinstance(content, list):
            content = "\n".join(json.dumps(row) for row in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_rows_are_judged_and_known_again_in_every_form(write, as_alice, alice):
    assert bring(write(ROWS), *OPTIONS)[0] == "2 new, 0 known before."
    tables = {
        "rows.csv": CSV,
        "rows.tsv": TSV,
        "rows.csv.gz": gzip.compress(CSV.encode("utf-8-sig")),
    }
    for name, content in tables.items():
        assert bring(write(content, name), *OPTIONS)[0] == "0 new, 2 known before."
    assert [one.inputs for one in Example.objects.order_by("pk")] == ROWS
    TaskMember.objects.create(task=Task.objects.get(), user=alice, role="annotator")
    assert judge(as_alice, "label:polite", "/t/tone/judge/").status_code == 200
    assert Validation.objects.get().label == "polite"


def test_a_row_may_bring_its_id_a_label_and_a_number(write):
    rows = [{"uid": 7, "text": "Thank you.", "label": "polite", "stars": 4.5, "note": None}]
    bring(write(rows), *OPTIONS)
    example = Example.objects.get()
    assert example.uid == "7"
    assert example.inputs == {"text": "Thank you.", "stars": "4.5", "label": "polite"}


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ([{"uid": "u1", "label": "rude"}], "rows.jsonl", ":1: the line has nothing to judge"),
        ([*ROWS, {"text": ["Go", "away"]}], "rows.jsonl", ":3: the line has no field `text`"),
        ("text,text\na,b\n", "rows.csv", "first row names the columns"),
        ("text,\na,b\n", "rows.csv", "2 cells, but the header has 1"),
        ("", "rows.csv", "first row names the columns"),
        ("\n", "rows.csv", "first row names the columns"),
        ('text,source\n"a\nb",c\nd\n', "rows.csv", "rows.csv: line 4:"),
        ('text,label\n"a\nb",c\n,d\n', "rows.csv", ":4: the line has nothing to judge"),
        (b"text\n\xff\n", "rows.csv", "rows.csv: line 2:"),
        ('text\n"a\n', "rows.csv", "rows.csv: line 2:"),
        (b"\x1f\x8b broken", "rows.csv.gz", "rows.csv.gz: Damaged gzip"),
    ],
)
def test_a_bad_file_stores_nothing_and_says_why(write, content, name, said):
    err = StringIO()
    arguments = [str(write(content, name)), *importing(OPTIONS)]
    with pytest.raises(CommandError) as refused:
        call_command("import_examples", *arguments, stderr=err)
    assert said in f"{refused.value}{err.getvalue()}"
    assert not Task.objects.filter(code="tone").exists()


def test_only_rows_to_be_judged_are_plain(write):
    for content, name in ((ROWS, "rows.jsonl"), (CSV, "rows.csv")):
        with pytest.raises(CommandError):
            bring(write(content, name), "--task", "tone", "--create")
    with pytest.raises(CommandError):
        bring(write(ROWS), "--judge", "--create", "--labels", "rude,polite")
    assert not Example.objects.exists()


def test_what_is_no_table_of_rows_is_named_once(write):
    for name, content, word in (
        ("rows.csv", b"PK\x03\x04" + b"\xff\n" * 30, "CSV"),
        ("rows.jsonl", b"PAR1" + b"\xff\n" * 30, "datasets"),
        ("rows.csv", ",text\n0,a\n", "index=False"),
    ):
        with pytest.raises(CommandError, match=word):
            bring(write(content, name), *OPTIONS)
    with pytest.raises(CommandError, match="my_tone"):
        bring(write(ROWS), "--task", "my_tone", "--create", "--judge")


def test_judges_see_columns_of_any_name(write, as_alice, alice):
    table = "文本,Quelle (URL),id\nThe soup was warm.,a,7\n"
    out = StringIO()
    path = write(table, "rows.csv")
    call_command("import_examples", str(path), *importing(OPTIONS), stdout=out, stderr=StringIO())
    assert "'文本'" in out.getvalue()
    TaskMember.objects.create(task=Task.objects.get(), user=alice, role="annotator")
    page = as_alice.get("/t/tone/judge/").content.decode().casefold()
    for shown in ("文本", "the soup was warm.", "quelle (url)"):
        assert shown in page
    assert bring(path, *OPTIONS)[0] == "0 new, 1 known before."
    more = write("文本,Quelle (URL),id\nThe soup was cold.,b,8\n", "rows.csv")
    assert bring(more, *OPTIONS)[0] == "1 new, 0 known before."
    assert len({tuple(one.inputs) for one in Example.objects.all()}) == 1


def test_a_column_that_is_no_field_is_a_bad_line(write):
    bring(write(ROWS), *OPTIONS)
    with pytest.raises(CommandError, match="1 of the lines"):
        bring(write([{"text": "c", "mood": "d"}]), *OPTIONS)
    assert Example.objects.count() == 2
