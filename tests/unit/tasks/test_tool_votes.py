"""Answers of annotation tools become the votes that people gave, each once. Texts are made up."""

import json
import zipfile

import pytest

from tasks.formats import FORMATS
from tasks.formats.reading import iter_record_lines
from tasks.line_files import FileError
from tests.support.published import wrong


def lines(path, tool):
    return [*iter_record_lines(path, FORMATS[tool])]


def packed(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, records in files.items():
            archive.writestr(name, "\n".join(map(json.dumps, records)))
    return path


def labels(line):
    return [(vote["worker"], vote["label"]) for vote in line.row["validations"]]


def annotated(said, who, at, **more):
    result = {"from_name": "tone", "to_name": "t", "type": "choices", "value": {"choices": said}}
    return {"completed_by": who, "updated_at": at, "result": [result], **more}


def test_label_studio_tells_the_latest_annotation_last(tmp_path):
    spans = {"from_name": "ner", "type": "labels", "value": {"labels": ["LOC"]}}
    task = {
        "id": 1,
        "data": {"text": "a"},
        "annotations": [
            annotated(["bad"], 2, "2026-01-02T00:00:00Z"),
            annotated(["good"], 2, "2026-01-01T23:00:00+00:00"),
            {"completed_by": 3, "was_cancelled": True, "result": [spans]},
            {"completed_by": 3, "was_cancelled": True, "result": None},
            annotated([""], 3, None),
            annotated([], 4, "no date"),
        ],
        "drafts": [{"id": 1}],
        "predictions": [3, 4, {"result": []}],
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps([task]))
    [line] = lines(path, "label_studio")
    assert labels(line) == [("2", "good"), ("2", "bad")]
    assert [*line.left_out_counts.values()] == [2, 2, 1, 2, 1]


def test_potato_1_has_everybody_in_one_file_beside_each_persons(tmp_path):
    def answer(said, **more):
        return {"displayed_text": "a", "label_annotations": {"tone": {said: said}}, **more}

    whole = [
        answer("good", user_id="ann", instance_id="p1"),
        answer("bad", user_id="bob", instance_id="p1"),
        answer("good", user_id="eve", instance_id="p1"),
    ]
    files = {
        "annotated_instances.jsonl": whole,
        "ann/annotated_instances.jsonl": [answer("good", id="p1")],
        "bob/annotated_instances.jsonl": [answer("bad", id="p1")],
    }
    [line] = lines(packed(tmp_path / "out.zip", files), "potato")
    assert sorted(labels(line)) == [("ann", "good"), ("bob", "bad"), ("eve", "good")]


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ({"slider": "50"}, "50"),
        ({"number": 3}, "3"),
        ({"select-one": "mixed "}, "mixed"),
        ({"free_response": "It is."}, "It is."),
        ({"text_box": "why"}, "why"),
        ({"taste": "4", "price": ""}, "4"),
        ({"3": "3"}, "3"),
        ({"good": "good", "bad": False}, "good"),
        ({"good": "true"}, "good"),
        ({"good": True, "bad": None}, "good"),
    ],
)
def test_potatos_answers_are_values(of, said, label):
    record = {"id": "i1", "text": "a", "user_id": "ann", "labels": {"tone": said}}
    [row], _ = of("potato", [record])
    assert row["validations"] == [{"worker": "ann", "label": label}]


def test_potatos_marks_and_several_answers_are_refused(of):
    record = {"id": "i1", "text": "a", "labels": {}}
    for key in ("spans", "links", "span_annotations", "link_annotations"):
        wrong(of("potato", [{**record, key: {"ner": [{"start": 1}]}}]), key)
    wrong(of("potato", [{**record, "labels": {"q": {"a": "1", "b": "2"}}}]), "labels.q", "a, b")
    wrong(of("potato", [{**record, "labels": {"q": {"a": [1]}}}]), "`a`")


def test_empty_answers_are_counted(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "i1", "text": "a", "labels": {"q": {}}}))
    [line] = lines(tmp_path, "potato")
    assert (labels(line), [*line.left_out_counts.values()]) == ([], [1])
    responses = [
        {"value": "good", "user_id": "a", "status": "submitted"},
        {"value": "bad", "user_id": "b", "status": "draft"},
        {"value": None, "user_id": "c", "status": "discarded"},
        {"value": None, "user_id": "d"},
    ]
    suggestions = {"tone": {"value": "bad"}, "topic": {"value": "soup"}}
    record = {"id": "r", "fields": {"text": "a"}, "responses": {"tone": responses}}
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{**record, "suggestions": suggestions}]))
    [line] = lines(path, "argilla")
    assert (labels(line), [*line.left_out_counts.values()]) == ([("a", "good")], [1, 1, 1, 1])


SHOWN = "dynabench_label"


def doccano(*labels, shown=("good", "good", "")):
    return [
        {"id": number, "text": f"t{number}", "label": label, SHOWN: given}
        for number, (label, given) in enumerate(zip(labels, shown, strict=True), 1)
    ]


