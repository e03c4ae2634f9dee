"""Files of evaluation sets: every shape of a row, and the words for those that are wrong."""

import csv
import gzip
import io
import json
import pickle
import re
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.words import compose
from evaluation.contract import SetRow
from evaluation.test_sets import parsing as set_files
from evaluation.test_sets.parsing import (
    MAX_ERRORS,
    NO_ANSWER_REASON,
    WITHDRAWN_REASON,
    InvalidLines,
    RowMaker,
    SetFile,
    SkippedRow,
    compute_uid,
    read_set,
)
from tasks.config.loading import load_config
from tasks.line_files import BadRow, FileError, TooManyBadLines

TEXT = """
version: 1
name: Test
goal: {text: Write a statement}
context:
  - {name: premise, type: text, max_length: 20}
  - {name: source, type: text, required: false}
  - {name: year, type: number, required: false}
  - {name: prompt, type: text, required: false}
input:
  - {name: hypothesis, type: long_text, min_length: 5}
  - {name: kind, type: multiclass, labels: [short, long], required: false}
  - {name: ANSWER}
output: [{name: OUTPUT}]
verdict: {type: exact_match, fields: [ANSWER_NAME]}
metrics: {main: accuracy}
support: {prompt_field: prompt, challenges: [{name: negation, text: Try a negation.}]}
slices: [tag, language, challenge, source, kind, ANSWER_NAME]
validation: {votes: {rule: at-least, needed: 2, of: 3}}
"""


def config_of(answer):
    name = answer.split(",")[0]
    text = TEXT.replace("ANSWER_NAME", name).replace("ANSWER", answer)
    return load_config(text.replace("OUTPUT", answer if "reference" in answer else name))


LABELS = config_of("label, type: multiclass, labels: ['yes', 'no']")
SPANS = config_of("answer, type: span, reference: premise")
MANY = config_of("labels, type: multilabel, labels: [a, b, c]")
FLAT = {"uid": "u1", "premise": "A shop opened.", "hypothesis": "It is open.", "label": "yes"}
INPUTS = {"premise": "A shop opened.", "hypothesis": "It is open."}


@pytest.fixture
def read(tmp_path):
    def run(data, name="set.jsonl", config=LABELS):
        if isinstance(data, dict):
            data = [data]
        if isinstance(data, list):
            data = "\n".join(map(json.dumps, data))
        path = tmp_path / "file"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return list(read_set(path, name, config))

    return run


def one(found):
    (row,) = found
    return row


def test_a_flat_row(read):
    beside = {"tag": "news", "language": "en", "challenge": "negation"}
    row = one(read(FLAT | beside | {"source": "paper", "kind": "short"}))
    slices = {
        name: (value,)
        for name, value in [
            ("tag", "news"),
            ("language", "en"),
            ("challenge", "negation"),
            ("source", "paper"),
            ("kind", "short"),
            ("label", "yes"),
        ]
    }
    assert row == SetRow("u1", INPUTS | {"source": "paper"}, ("yes",), slices)


