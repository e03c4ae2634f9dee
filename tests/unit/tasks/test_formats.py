"""Records of published data sets become rows, or have a reason. All texts here are made up."""

import gzip
import io
import json
import zipfile
from dataclasses import replace

import pytest

from tasks import formats
from tasks.formats import EXPORT_FORMATS, FORMATS, reading
from tasks.formats.base import PART_DESCRIPTIONS, ROW_KEY, Item, Vote
from tasks.formats.reading import iter_record_lines, make_table_reader
from tasks.line_files import FileError
from tests.support.published import read, without, wrong

# Files


def test_every_layout_says_what_it_is():
    writers = {name for name, form in EXPORT_FORMATS.items() if not form.required_fields}
    assert writers >= {"label_studio", "doccano", "argilla", "potato", "dynabench"}
    for name, form in FORMATS.items():
        assert bool(form.terms.license) == bool(form.terms.citation), name


SENTENCE = {
    "hit_ids": ["y1"],
    "sentence": "The soup was warm.",
    "indices_into_review_text": [0, 18],
    "model_0_label": "neutral",
    "model_0_probs": {"negative": 0.25, "positive": 0.25, "neutral": 0.5},
    "text_id": "r1-0000001",
    "review_id": "a",
    "review_rating": 4,
    "label_distribution": {
        "positive": ["w1", "w2"],
        "negative": [],
        "neutral": ["w3"],
        "mixed": [],
    },
    "gold_label": None,
}


def test_files_come_from_folders_and_archives(tmp_path):
    line = json.dumps(SENTENCE).encode()
    folder = tmp_path / "dynasent"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(line + b"\n\n" + line))
    (folder / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + line)
    (folder / "README.md").write_text("Read me.")
    lines = [*iter_record_lines(folder, FORMATS["dynasent"])]
    assert [one.position for one in lines] == [
        "a.jsonl:1",
        "deep/b.jsonl.gz:1",
        "deep/b.jsonl.gz:3",
    ]
    assert all(one.row["uid"] == "r1-0000001" for one in lines)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(folder / "a.jsonl", "v1/a.jsonl")
        archive.writestr("__MACOSX/a.jsonl", "{")
    [line] = iter_record_lines(tmp_path / "all.zip", FORMATS["dynasent"])
    assert line.position == "v1/a.jsonl:1"
    (only,) = iter_record_lines(folder / "a.jsonl", FORMATS["dynasent"])
    assert only.position == "1"


def test_files_that_hold_no_records(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no file of DynaSent"):
        read(tmp_path / "empty", "dynasent")
    (tmp_path / "no.zip").write_bytes(b"no")
    with pytest.raises(FileError, match=r"No \.zip"):
        read(tmp_path / "no.zip", "dynasent")
    whole = gzip.compress(json.dumps(SENTENCE).encode() * 100)
    (tmp_path / "cut.jsonl").write_bytes(whole[:-9])
    with pytest.raises(FileError, match="Damaged"):
        read(tmp_path / "cut.jsonl", "dynasent")
    (tmp_path / "a\x1b.jsonl").write_text("{}")
    with pytest.raises(FileError, match="has a control character"):
        read(tmp_path / "a\x1b.jsonl", "dynasent")


TASK = b'{"id": 1, "data": {"text": "a"}, "annotations": []}'


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (b'{"da', "after record 1"),
        (b'"\xff"]', "after record 1"),
        (b"9" * 5000 + b"]", "after record 1"),
        (b"[" * 1000 + b"]" * 1001, "Record 2 has more than 100 brackets"),
        (b'"' + b"a" * 2**18 + b'"]', "Record 2 has more than"),
    ],
)
def test_a_list_that_cannot_be_read_to_its_end(second, why, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 2**17)
    path = tmp_path / "project.json"
    path.write_bytes(b"\xef\xbb\xbf[" + TASK + b", " + second)
    lines = iter_record_lines(path, FORMATS["label_studio"])
    assert next(lines).row["uid"] == "1"
    with pytest.raises(FileError, match=why):
        next(lines)


