"""Exports as the tools write them are read for what people said. Texts are made up.

The shapes are those of Label Studio 1.23, Potato 1.2 and 2.12, Argilla 2.8 and doccano 1.8.
"""

import json
import zipfile

import pytest

from tasks.formats import FORMATS
from tasks.formats.base import convert_turns, split_fields
from tasks.formats.reading import iter_record_lines
from tasks.line_files import FileError
from tests.support.published import wrong


def lines(path, tool, question=""):
    return [*iter_record_lines(path, FORMATS[tool], question)]


def written(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    is_list = path.suffix == ".json"
    path.write_text(json.dumps(records) if is_list else "\n".join(map(json.dumps, records)))
    return path


def labels(line):
    return [(vote["worker"], vote["label"]) for vote in line.row["validations"]]


# Several questions


def chosen(control, label, kind="choices"):
    key = {"choices": "choices", "textarea": "text"}[kind]
    return {"from_name": control, "to_name": "text", "type": kind, "value": {key: [label]}}


def two_questions(tool):
    """One item on which two people answered both of `tone` and `why`, and a model, too."""
    if tool == "label_studio":
        annotations = [
            {
                "completed_by": who,
                "result": [chosen("tone", "good"), chosen("why", "a", "textarea")],
            }
            for who in (1, 2)
        ]
        predictions = [{"model_version": "m", "result": [chosen("tone", "bad")]}]
        return [{"id": 1, "data": {"text": "a"}, "annotations": annotations,
                 "predictions": predictions}]  # fmt: skip
    if tool == "argilla":
        responses = {
            name: [{"value": value, "user_id": who} for who in ("1", "2")]
            for name, value in (("tone", "good"), ("why", "a"))
        }
        return [{"id": "1", "fields": {"text": "a"}, "responses": responses,
                 "suggestions": {"tone": {"value": "bad", "agent": "m"}}}]  # fmt: skip
    answers = {"tone": {"good": "good"}, "why": {"text_box": "a"}}
    return [
        {"id": "1", "text": "a"},
        *({"instance_id": "1", "user_id": who, "labels": answers} for who in ("1", "2")),
    ]


@pytest.mark.parametrize("tool", ["label_studio", "argilla", "potato"])
def test_of_several_questions_one_is_named(tmp_path, tool):
    records = two_questions(tool)
    path = written(tmp_path / ("a.jsonl" if tool == "potato" else "a.json"), records)
    [line] = lines(path, tool)
    assert "tone, why" in line.error
    [line] = lines(path, tool, "tone")
    assert (labels(line), line.questions) == ([("1", "good"), ("2", "good")], ("tone",))
    [other] = lines(path, tool, "why")
    assert (labels(other), other.questions) == ([("1", "a"), ("2", "a")], ("why",))
    if tool != "potato":
        assert line.row["model_prediction"]["label"] == "bad"
        assert other.row["model_prediction"] is None
    [none] = lines(path, tool, "what")
    assert (labels(none), none.questions) == ([], ())


def test_spans_beside_the_question_that_is_named_are_no_answers_to_it(tmp_path):
    record = {"instance_id": "1", "user_id": "ann", "labels": {"tone": {"good": "good"}},
              "spans": {"ner": [{"start": 0}]}}  # fmt: skip
    path = written(tmp_path / "a.jsonl", [{"id": "1", "text": "a"}, record])
    [line] = lines(path, "potato", "tone")
    assert labels(line) == [("ann", "good")]
    [line] = lines(path, "potato", "ner")
    assert "spans" in line.error


def test_what_is_no_annotation_stays_as_it_is():
    only = FORMATS["label_studio"].select_answers
    assert only({"annotations": [3, {"result": None}], "predictions": 4}, "q") == {
        "annotations": [3, {"result": None}], "predictions": 4,
    }  # fmt: skip
    assert FORMATS["argilla"].select_answers({"q.responses": [], "r.responses": []}, "q") == {
        "q.responses": []
    }


def test_notes_on_answers_are_counted(tmp_path):
    noted = {**chosen("tone", "good"), "meta": {"text": ["Really?"]}}
    task = {"id": 1, "data": {"text": "a"}, "annotations": [{"completed_by": 1, "result": [noted]}]}
    [line] = lines(written(tmp_path / "a.json", [task]), "label_studio")
    assert (labels(line), [*line.left_out_counts.values()]) == ([("1", "good")], [1])


def test_a_prediction_for_another_question_is_none(tmp_path):
    task = {
        "id": 1,
        "data": {"text": "a"},
        "annotations": [{"completed_by": 1, "result": [chosen("tone", "good")]}],
        "predictions": [{"result": [chosen("topic", "food")]}],
    }
    [line] = lines(written(tmp_path / "a.json", [task]), "label_studio")
    assert (line.row["model_prediction"], [*line.left_out_counts.values()]) == (None, [1])


# Potato


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([{"good": "tone:::good"}, {"bad": "tone:::bad"}], ["good", "bad"]),
        ([{"good": "1"}, {"bad": "2"}, {"good": "1"}], ["good", "bad", "good"]),
        ([{"good": "g"}], ["good"]),
        ([{"scale_4": "4"}, {"scale_10": "0"}], ["4", "10"]),
        ([{"good": "good"}, {"bad": True}], ["good", "bad"]),
        ([{"taste": "3"}, {"taste": "4"}], ["3", "4"]),
        ([{"reason": "It is."}], ["It is."]),
        ([{"text_box": "true"}, {"text_box": "5"}], ["true", "5"]),
    ],
)
def test_a_choice_of_potato_1_counts_by_its_name(tmp_path, said, expected):
    records = [
        {"id": "p1", "displayed_text": "a", "user_id": str(number),
         "label_annotations": {"tone": inputs}}
        for number, inputs in enumerate(said)
    ]  # fmt: skip
    [line] = lines(written(tmp_path / "annotated_instances.jsonl", records), "potato")
    assert [label for _, label in labels(line)] == expected