SHAPES = {
    "nested": {"uid": "u1", "context": {"premise": INPUTS["premise"]},
               "input": {"hypothesis": INPUTS["hypothesis"], "label": "yes"}},
    "inputs": {"uid": "u1", "inputs": INPUTS, "label": ["yes"]},
    "Dynabench": FLAT | {"tags": [], "input_id": 7, "prompt": "x", "metadata": {"any": [1]}},
    "released": {"uid": "u1", "split": "test", "tag": "", "label": "yes", "withdrawn": False,
                 "context": {"context_json": '{"premise": "A shop opened."}', "tag": ""},
                 "input_json": '{"hypothesis": "It is open.", "label": "no"}'},
    "released, read": {"uid": "u1", "context": {"context_json": INPUTS}, "input_json": {},
                       "label": "yes"},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_row_in_other_shapes(shape, read):
    assert one(read(SHAPES[shape])) == SetRow("u1", INPUTS, ("yes",), {"label": ("yes",)})


def history(votes, author="yes", **changes):
    kinds = ["verdict" if vote in ("correct", "incorrect") else "label" for vote in votes]
    row = {
        "task": "nli", "round": 1, "uid": "u1", "context": {"premise": INPUTS["premise"]},
        "input": {"hypothesis": INPUTS["hypothesis"]}, "author": None, "author_label": author,
        "model_prediction": None, "model_wrong": None,
        "validations": [{"worker": None, kind: v} for kind, v in zip(kinds, votes, strict=True)],
        "metadata": {"tags": ["numbers", "numbers", "names"]},
    }  # fmt: skip
    return row | changes


@pytest.mark.parametrize(
    ("votes", "author", "gold"),
    [
        (["yes", "yes"], None, "yes"),
        (["no", "no", "yes"], "yes", "no"),
        ([], "yes", "yes"),
        (["no"], "yes", "yes"),  # too few
        (["correct", "correct"], "no", "no"),
    ],
)
def test_history_takes_what_the_votes_agree_on(votes, author, gold, read):
    row = one(read(history(votes, author)))
    assert (row.inputs, row.gold) == (INPUTS, (gold,))
    assert row.slices == {"tag": ("numbers", "names"), "label": (gold,)}


@pytest.mark.parametrize(
    ("votes", "author"), [([], None), (["a", "b", "c"], "yes"), (["incorrect", "incorrect"], "yes")]
)
def test_history_without_an_answer_is_left_out(votes, author, read):
    assert read(history(votes, author)) == [SkippedRow(1, NO_ANSWER_REASON)]


def test_what_was_withdrawn_is_left_out(read):
    assert read(SHAPES["released"] | {"withdrawn": True}) == [SkippedRow(1, WITHDRAWN_REASON)]


@pytest.mark.parametrize(
    ("config", "answer", "gold"),
    [
        (LABELS, ["yes", "no"], ("yes", "no")),
        (SPANS, "shop", ("shop",)),
        (SPANS, {"text": "shop", "start": 2, "end": 6}, ("shop",)),
        (SPANS, ["A shop", {"text": "shop"}], ("A shop", "shop")),
        (MANY, ["a", "b"], (["a", "b"],)),
        (MANY, [], ([],)),
        (MANY, [["a"], ["a", "b"]], (["a"], ["a", "b"])),
        (config_of("answer, type: text"), ["3", "3", "three"], ("3", "3", "three")),
        (config_of("answer, type: number"), 3.5, (3.5,)),
    ],
)
def test_one_right_answer_or_many(config, answer, gold, read):
    row = FLAT | {config.answer_field: answer}
    if config.answer_field != "label":
        del row["label"]
    assert one(read(row, config=config)).gold == gold


def test_a_mark_of_the_answer_in_words_is_its_slice(read):
    row = {k: v for k, v in FLAT.items() if k != "label"} | {"labels": ["a", "b"]}
    assert one(read(row, config=MANY)).slices == {"labels": ("a", "b")}


def test_uids(read):
    bare = {k: v for k, v in FLAT.items() if k != "uid"}
    assert one(read(bare)).uid == compute_uid(INPUTS) == one(read(bare | {"tag": "x"})).uid
    assert one(read(bare | {"uid": 7})).uid == "7"
    (_, twice) = read([FLAT, FLAT | {"premise": "Another."}])
    assert twice.line == 2
    assert "line 1 (`uid` u1)" in twice.message
    (_, again, no) = read([bare, {**bare}, bare | {"premise": "Another."}])
    assert "line 1" in again.message
    assert isinstance(no, SetRow)


WRONG = [
    ({"premise": None}, "`premise` is missing; add it"),
    ({"premise": " ", "hypothesis": ""}, "`premise` is missing; add it; also: `hypothesis`"),
    ({"premise": 3}, "`premise`: Premise must be a text|`premise`: premise must be a text"),
    ({"year": "x"}, "`year`: year must be a number"),
    ({"label": "maybe"}, "`label`: .*must be one of: yes, no"),
    ({"label": ["yes", "maybe"]}, "`label`: .*must be one of"),
    ({"label": None}, "`label` is missing; add the right answer"),
    ({"label": []}, "`label` is missing"),
    ({"label": ["yes", None]}, "`label` is missing"),
    ({"hypotesis": "x"}, 'there is no field `hypotesis`; did you mean "hypothesis"'),
    ({"context": {"premise": "x"}}, "`premise` is there twice"),
    ({"context": "x"}, "`context` is not an object"),
    ({"uid": ""}, "`uid` isn't a text"),
    ({"uid": "x" * 201}, "`uid` isn't a text of 1 to 200"),
    ({"uid": True}, "`uid` isn't a text"),
    ({"tag": 3}, "`tag` is not a text"),
    ({"tags": ["a", None]}, "`tag` is not a text"),
    ({"tag": "x" * 101}, "`tag` has 101 characters; use at most 100"),
    ({"uid": "a\x00"}, "control character"),
    ({"premise": "a\x07"}, "control character"),
    ({"tag": "a\x07"}, "control character"),
    ({"input_json": "{}"}, "`context` is not an object; take the row as it was released"),
    ({"input_json": "{", "context": {}}, "not JSON"),
    ({"validations": []}, "the line has no field `premise`"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_rows_say_what_to_mend(changes, words, read):
    error = one(read(FLAT | changes))
    assert error.line == 1
    assert re.search(words, error.message)


@pytest.mark.parametrize(
    ("config", "answer", "words"),
    [
        (SPANS, "store", "“store” does not appear in `premise`; copy it"),
        (SPANS, 3, "`answer` is not a text"),
        (SPANS, {"start": 3}, "`answer` is not a text"),
        (MANY, None, "`labels` is missing"),
        (MANY, ["d"], "no choice “d”"),
        (MANY, "a", "must be a list"),
    ],
)
def test_wrong_answers_of_other_kinds(config, answer, words):
    with pytest.raises(BadRow, match=words):
        RowMaker(config).make_row(INPUTS, answer=answer)


def test_an_answer_without_its_passage_is_told_once():
    with pytest.raises(BadRow) as error:
        RowMaker(SPANS).make_row({"hypothesis": "It is open."}, answer="x")
    assert str(error.value).count("`premise`") == 1


def test_a_field_may_have_a_name_that_is_used_beside(read):
    text = TEXT.replace("name: source", "name: language").replace(" source,", "")
    text = text.replace("name: year, type: number", "name: input, type: text")
    text = text.replace("OUTPUT", "label").replace("ANSWER_NAME", "label")
    config = load_config(text.replace("ANSWER", "label, type: multiclass, labels: [a, b]"))
    row = one(read(FLAT | {"label": "a", "language": "t", "input": "i"}, config=config))
    assert row.inputs == INPUTS | {"language": "t", "input": "i"}
    assert row.slices == {"language": ("t",), "label": ("a",)}


def test_lengths_are_for_people_who_write(read):
    assert isinstance(one(read(FLAT | {"premise": "x" * 1000, "hypothesis": "?"})), SetRow)


@pytest.mark.parametrize("name", ["a.jsonl", "a.JSONL.gz", "a.ndjson"])
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_gzip_is_recognised(name, packed, read):
    assert isinstance(one(read(packed(json.dumps(FLAT).encode()), name)), SetRow)


def as_csv(*rows):
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def test_csv(read):
    found = read(
        as_csv(
            ["uid", "premise", "hypothesis", "label", "tags", "year", "source"],
            ["1", "[A] shop, open", "It is.", '["yes", "no"]', '["a", "b"]', "1990", ""],
            ["2", "{", "It is.", "no", "a", "", "paper"],
        ),
        "a.csv",
    )
    first = {"premise": "[A] shop, open", "hypothesis": "It is.", "year": 1990}
    assert found == [
        SetRow("1", first, ("yes", "no"), {"tag": ("a", "b"), "label": ("yes",)}),
        SetRow(
            "2",
            {"premise": "{", "hypothesis": "It is.", "source": "paper"},
            ("no",),
            {"tag": ("a",), "source": ("paper",), "label": ("no",)},
        ),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (as_csv(["premise", "hypotesis"]), 1, 'no field `hypotesis`; did you mean "hypothesis"'),
        (as_csv(["premise", "premise"]), 1, "column `premise` is there twice"),
        ("premise;hypotesis\n", 1, 'no field `hypotesis`; did you mean "hypothesis"'),
        (as_csv(["premise", "year"], ["a", "x"]), 2, "`year`: not JSON"),
        (as_csv(["premise", "label"], ["a", "[yes"]), 2, "`label`: not JSON"),
        (as_csv(["premise"], ["a", "b"]), 2, "2 cells, but the header has 1"),
        ('premise,label\n"a', 2, "not CSV"),
        (as_csv(["premise"], ["a"]), 2, "`hypothesis` is missing; add it; also: `label` is"),
    ],
)
def test_wrong_csv(text, line, words, read):
    error = read(text, "a.csv")[-1]
    assert error.line == line
    assert words in error.message


def parquet(rows, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    return (tmp_path / "x.parquet").read_bytes()


def test_parquet(read, tmp_path):
    rows = [FLAT | {"tag": None}, FLAT | {"uid": "u2", "tag": "x"}, {"uid": "u3"}]
    first, second, third = read(parquet(rows, tmp_path), "a.parquet")
    assert (first.uid, second.slices["tag"]) == ("u1", ("x",))
    assert third.line == 3
    assert re.findall(r"`(\w+)`", third.message) == ["premise", "hypothesis", "label"]


def test_parquet_with_history_and_odd_values(read, tmp_path):
    row = history(["yes", "yes"], metadata={"tags": ["a"], "day": date(2026, 1, 1)})
    assert one(read(parquet([row], tmp_path), "a.parquet")).gold == ("yes",)


def test_memory_that_lacks_is_no_damage_of_the_file(read, monkeypatch):
    def lacking(_):
        raise pa.ArrowMemoryError("malloc of size 1 failed")

    monkeypatch.setattr(pq, "ParquetFile", lacking)
    with pytest.raises(MemoryError):
        read(b"", "a.parquet")


@pytest.mark.parametrize("data", [b"", b"PAR1 and nothing", b"{}"])
def test_files_that_are_no_parquet(data, read):
    with pytest.raises(FileError, match="row 0"):
        read(data, "a.parquet")


def test_no_file_holds_the_pictures_that_models_read(read):
    pictures = load_config(
        TEXT.replace("{name: premise, type: text, max_length: 20}", "{name: premise, type: image}")
        .replace("ANSWER_NAME", "label")
        .replace("ANSWER", "label, type: multiclass, labels: ['yes', 'no']")
        .replace("OUTPUT", "label")
    )
    with pytest.raises(FileError, match="premise"):
        read(FLAT, config=pictures)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"model_wrong": True, "corrections": [{"answer": "In May."}]}, "In May."),
        ({"model_wrong": True, "corrections": []}, "In June."),
        ({"model_wrong": False}, "In June."),
    ],
)
def test_corrections_are_the_right_answers_where_the_model_is_wrong(changes, answer):
    asked = load_config(
        TEXT.replace("  - {name: ANSWER}\n", "")
        .replace("OUTPUT", "reply, type: text")
        .replace("exact_match, fields: [ANSWER_NAME]", "ask_user")
        .replace(", ANSWER_NAME]", "]")
    )
    row = {"uid": "u1", "label": "In June.", **changes}
    assert RowMaker(asked).make_released_row(row, INPUTS).gold == (answer,)