def test_a_list_of_any_length_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 2**17)
    path = tmp_path / "project.json"
    path.write_bytes(b"[" + b",".join([TASK] * 6000) + b"]")
    assert sum(1 for _ in iter_record_lines(path, FORMATS["label_studio"])) == 6000


def test_what_is_no_list_of_records(tmp_path):
    (tmp_path / "a.json").write_text('"text"')
    with pytest.raises(FileError, match="JSON"):
        read(tmp_path / "a.json", "label_studio")
    (tmp_path / "a.jsonl").write_text('"text"')
    wrong(read(tmp_path / "a.jsonl", "snli"), "an object")


OTHER = {"anli": ("entailment", "neutral"), "dynasent": ("positive", "negative"),
         "hatemojibuild": ("hate", "not-hate"), "snli": ("entailment", "neutral")}  # fmt: skip
TEXTS = {
    "passage": "good or bad", "question": "Q?", "premise": "P.", "hypothesis": "H.", "text": "T.",
}  # fmt: skip


def item_of(tool, *, votes=(), metadata=(), more=(), **changes):
    """An item that each tool has a place for. changes: author, settled, model, the other label."""
    label, _ = labels = OTHER.get(tool, ("good", "bad"))
    said = {one: labels[1] if one in changes else label for one in ("author", "settled", "model")}
    votes = [Vote("j1", label)] * (2 if "more_votes" in changes else 1) + [*votes]
    kept = {
        "uid": "u1", "round": 5 if tool == "hatemojibuild" else 2, "input": {},
        "context": {"passage": "good or bad", **dict(more)},
        "author": "w", "author_label": said["author"], "metadata": dict(metadata),
        "model_prediction": {"model": "m", "label": said["model"], "probs": None},
        "validations": [
            {"worker": one.worker, "verdict" if one.is_verdict else "label": one.label}
            | ({"correction": one.correction} if one.correction else {})
            for one in votes
        ],
    }  # fmt: skip
    told = {"label": said["settled"], "model": "m", "prediction": said["model"], "votes": votes}
    texts = TEXTS | dict(more)
    told |= {"row_json": json.dumps(kept), "is_choice": bool(labels), "spans": ["s1"]}
    return Item("u1", texts, "label", **told)


def without_kept(value):
    if isinstance(value, dict):
        return {name: without_kept(one) for name, one in value.items() if name != ROW_KEY}
    return [*map(without_kept, value)] if isinstance(value, list) else value


WRONG = Vote("j2", "incorrect", is_verdict=True)
CHANGES = {
    "author": ({}, {"author": 1}),
    "settled": ({}, {"settled": 1}),
    "votes": ({}, {"more_votes": 1}),
    "verdicts": ({}, {"votes": [WRONG]}),
    "corrections": ({"votes": [WRONG]}, {"votes": [WRONG._replace(correction="Fix")]}),
    "models": ({}, {"model": 1}),
    "metadata": ({}, {"metadata": {"k": "v"}}),
    "fields": ({}, {"more": {"extra": "E"}}),
}