def test_a_slider_of_potato_1_counts_by_its_value(tmp_path):
    record = {"id": "p1", "displayed_text": "a", "label_annotations": {"slider": {"tone": "5"}}}
    [line] = lines(written(tmp_path / "ann" / "annotated_instances.jsonl", [record]), "potato")
    assert labels(line) == [("ann", "5")]


ITEM = {"id": "1", "text": "a", "source": "made up"}
ANSWER = {"instance_id": "1", "user_id": "ann", "labels": {"tone": {"good": "good"}}}


@pytest.mark.parametrize(
    "name",
    [
        "annotations.csv",
        "out/annotations.tsv",
        "annotated_instances.csv",
        "ann/user_state.json",
    ],
)
def test_answers_of_potato_that_are_not_read_are_not_passed_over(tmp_path, name):
    written(tmp_path / "items.jsonl", [ITEM])
    other = written(tmp_path / name, [])
    other.write_text("instance_id,user_id,tone.good\n1,ann,good\n")
    with pytest.raises(FileError, match="jsonl"):
        lines(tmp_path, "potato")
    written(tmp_path / "annotations.jsonl", [ANSWER])
    [line] = lines(tmp_path, "potato")
    assert labels(line) == [("ann", "good")]


@pytest.mark.parametrize(
    "text",
    [
        "instance_id,user_id,tone.good\n1,ann,good\n",
        "user,instance_id,displayed_text,tone:::good\nann,1,a,good\n",
    ],
)
def test_tables_of_potatos_answers_are_named_once(tmp_path, text):
    path = tmp_path / "annotations.csv"
    path.write_text(text)
    with pytest.raises(FileError, match="`jsonl`"):
        lines(path, "potato")


def test_an_answer_of_potato_without_its_labels_names_the_export_to_choose(tmp_path):
    path = written(tmp_path / "annotations.json", [{"instance_id": "1", "displayed": "a"}])
    [error] = lines(path, "potato")
    assert "jsonl" in error.error


def test_a_whole_project_of_potato_is_read_once(tmp_path):
    written(tmp_path / "data" / "items.jsonl", [ITEM])
    for folder in ("exports", "annotation_output/exports"):
        written(tmp_path / folder / "annotations.jsonl", [ANSWER])
    written(tmp_path / "annotation_output/ann/annotation_history.jsonl", [{"action": "add"}])
    written(tmp_path / "annotation_output/ann/user_state.json", [])
    written(tmp_path / "annotation_output/pocket/device_visits.json", [])
    [line] = lines(tmp_path, "potato")
    assert (labels(line), line.left_out_counts) == ([("ann", "good")], {})