def test_a_released_span_is_the_author_s():
    span = {"text": "shop", "start": 2, "end": 6}
    row = {"uid": "u1", "label": "shop"}
    assert RowMaker(SPANS).make_released_row(row, {**INPUTS, "answer": span}).gold == ("shop",)


def test_files_of_no_known_format(read):
    with pytest.raises(FileError, match=r"^a.xlsx: "):
        read(b"", "a.xlsx")


def test_damaged_gzip(read):
    data = gzip.compress("\n".join(json.dumps(FLAT | {"uid": n}) for n in range(999)).encode())
    with pytest.raises(FileError, match="Damaged gzip"):
        read(data[:-20])
    with pytest.raises(FileError, match="Damaged gzip"):
        read(data[:50] + b"?" * 50 + data[100:])


def test_lines_without_end_and_too_many_of_them(read, monkeypatch):
    monkeypatch.setattr(set_files, "MAX_LINE_BYTES", 2**20)
    with pytest.raises(FileError, match="Line 2 has more than 1 MiB"):
        read(gzip.compress(b"\n" + b"x" * 2**21))
    monkeypatch.setattr(set_files, "MAX_LINES", 3)
    with pytest.raises(FileError, match="more than 3 lines"):
        read(b"\n" * 4)


@pytest.fixture
def file(tmp_path):
    def make(rows, **options):
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return SetFile(tmp_path / "a.jsonl", "a.jsonl", LABELS, **options)

    return make


