"""Dynabench's own files of every version become rows; rows go out in the layouts of data sets."""

import json

import pytest

from tasks.formats import EXPORT_FORMATS, FORMATS, build_file_name, write_tool_file
from tasks.formats.base import Item, Vote
from tests.support.published import read, wrong

VOTES = [["correct", "user", "v1", {"annotator_id": "A1B2"}], ["flagged", "owner", "v2"],
         ["placeholder", "user", "v3"], ["correct", "owner", None]]  # fmt: skip
FIRST = {
    "id": 7, "cid": 3, "tag": None, "text": "An animal rests.", "example_explanation": "Cats are.",
    "metadata_json": '{"annotator_id": "A1B2", "fun": 1}', "target_pred": "0", "model_preds": "1",
    "target_model": "https://fhcxpbltv0.example/r1", "model_wrong": True, "retracted": False,
    "flagged": False, "total_verified": 1, "context": {"context": "A cat sleeps.", "id": 3},
    "anon_uid": "a1", "validations": VOTES,
}  # fmt: skip
DYNATASK = {
    "id": 8, "tag": "cats", "input_json": '{"hypothesis": "It rests.", "label": "entailment"}',
    "output_json": '{"label": "neutral", "prob": {"entailment": 0.25, "neutral": 0.75}}',
    "metadata_json": None, "model_endpoint_name": "ts-nli", "model_wrong": True, "split": "train",
    "retracted": False, "context": {"context_json": '{"context": "A cat sleeps."}', "tag": None},
    "anon_uid": "a1", "validations": VOTES,
}  # fmt: skip
SECOND = {
    "example_info": {
        "id": 9, "uid": 44, "input_json": '{"question": "When?", "answer": "in 1840"}',
        "output_json": '{"answer": "1840"}', "model_wrong": 0, "metadata_json": "{}",
        "model_endpoint_name": None, "_sa_instance_state": None,
    },
    "context_info": {"context_json": '{"context": "Built in 1840."}', "_sa_instance_state": None},
}  # fmt: skip
RELEASED = {
    "uid": "u1", "round": 3, "task": "qa", "withdrawn": False, "anon_uid": None, "label": "1840",
    "context": {"context_json": '{"passage": "Built in 1840."}', "tag": ""}, "split": "dev",
    "input_json": '{"question": "When?", "answer": {"text": "1840", "start": 9, "end": 13}}',
    "output_json": '{"answer": {"text": "Built", "start": 0, "end": 5}}', "metadata_json": "{}",
    "model_endpoint_name": "qa_m0", "model_wrong": True, "validations": [["correct", "user", "v"]],
}  # fmt: skip


def test_the_first_export(of):
    [row], _ = of("dynabench", [FIRST], "export-r2.json")
    assert (row["uid"], row["round"], row["author"]) == ("7", 2, "a1")
    assert (row["context"], row["input"]) == (
        {"context": "A cat sleeps."},
        {"text": "An animal rests."},
    )
    assert (row["author_label"], row["model_prediction"]["label"], row["model_wrong"]) == (
        "0",
        "1",
        True,
    )
    assert row["validations"] == [
        {"worker": "v1", "verdict": "correct"},
        {"worker": "v2", "verdict": "flagged"},
    ]
    assert row["metadata"] == {"example_explanation": "Cats are.", "fun": 1}
    assert "A1B2" not in json.dumps(row)


def test_exports_of_dynatask_and_of_version_2(of):
    [row], _ = of("dynabench", [DYNATASK], "all.json")
    assert row["input"] == {"hypothesis": "It rests."}
    assert row["author_label"] == "entailment"
    probs = {"entailment": 0.25, "neutral": 0.75}
    assert row["model_prediction"] == {"model": "ts-nli", "label": "neutral", "probs": probs}
    assert row["metadata"] == {"tag": "cats", "split": "train"}
    [row], _ = of("dynabench", [SECOND], "data.jsonl")
    assert (row["uid"], row["author"]) == ("9", None)
    assert (row["author_label"], row["model_prediction"]["label"]) == ("in 1840", "1840")
    assert row["model_wrong"] is False  # by its own rule, though the texts differ
    asked = {**SECOND["example_info"], "input_json": '{"text": "Hello"}', "model_wrong": True}
    [row], _ = of("dynabench", [{"example_info": asked}])
    assert (row["author_label"], row["author_verdict"]) == (None, "incorrect")


def test_rows_of_a_release(of, tmp_path):
    [row], _ = of("dynabench", [RELEASED, {"uid": "u2", "withdrawn": True}], "qa/dev.jsonl")
    assert (row["uid"], row["round"], row["author_label"]) == ("u1", 3, "1840")
    assert row["metadata"] == {"split": "dev", "label": "1840", "answer_start": 9}
    assert row["model_prediction"] == {"model": "m0", "label": "Built", "probs": None}
    for name in ("croissant.json", "task.json", "test-unlabelled.jsonl"):
        (tmp_path / "qa" / name).write_text("{")
    assert len(read(tmp_path / "qa", "dynabench")[0]) == 1


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"id": 1, "validations": []}, "no `text`"),
        ({"input_json": "{}"}, "no `uid`"),
        ({**DYNATASK, "input_json": "{"}, "not JSON"),
        ({**DYNATASK, "input_json": "[1]"}, "input_json"),
        ({**DYNATASK, "validations": [["correct"]]}, "validations[1]"),
        ({**DYNATASK, "validations": {"a": 1}}, "is no list"),
        ({**DYNATASK, "corrections": [{"answer": 3, "validator": "v"}]}, "corrections[1]"),
    ],
)
def test_what_is_no_record_of_dynabench(record, words, of):
    wrong(of("dynabench", [record]), words)