@pytest.mark.parametrize("tool", EXPORT_FORMATS)
def test_each_part_of_a_row_is_in_the_file_or_named_as_left_out(tool):
    """A part is in it where another value of it makes another record."""
    form, hidden, inside = EXPORT_FORMATS[tool], [], []
    assert {*CHANGES} == {*PART_DESCRIPTIONS}
    for part, changes in CHANGES.items():
        one, other = (form.build_record(item_of(tool, **change)) for change in changes)
        if None in (one, other):  # such a row is counted and has no place
            hidden.append(part)
            continue
        inside += [part] if one != other else []
        hidden += [part] if without_kept(one) == without_kept(other) else []
    assert {*form.hidden_parts} == {*hidden}
    assert len(form.hidden_descriptions) == len(hidden)
    assert form.keeps_rows == (f'"{ROW_KEY}": ' in json.dumps(form.build_record(item_of(tool))))
    assert not form.keeps_rows or {*inside} >= {*PART_DESCRIPTIONS} - {
        "settled"
    }  # which follows from the votes


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, "locked"])
def test_an_archive_that_cannot_be_unpacked(method, tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        how = zipfile.ZIP_STORED if method == "locked" else method
        archive.writestr("a.jsonl", "{}", compress_type=how)
    if method == "locked":
        whole = bytearray(path.read_bytes())
        whole[whole.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(whole)
    with pytest.raises(FileError, match="locked or packed oddly"):
        read(path, "dynasent")


def test_a_damaged_archive(tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", "{}")
    path.write_bytes(path.read_bytes().replace(b"PK\x03\x04", b"PK\x03\x05"))
    with pytest.raises(FileError, match=r"a\.jsonl: Damaged"):
        read(path, "dynasent")


def test_an_item_of_too_many_records(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 100)
    line = json.dumps({"id": 1, "text": "a" * 40, "label": []})
    (tmp_path / "a.jsonl").write_text(f"{line}\n{line}\n")
    wrong(read(tmp_path / "a.jsonl", "doccano"), "together")


def test_lines_that_are_no_records(of, tmp_path):
    wrong(of("dynasent", [[]]), "an object")
    wrong(of("dynasent", [{**SENTENCE, "sentence": "\x00"}]), "control character")
    (tmp_path / "bytes.jsonl").write_bytes(b'{"sentence": "\xff"}')
    wrong(read(tmp_path / "bytes.jsonl", "dynasent"), "byte 15 is not UTF-8")


# Data sets


def test_dynasent(of):
    prompt = {"prompt_sentence": "It was warm.", "review_id": "b", "review_rating": 1}
    second = {
        **without(without(SENTENCE, "model_0_label"), "model_0_probs"),
        "text_id": "r2-0000001",
        "sentence_author": "w9",
        "has_prompt": True,
        "prompt_data": prompt,
        "model_1_label": "positive",
        "model_1_probs": {"positive": 1},
    }
    sst = {**without(without(SENTENCE, "model_0_label"), "model_0_probs"), "text_id": "sst-1"}
    rows, reasons = of("dynasent", [SENTENCE, second, {**sst, "sst_label": "3"}])
    assert reasons == []
    first, edited, judged = rows
    assert (first["round"], first["uid"], first["context"]) == (1, "r1-0000001", {})
    assert first["model_prediction"] == {
        "model": "model_0",
        "label": "neutral",
        "probs": SENTENCE["model_0_probs"],
    }
    votes = [(vote["worker"], vote["label"]) for vote in first["validations"]]
    assert votes == [("w1", "positive"), ("w2", "positive"), ("w3", "neutral")]
    assert first["metadata"]["gold_label"] is None
    assert (edited["round"], edited["author"]) == (2, "w9")
    assert edited["context"] == {"prompt": "It was warm."}
    assert edited["metadata"]["review_id"] == "b"
    assert (judged["round"], judged["model_prediction"]) == (0, None)


def test_dynasent_that_is_none(of):
    wrong(of("dynasent", [without(SENTENCE, "sentence")]), "no `sentence`", "DynaSent has a text")
    wrong(of("dynasent", [{**SENTENCE, "text_id": "x"}]), "`text_id` is x", "r1-")
    wrong(of("dynasent", [{**SENTENCE, "label_distribution": {"a": "w"}}]), "a list")
    wrong(of("dynasent", [{**SENTENCE, "prompt_data": {"a": 1}}]), "prompt_data.prompt_sentence")
    wrong(of("dynasent", [{**SENTENCE, "sentence": True}]), "true or false")
    wrong(of("dynasent", [{**SENTENCE, "prompt_data": 3}]), "prompt_data is a number")


PAIR = {
    "uid": "u1",
    "context": "A cat sleeps.",
    "hypothesis": "An animal rests.",
    "label": "e",
    "model_label": "c",
    "emturk": True,
    "genre": "made up",
    "reason": "Cats are animals.",
    "tag": None,
}


def test_anli_with_its_verifiers(tmp_path):
    for name, lines in {
        "R2/dev.jsonl": [PAIR, {**PAIR, "uid": "u2"}],
        "R3/train.jsonl": [{**PAIR, "uid": "u3"}],
        "verifier_labels/verifier_labels_R1-3.jsonl": [
            {"uid": "u2", "verifier labels": ["e", "n", "e"]},
            {"uid": "elsewhere", "verifier labels": ["c", "c"]},
        ],
        "notes.jsonl": ["none of ANLI's"],
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(map(json.dumps, lines)))
    rows, reasons = read(tmp_path, "anli")
    assert reasons == []
    assert [(row["round"], row["uid"], len(row["validations"])) for row in rows] == [
        (2, "u1", 0), (2, "u2", 3), (3, "u3", 0),
    ]  # fmt: skip
    first, second, _ = rows
    assert first["context"] == {"premise": "A cat sleeps."}
    assert first["input"] == {"hypothesis": "An animal rests."}
    assert first["author_label"] == "entailment"
    assert first["model_prediction"] == {
        "model": "anli-r2",
        "label": "contradiction",
        "probs": None,
    }
    assert first["metadata"]["split"] == "dev"
    assert first["metadata"]["reason"] == "Cats are animals."
    assert second["validations"][1] == {"worker": None, "label": "neutral"}
    assert read(tmp_path / "R2" / "dev.jsonl", "anli")[0][0]["round"] == 2  # a file alone, too


def test_anli_that_is_none(of):
    wrong(of("anli", [PAIR]), "R1/dev.jsonl")
    wrong(of("anli", [{**PAIR, "label": "x"}], "R1/dev.jsonl"), "`label`", "e, n, c")
    wrong(of("anli", [PAIR, PAIR], "R1/dev.jsonl"), "u1", "too")
    wrong(of("anli", [without(PAIR, "uid")], "R1/dev.jsonl"), "no `uid`")
    wrong(of("anli", [{"uid": "u1", "verifier labels": ["q"]}], "R1/dev.jsonl"), "verifier labels")


def answer(text, start):
    return {"text": text, "answer_start": start}


ARTICLE = {
    "title": "Soup",
    "paragraphs": [
        {
            "context": "Soup is warm.",
            "qas": [
                {"id": "q1", "question": "What is warm?", "answers": [answer("Soup", 0)]},
                {
                    "id": "q2",
                    "question": "How is soup?",
                    "answers": [answer("warm", 8), answer("is warm", 5)],
                },
                {"id": "q3", "question": "Why?", "answers": [], "is_impossible": True},
            ],
        }
    ],
}  # fmt: skip


def test_squad(of):
    rows, reasons = of("squad", {"version": "v2.0", "data": [ARTICLE]}, "dev.json")
    assert reasons == []
    first, second, third = rows
    assert first["context"] == {"passage": "Soup is warm."}
    assert first["input"] == {"question": "What is warm?"}
    assert (first["uid"], first["author_label"]) == ("q1", "Soup")
    assert first["metadata"] == {"title": "Soup", "answer_start": 0}
    assert (second["author_label"], len(second["metadata"]["answers"])) == ("warm", 2)
    assert (third["author_label"], third["metadata"]["is_impossible"]) == (None, True)


def test_squad_that_is_none(of):
    asked = {"id": "q", "question": "?", "answers": [{"text": "a"}]}
    data = [{"paragraphs": [{"context": "a", "qas": [asked]}]}]
    wrong(of("squad", {"data": data}, "a.json"), "answers[1].answer_start", "a number")
    with pytest.raises(FileError, match="no list `data`"):
        of("squad", {"rows": []}, "a.json")
    with pytest.raises(FileError, match=r"after question 0: there is no `data\[…\]\.paragraphs`"):
        of("squad", {"data": [{}]}, "a.json")


def test_adversarial_qa(of):
    rows, _ = of("adversarial_qa", {"data": [ARTICLE]}, "aqa/2_dbert/dev.json")
    assert rows[0]["round"] == 2
    assert rows[0]["metadata"]["model_in_the_loop"] == "BERT"
    assert rows[0]["metadata"]["split"] == "dev"
    rows, reasons = of("adversarial_qa", {"data": [ARTICLE]}, "dev.json")
    assert rows == []
    assert all("1_dbidaf" in reason for _, reason in reasons)


def test_hatemojibuild(tmp_path):
    path = tmp_path / "validation.csv"
    header = "entry_id,text,type,target,round.base,round.set,set,split,label_gold,matched_id\n"
    path.write_text(header + '4,"Soup 🍲, warm",none,none,5,5a,original,validation,0,5\n')
    rows, reasons = read(path, "hatemojibuild")
    assert reasons == []
    [row] = rows
    assert (row["round"], row["uid"], row["author_label"]) == (5, "4", "not-hate")
    assert row["input"] == {"text": "Soup 🍲, warm"}
    assert row["metadata"]["split"] == "validation"
    assert row["metadata"]["round_set"] == "5a"
    path.write_text(header + "4,Soup,none,none,9,5a,original,validation,0,5\n")
    wrong(read(path, "hatemojibuild"), "round.base", "5, 6, 7")
    path.write_text(header + "4,Soup\n")
    with pytest.raises(FileError, match="line 2"):
        read(path, "hatemojibuild")


def test_snli(of):
    pair = {
        "annotator_labels": ["neutral", "entailment", "neutral"],
        "captionID": "c",
        "gold_label": "neutral",
        "pairID": "p1",
        "sentence1": "A cat sleeps.",
        "sentence1_parse": "(ROOT)",
        "sentence2": "The cat is grey.",
        "sentence2_binary_parse": "( )",
    }
    rows, _ = of("snli", [pair, {**pair, "annotator_labels": [], "gold_label": "-"}])
    first, unknown = rows
    assert (first["uid"], first["author_label"]) == ("p1", "neutral")
    assert [vote["label"] for vote in first["validations"]] == ["entailment", "neutral"]
    assert first["metadata"] == {"captionID": "c", "gold_label": "neutral"}
    assert (unknown["author_label"], unknown["validations"]) == (None, [])
    wrong(of("snli", [{**pair, "annotator_labels": ["maybe"]}]), "maybe", "entailment")
    wrong(of("snli", [without(pair, "captionID")]), "captionID")  # as in MultiNLI


def test_tables_part_their_cells_by_what_they_are_told():
    file = io.BufferedReader(io.BytesIO(b"a\tb\n1\t2\n"))
    assert [*make_table_reader("\t")(file)] == [(2, b'{"a": "1", "b": "2"}')]


def test_another_packages_format_joins_unless_the_name_is_taken(monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", dict(formats.FORMATS))
    monkeypatch.setattr(formats, "EXPORT_FORMATS", dict(formats.EXPORT_FORMATS))
    (written, form), *_ = formats.EXPORT_FORMATS.items()
    formats.register_format("theirs", form)
    formats.register_format("read_only", replace(form, build_record=None))
    assert formats.FORMATS["theirs"] is formats.EXPORT_FORMATS["theirs"] is form
    assert "read_only" in formats.FORMATS
    assert "read_only" not in formats.EXPORT_FORMATS
    with pytest.raises(ValueError, match=written):
        formats.register_format(written, form)