def test_a_file_is_read_anew_each_time(file):
    rows = file([FLAT, history([], None), history([], None), SHAPES["released"] | {"withdrawn": 1}])
    for _ in range(2):
        assert [row.uid for row in rows] == ["u1"]
        assert rows.left_out == {NO_ANSWER_REASON: 2, WITHDRAWN_REASON: 1}
        assert rows.errors == []


def test_all_wrong_lines_are_named_in_the_end(file):
    rows = file([FLAT, {"uid": 1}, {"uid": 2}])
    with pytest.raises(InvalidLines, match=r"^line 2: `premise` is missing.* \(1 more\)$") as error:
        list(rows)
    assert [wrong.line for wrong in error.value.errors] == [2, 3]
    with pytest.raises(InvalidLines, match=r"answer$"):
        list(file([{"uid": 1}]))


def test_reading_stops_at_twenty_wrong_lines(file):
    rows = file([{"uid": n} for n in range(50)])
    with pytest.raises(InvalidLines):
        list(rows)
    assert len(rows.errors) == MAX_ERRORS


def test_wrong_lines_can_be_left_out(file):
    rows = file([{"uid": n} for n in range(50)] + [FLAT], skip_bad=True)
    assert [row.uid for row in rows] == ["u1"]
    assert len(rows.errors) == MAX_ERRORS