def test_answers_of_potato_1_in_json_are_lines_for_everybody(tmp_path):
    record = {"user_id": "ann", "instance_id": "1", "displayed_text": "a",
              "label_annotations": {"tone": {"good": "tone:::good"}}}  # fmt: skip
    folder = tmp_path / "agreement study"
    own = {**record, "id": "1"}
    written(folder / "ann" / "annotated_instances.jsonl", [own])
    (folder / "annotated_instances.json").write_text(json.dumps(record))
    [line] = lines(folder, "potato")
    assert labels(line) == [("ann", "good")]
    (folder / "ann" / "annotated_instances.jsonl").unlink()
    [line] = lines(folder, "potato")
    assert labels(line) == [("ann", "good")]


def test_machines_are_no_people(tmp_path):
    person = {**ANSWER, "annotator_origin": {"kind": "human"}}
    machine = {**ANSWER, "user_id": "bot", "annotator_origin": {"kind": "llm"}}
    [line] = lines(written(tmp_path / "annotations.jsonl", [ITEM, person, machine]), "potato")
    assert (labels(line), [*line.left_out_counts.values()]) == ([("ann", "good")], [1])


# Argilla

FLAT = {
    "id": "r1", "status": "pending", "_server_id": "s", "text": "a", "n": 3, "v": [0.5, 0.25],
    "tone.responses": ["good", "bad", "bad"],
    "tone.responses.users": ["u1", "u2", "u3"],
    "tone.responses.status": ["submitted", "draft", "discarded"],
    "tone.suggestion": "bad", "tone.suggestion.score": 0.5, "tone.suggestion.agent": "m",
}  # fmt: skip


def test_argillas_flat_records_tell_who_submitted(tmp_path):
    unanswered = {name: None if "." in name else value for name, value in FLAT.items()}
    for name in ("a.json", "a.jsonl"):
        first, second = lines(written(tmp_path / name, [FLAT, unanswered]), "argilla")
        assert (first.row["uid"], first.row["input"]) == ("r1", {"text": "a"})
        assert first.row["metadata"] == {"n": 3}
        assert first.row["model_prediction"] == {"model": "m", "label": "bad", "probs": None}
        assert (labels(first), sorted(first.left_out_counts.values()), first.note_counts) == (
            [("u1", "good")], [1, 1, 1], {},
        )  # fmt: skip
        assert (labels(second), second.row["model_prediction"]) == ([], None)


@pytest.mark.parametrize(
    ("suggested", "said", "label"),
    [(1, ["good"], None), (1, None, None), (1, [3], "1"), ("bad", ["good"], "bad")],
)
def test_numbers_of_labels_that_argilla_suggests_are_no_labels(of, suggested, said, label):
    people = {"users": ["u1"], "status": ["submitted"]} if said else {}
    more = {f"tone.responses.{name}": one for name, one in people.items()}
    record = {**FLAT, "tone.responses.users": None, "tone.responses.status": None, **more}
    record |= {"tone.responses": said, "tone.suggestion": suggested}
    [row], _ = of("argilla", [record], "a.jsonl")
    found = row["model_prediction"]
    assert (found and found["label"]) == label


def test_argillas_lists_that_do_not_fit_are_refused(of):
    short = {**FLAT, "tone.responses.users": ["u1"]}
    wrong(of("argilla", [short], "a.json"), "tone.responses")
    for value in (["a"], True, {"a": 1}, 0.5):
        record = {"id": "1", "fields": {"text": "a"}, "responses": {"m": [
            {"value": value, "user_id": "u"}]}}  # fmt: skip
        wrong(of("argilla", [record], "a.json"), "responses.m")
    wrong(of("argilla", [{"id": ["1"], "fields": [{}], "responses": [{}]}]), "to_json")