def test_each_right_answer_belongs_to_one_vote_of_its_person(of):
    votes = [["incorrect", "user", who] for who in ("v1", "v2", "v1", "v1")]
    typed = [{"answer": said, "validator": "v1"} for said in ("Tarn", "tarn.")]
    record = {**DYNATASK, "validations": [["correct", "user", "v1"], *votes]}
    [several, one], _ = of(
        "dynabench", [{**record, "corrections": typed}, {**record, "corrections": typed[0]}]
    )
    said = [vote.get("correction") for vote in several["validations"]]
    assert said == [None, "Tarn", None, "tarn.", None]
    assert [vote.get("correction") for vote in one["validations"]] == [
        None,
        "Tarn",
        None,
        None,
        None,
    ]


def item(**told):
    kept = {
        "uid": "u1", "round": 1, "author": "a", "author_label": "neutral", "metadata": {},
        "context": {"premise": "A cat."}, "input": {"hypothesis": "It rests."},
        "model_prediction": {"model": "m", "label": "entailment", "probs": {"neutral": 0.25}},
        "validations": [{"worker": "v", "label": "neutral"}], **told.pop("kept", {}),
    }  # fmt: skip
    about = {
        "uid": "u1", "texts": {**kept["context"], **kept["input"]}, "answer_field": "label",
        "label": "neutral", "model": "m", "prediction": "entailment",
        "votes": [Vote("v", "neutral")], "is_choice": True, **told,
    }  # fmt: skip
    return Item(**about, row_json=json.dumps(kept))


@pytest.mark.parametrize(
    ("name", "file", "lost"),
    [
        ("anli", "R1/dev.jsonl", {"validations", "model_prediction"}),
        ("snli", "a.jsonl", {"model_prediction", "validations"}),
        ("dynabench", "a.jsonl", set()),
    ],
)
def test_pairs_come_back_as_far_as_a_layout_holds_them(name, file, lost, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(write_tool_file([item()], name)))
    [row], _ = read(path, name)
    kept = json.loads(item().row_json)
    for key in kept.keys() - lost - {"metadata", "round", "author"}:
        assert row[key] == kept[key], key
    assert [vote["label"] for vote in row.get("validations", [])] in (["neutral"], [])


def test_questions_and_sentences_come_back(tmp_path):
    question = {"context": {"passage": "Built in 1840."}, "input": {"question": "When?"}}
    texts = {"passage": "Built in 1840.", "question": "When?"}
    asked = item(kept={**question, "author_label": "1840"}, texts=texts, answer_field="answer")
    open_ = item(kept={**question, "author_label": None}, texts=texts, answer_field="answer")
    path = tmp_path / "a.json"
    path.write_text("".join(write_tool_file([asked, open_], "squad")))
    first, second = read(path, "squad")[0]
    assert (first["author_label"], first["metadata"]["answer_start"]) == ("1840", 9)
    assert second["author_label"] is None
    prompt = {"context": {"prompt": "A soup."}, "input": {"text": "The soup."}, "round": 2}
    said = item(kept=prompt, texts={"prompt": "A soup.", "text": "The soup."})
    bare = item(
        kept={**prompt, "round": 0, "model_prediction": None, "context": {}}, texts={"text": "x"}
    )
    odd = item(kept={**prompt, "round": 9}, texts={"text": "x"})
    path = tmp_path / "a.jsonl"
    path.write_text("".join(write_tool_file([said, bare, odd], "dynasent")))
    first, second = read(path, "dynasent")[0]
    assert (first["uid"], first["round"], first["context"]) == ("r2-u1", 2, {"prompt": "A soup."})
    assert first["model_prediction"]["label"] == "entailment"
    assert first["validations"] == [{"worker": "v", "label": "neutral"}]
    assert (second["uid"], second["model_prediction"]) == ("sstu1", None)


def test_texts_come_back_as_a_table(tmp_path):
    kept = {"context": {}, "input": {"text": "a, b"}, "round": 6, "author_label": "hate"}
    said = item(kept=kept, texts={"text": "a, b"}, label=None)
    odd = item(kept={**kept, "round": 1}, texts={"text": "x"}, label=None)
    path = tmp_path / "train.csv"
    assert build_file_name("a", "hatemojibuild") == "a-hatemojibuild.csv"
    path.write_text("".join(write_tool_file([said, odd, said], "hatemojibuild")))
    first, _ = read(path, "hatemojibuild")[0]
    assert (first["uid"], first["round"], first["input"]) == ("u1", 6, {"text": "a, b"})
    assert first["author_label"] == "hate"


def test_what_a_layout_has_no_place_for_is_left_out():
    odd = item(kept={"author_label": "maybe"}, votes=[Vote("v", "maybe")])
    for name in ("anli", "snli"):
        assert not [*write_tool_file([odd], name)]
    assert {name for name, form in FORMATS.items() if form.required_fields} <= {*EXPORT_FORMATS}


def test_an_answer_without_probabilities_goes_out_as_one(tmp_path):
    said = {"model": "m", "label": "entailment", "probs": None}
    path = tmp_path / "a.jsonl"
    path.write_text("".join(write_tool_file([item(kept={"model_prediction": said})], "dynabench")))
    [row], _ = read(path, "dynabench")
    assert row["model_prediction"]["label"] == "entailment"
    assert not row["model_prediction"].get("probs")