def test_a_file_with_too_many_wrong_lines_is_not_read_to_its_end(file, monkeypatch):
    monkeypatch.setattr(set_files, "MAX_PROBLEMS", 30)
    assert [row.uid for row in file([{"uid": 1}] * 29 + [FLAT], skip_bad=True)] == ["u1"]
    rows = file([{"uid": n} for n in range(50)], skip_bad=True)
    with pytest.raises(
        TooManyBadLines, match=r"stopped at line 30 .*`premise` is missing"
    ) as stopped:
        list(rows)
    assert str(pickle.loads(pickle.dumps(stopped.value))) == str(stopped.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["uid", "premise", "hypothesis", "label", "tag", "tags", "language", "context", "input",
     "input_json", "validations", "year", "source", "metadata", "withdrawn"]
)  # fmt: skip


@given(st.dictionaries(KEYS, JSON), st.sampled_from([LABELS, SPANS, MANY]))
def test_no_row_breaks_the_reader(row, config):
    try:
        made = RowMaker(config).build_from_file(row)
    except BadRow:
        return
    assert isinstance(made, SetRow | str)


COMPOSED = st.text(min_size=1, max_size=5).map(compose)


@given(st.lists(COMPOSED, min_size=1, max_size=5, unique=True))
def test_rows_come_back_as_they_are(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("set") / "a.jsonl"
    rows = [{"premise": text, "hypothesis": text, "label": "no"} for text in texts]
    path.write_text("\n".join(map(json.dumps, rows)))
    for text, found in zip(texts, read_set(path, path.name, LABELS), strict=True):
        if isinstance(found, SetRow):
            assert found.inputs == {"premise": text, "hypothesis": text}
        else:
            assert "missing" in found.message or "control character" in found.message


@pytest.mark.parametrize("label", ["Yes", " yes ", "ＹＥＳ"])
def test_a_right_label_has_the_text_of_the_configuration(read, label):
    row = one(read(FLAT | {"label": label, "kind": "SHORT"}))
    assert row.gold == ("yes",)
    assert row.slices == {"label": ("yes",), "kind": ("short",)}


def test_votes_for_one_label_in_two_spellings_agree(read):
    assert one(read(history(["No", "no "], None))).gold == ("no",)


def test_a_set_is_kept_in_nfc(read):
    premise, right = "Zoe\u0308 met Rene\u0301.", "Rene\u0301"
    flat = {name: value for name, value in FLAT.items() if name != "label"}
    row = one(read(flat | {"premise": premise, "answer": right, "tag": right}, config=SPANS))
    assert row.inputs["premise"] == "Zoë met René."
    assert row.gold == ("René",)
    assert row.slices["tag"] == ("René",)