def test_agreeing_votes_from_doccano_count_but_for_the_uploaders(tmp_path):
    files = {
        "admin.jsonl": doccano(["good"], ["good"], []),
        "ann.jsonl": doccano(["good"], ["good"], ["bad"]),
        "bob.jsonl": doccano(["good"], [], [" "]),
    }
    first, second, third = lines(packed(tmp_path / "a.zip", files), "doccano")
    assert labels(first) == [("ann", "good"), ("bob", "good")]
    assert labels(second) == [("ann", "good")]
    assert labels(third) == [("ann", "bad")]
    assert [*first.left_out_counts.values()] == [1]


def test_an_uploader_of_doccano_who_voted_is_found(tmp_path):
    files = {
        "admin.jsonl": doccano(["bad"], ["good"], ["bad"]),
        "bob.jsonl": doccano(["good"], [], []),
    }
    first, second, third = lines(packed(tmp_path / "a.zip", files), "doccano")
    assert labels(first) == [("admin", "bad"), ("bob", "good")]
    assert (labels(second), labels(third)) == ([], [("admin", "bad")])


def test_whom_doccano_does_not_tell_apart_is_asked_for(tmp_path):
    files = {
        "admin.jsonl": doccano(["good"], ["good"], []),
        "ann.jsonl": doccano(["good"], ["good"], []),
    }
    with pytest.raises(FileError, match="admin, ann"):
        lines(packed(tmp_path / "a.zip", files), "doccano")
    del files["admin.jsonl"]
    files["bob.jsonl"] = doccano(["good"], [], [])
    alone = lines(packed(tmp_path / "b.zip", files), "doccano")
    assert [labels(line) for line in alone] == [[("bob", "good")], [], []]


def test_doccanos_common_file_does_not_tell_who_agreed(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(map(json.dumps, doccano(["good"], ["bad"], ["bad"]))) + "\nno")
    first, second, third, bad = lines(path, "doccano")
    assert (labels(first), labels(second), labels(third)) == ([], [(None, "bad")], [(None, "bad")])
    assert bad.error


# Other names, and other files


def test_doccanos_text_by_other_names_and_ids(of):
    for name in ("data", "Satz"):
        [row], _ = of("doccano", [{"id": "r-1", name: "a", "label": [], "n": 3}], "a.json")
        assert (row["uid"], row["input"], row["metadata"]) == ("r-1", {"text": "a"}, {"n": 3})
    [row], _ = of("doccano", [{"id": 1, "text": "a", "data": "b", "label": []}])
    assert (row["input"], row["metadata"]) == ({"text": "a"}, {"data": "b"})
    wrong(of("doccano", [{"id": 1, "Satz": "a", "Quelle": "b", "label": []}]), "Satz, Quelle")
    wrong(of("doccano", [{"id": 1, "n": 3, "label": []}]), "no `text`")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("items.jsonl", '{"pid": "p1", "sentence": "a", "n": 3}\n'),
        ("items.json", '[{"pid": "p1", "sentence": "a", "n": 3}]'),
        ("data/items.csv", "pid,sentence\np1,a\n"),
        ("items.tsv", "id\ttext\np1\ta\n"),
    ],
)
def test_potatos_data_file_in_other_words(tmp_path, name, text):
    said = {"instance_id": "p1", "user_id": "ann", "labels": {"tone": {"good": "good"}}}
    files = {name: text, "annotations.jsonl": json.dumps(said), "config.json": "{}",
             "annotations.csv": "x", "ann/user_state.json": '{"id": 1}'}  # fmt: skip
    for file, content in files.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    [line] = lines(tmp_path, "potato")
    assert (line.row["uid"], line.row["input"], labels(line)) == (
        "p1", {"text": "a"}, [("ann", "good")],
    )  # fmt: skip


def test_potatos_data_file_that_could_mean_several_things(of):
    wrong(of("potato", [{"id": "1", "sentence": "a", "source": "b"}]), "sentence, source")
    wrong(of("potato", [{"id": "1", "n": 3}]), "no `text`")
    wrong(of("potato", [{"pid": "1", "uid": "b", "n": 3}]), "no `id`")
    with pytest.raises(FileError, match="`jsonl`"):
        of("potato", [{"instance_id": "1", "user_id": "b", "tone.good": "good"}])


@pytest.mark.parametrize("tool", ["label_studio", "doccano", "argilla"])
def test_other_exports_are_named(tmp_path, tool):
    path = tmp_path / "a.csv"
    path.write_text("id,text,label\n1,a,good\n")
    with pytest.raises(FileError, match=FORMATS[tool].title):
        lines(path, tool)
    path.write_text("")
    assert lines(path, tool) == []


def test_label_studios_short_export_is_named(of):
    with pytest.raises(FileError, match="JSON-MIN"):
        of("label_studio", [{"id": 1, "text": "a", "annotation_id": 3}], "a.json")