def test_responses_without_a_status_are_noted(tmp_path):
    response = {"value": "good", "user_id": "u1"}
    record = {
        "id": "1", "fields": {"text": "a"}, "responses": {"tone": [response]},
        "vectors": {"v": [0.5]}, "suggestions": {"tone": {"value": ["a"]}},
    }  # fmt: skip
    [line] = lines(written(tmp_path / "a.json", [record]), "argilla")
    assert ([*line.note_counts.values()], [*line.left_out_counts.values()]) == ([1], [1, 1])
    several = {**record, "responses": {}, "suggestions": {"a": {"value": "x"}, "b": {"value": "y"}}}
    [line] = lines(written(tmp_path / "a.json", [several]), "argilla")
    assert (line.row["model_prediction"], [*line.left_out_counts.values()]) == (None, [1, 2])


def test_the_folder_that_argilla_writes(tmp_path):
    written(tmp_path / "records.json", [{"fields": {"text": "a"}, "responses": {}}])
    written(tmp_path / ".argilla" / "settings.json", [])
    (tmp_path / ".argilla" / "dataset.json").write_text('{"name": "d"}')
    [line] = lines(tmp_path, "argilla")
    assert line.row["input"] == {"text": "a"}


# doccano, and files of other kinds


def test_doccanos_comments_are_counted_and_intents_refused(tmp_path, of):
    record = {"id": 1, "text": "a", "label": ["good"], "Comments": ["why", "so"]}
    [line] = lines(written(tmp_path / "ann.jsonl", [record]), "doccano")
    assert [*line.left_out_counts.values()] == [2]
    wrong(of("doccano", [{"id": 1, "text": "a", "cats": ["buy"], "entities": []}]), "intents")


@pytest.mark.parametrize("tool", ["label_studio", "doccano", "argilla", "potato"])
def test_an_object_over_several_lines_is_named_once(tmp_path, tool):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"images": []}, indent=1))
    with pytest.raises(FileError, match="one JSON object"):
        lines(path, tool)


@pytest.mark.parametrize("tool", ["label_studio", "doccano", "argilla"])
def test_an_archive_of_other_exports_says_which_to_choose(tmp_path, tool):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("ann.csv", "id,text,label\n1,a,good\n")
    with pytest.raises(FileError, match="Choose"):
        lines(tmp_path / "a.zip", tool)


# What people read


def test_what_is_no_text_is_read_as_json():
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    data = {"text": "a", "n": 3, "yes": True, "empty": None, "o": {"文": [1]}, "talk": talk}
    assert split_fields(data) == {
        "context": {
            "talk": [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Yes?"}]
        },
        "input": {"text": "a", "n": 3, "yes": True, "empty": None, "o": '{"文": [1]}'},
    }


@pytest.mark.parametrize(
    "value",
    [
        [], "a", [3], [{"role": "user"}], [{"role": "tool", "content": "a"}],
        [{"role": "user", "content": 3}], [{"role": "user", "content": " "}],
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}],
        [{"role": "user", "content": "a", "name": "b"}],
    ],
)  # fmt: skip
def test_what_is_no_conversation(value):
    assert convert_turns(value) == []


# What an export to a tool brought along


def exported(*votes):
    kept = {"uid": "u1", "context": {}, "input": {"text": "a"}, "validations": [
        {"worker": "h1", "label": "good"}, {"worker": None, "verdict": "flagged"}]}  # fmt: skip
    annotations = [
        {"completed_by": 1, "result": [{**chosen(control, said), "meta": {"judge": who}}]}
        for who, control, said in votes
    ]
    return {"id": 1, "data": {"text": "a", "dynabench": json.dumps(kept)},
            "annotations": annotations}  # fmt: skip


def test_a_vote_that_was_changed_in_label_studio_is_counted(tmp_path):
    task = exported(("h1", "label", "bad"), (None, "verdict", "flagged"))
    [line] = lines(written(tmp_path / "a.json", [task]), "label_studio")
    assert [*line.left_out_counts.values()] == [1]
    assert [vote["worker"] for vote in line.row["validations"]] == ["h1", None]
    same = exported(("h1", "label", " good"), (None, "verdict", "flagged"))
    [line] = lines(written(tmp_path / "a.json", [same]), "label_studio")
    assert line.left_out_counts == {}


def test_votes_come_back_though_the_row_did_not(tmp_path):
    task = exported(("h1", "label", "good"))
    del task["data"]["dynabench"]
    [line] = lines(written(tmp_path / "a.json", [task]), "label_studio")
    assert labels(line) == [("h1", "good")]
