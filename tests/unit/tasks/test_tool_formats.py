"""What other tools export comes in, and what goes out for them comes back. Texts are made up."""

import json
import zipfile

import pytest

from tasks.formats import EXPORT_FORMATS, build_file_name, write_tool_file
from tasks.formats.base import ROW_KEY, Item, Vote
from tests.support.published import read, without, wrong


def result(said, control="tone", kind="choices", key="choices"):
    return {"from_name": control, "to_name": "text", "type": kind, "value": {key: said}}


def test_label_studio(of):
    task = {
        "id": 7,
        "data": {"text": "The soup was warm."},
        "meta": {"source": "made up"},
        "annotations": [
            {"completed_by": 3, "result": [result(["good"])]},
            {"completed_by": {"id": 4, "email": "a@example.org"}, "result": [result(["bad"])]},
            {"completed_by": 5, "was_cancelled": True, "result": [result(["bad"])]},
            {"completed_by": 6, "result": []},
            {"result": [result("correct", "verdict", "textarea", "text")]},
        ],
        "predictions": [3, {"model_version": "m1", "result": [result(["bad"])]}],
    }
    [row], _ = of("label_studio", [task], "a.json")
    assert (row["uid"], row["input"]) == ("7", {"text": "The soup was warm."})
    assert row["validations"] == [
        {"worker": "3", "label": "good"},
        {"worker": "4", "label": "bad"},
        {"worker": None, "verdict": "correct"},
    ]
    assert row["model_prediction"] == {"model": "m1", "label": "bad", "probs": None}
    assert row["metadata"] == {"meta": {"source": "made up"}}
    assert "example.org" not in json.dumps(row)
    [bare], _ = of("label_studio", [{"data": {"text": "a"}, "annotations": [], "predictions": [
        {"result": []}]}])  # fmt: skip
    assert (len(bare["uid"]), bare["model_prediction"]) == (32, None)


def test_label_studio_that_does_not_fit(of):
    def task(*results):
        return [{"data": {}, "annotations": [{"result": [*results]}]}]

    wrong(of("label_studio", [{"id": 1, "text": "a", "tone": "good"}]), "no `data`", "an object")
    wrong(of("label_studio", task(result(["A"], kind="labels"))), "labels", "choices")
    wrong(of("label_studio", task(result(["a"]), result(["b"], "topic"))), "tone, topic")
    wrong(of("label_studio", task(result(["a", "b"]))), "2 answers")
    wrong(of("label_studio", task(result(["a"], key="x"))), "1 answers")
    wrong(of("label_studio", [{"data": {}, "annotations": [3]}]), "`annotations[1]`"[1:-1])
    wrong(of("label_studio", [{"data": {ROW_KEY: "no"}, "annotations": []}]), "not JSON")
    wrong(of("label_studio", [{"data": {ROW_KEY: 3}, "annotations": []}]), "export again")


def test_doccano(tmp_path):
    text = {"id": 1, "text": "The soup was warm.", "source": "made up", "Comments": []}
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("ann.jsonl", json.dumps({**text, "label": ["good"]}))
        archive.writestr("bob.jsonl", json.dumps({**text, "label": ["bad"]}) + "\n"
                         + json.dumps({**text, "id": 2, "label": []}))  # fmt: skip
    first, second = read(tmp_path / "export.zip", "doccano")[0]
    assert (first["uid"], first["input"]) == ("1", {"text": "The soup was warm."})
    assert first["metadata"] == {"source": "made up"}
    assert first["validations"] == [
        {"worker": "ann", "label": "good"},
        {"worker": "bob", "label": "bad"},
    ]
    assert second["validations"] == []


def test_doccano_in_one_file(of):
    record = {"id": 1, "text": "a", "label": ["good"]}
    [row], _ = of("doccano", [record], "export.jsonl")
    assert row["validations"] == [{"worker": None, "label": "good"}]
    wrong(of("doccano", [{**record, "label": ["a", "b"]}]), "2 entries")
    wrong(of("doccano", [{**record, "label": [[0, 4, "A"]]}]), "spans")
    wrong(of("doccano", [without(record, "id")]), "no `id`")
    wrong(of("doccano", [record, {**record, "text": "b"}]), "another text", "each project")


def test_argilla(of):
    record = {
        "id": "r1",
        "fields": {"text": "The soup was warm."},
        "metadata": {"source": "made up"},
        "suggestions": {"tone": {"value": "bad", "score": None, "agent": "m1"}},
        "responses": {"tone": [{"value": "good", "user_id": "a1"}, {"value": 3, "user_id": "a2"}]},
        "vectors": {},
        "_server_id": "s",
    }
    [row], _ = of("argilla", [record], "a.json")
    assert (row["uid"], row["input"]) == ("r1", {"text": "The soup was warm."})
    assert [vote["label"] for vote in row["validations"]] == ["good", "3"]
    assert row["model_prediction"] == {"model": "m1", "label": "bad", "probs": None}
    assert row["metadata"] == {"source": "made up"}
    verdict = {"verdict": [{"value": "correct", "user_id": "a"}]}
    [row], _ = of("argilla", [{**record, "responses": verdict, "suggestions": {}}], "a.json")
    assert row["validations"] == [{"worker": "a", "verdict": "correct"}]
    assert row["model_prediction"] is None
    [row], _ = of("argilla", [{**record, "responses": None, "suggestions": None}], "a.json")
    assert (row["validations"], row["model_prediction"]) == ([], None)
    two = {name: [{"value": "a", "user_id": "a1"}] for name in ("tone", "topic")}
    wrong(of("argilla", [{**record, "responses": two}], "a.json"), "tone, topic")
    wrong(of("argilla", [{**record, "responses": {"tone": 3}}], "a.json"), "no list")
    wrong(of("argilla", [{**record, "responses": {"tone": [{"value": [1]}]}}], "a.json"), "value")


def test_potato_of_both_versions(tmp_path):
    (tmp_path / "items.jsonl").write_text(
        '{"id": "i1", "text": "The soup was warm.", "source": "made up"}\n{"id": "i2", "text": "b"}'
    )
    (tmp_path / "annotations.jsonl").write_text("\n".join(map(json.dumps, [
        {"instance_id": "i1", "user_id": "ann", "labels": {"tone": {"good": True, "bad": False}}},
        {"instance_id": "i1", "user_id": "bob", "labels": {"why": {"text_box": "It is."}}},
        {"instance_id": "i2", "user_id": "bob", "labels": {}},
        {"instance_id": "i3", "user_id": "bob", "labels": {"tone": {"good": True}}},
    ])))  # fmt: skip
    rows, reasons = read(tmp_path, "potato")
    assert [row["uid"] for row in rows] == ["i1", "i2"]
    assert rows[0]["input"] == {"text": "The soup was warm."}
    assert rows[0]["metadata"] == {"source": "made up"}
    assert rows[0]["validations"] == [
        {"worker": "ann", "label": "good"},
        {"worker": "bob", "label": "It is."},
    ]
    [(place, reason)] = reasons
    assert (place, "data file" in reason) == ("annotations.jsonl:4", True)
    old = tmp_path / "old" / "ann"
    old.mkdir(parents=True)
    record = {"id": "i1", "displayed_text": "a", "span_annotations": {}, "behavioral_data": {}}
    labels = {"label_annotations": {"tone": {"good": "good"}}}
    (old / "annotated_instances.jsonl").write_text(json.dumps({**record, **labels}))
    [row], _ = read(tmp_path / "old", "potato")
    assert (row["input"], row["metadata"]) == ({"text": "a"}, {})
    assert row["validations"] == [{"worker": "ann", "label": "good"}]


def test_potato_that_does_not_fit(of):
    record = {"id": "i1", "text": "a"}
    wrong(of("potato", [{**record, "labels": {"a": {}, "b": {}}}]), "a, b")
    wrong(of("potato", [{**record, "labels": {"a": {"x": True, "y": True}}}]), "x, y")
    wrong(of("potato", [{**record, "labels": {"a": 3}}]), "labels.a", "an object")
    wrong(of("potato", [{**record, "text": 3}]), "`text`")
    wrong(of("potato", [record, {**record, "text": "b"}]), "another text")


# And out again

ITEM = Item(
    uid="u1",
    texts={"premise": "A cat sleeps.", "hypothesis": "An animal rests."},
    answer_field="label",
    label="entailment",
    model="m1",
    prediction="neutral",
    votes=[Vote("h1", "entailment"), Vote(None, "correct", is_verdict=True)],
    row_json=json.dumps({
        "uid": "u1",
        "context": {"premise": "A cat sleeps."},
        "input": {"hypothesis": "An animal rests."},
        "validations": [
            {"worker": "h1", "label": "entailment"},
            {"worker": None, "verdict": "correct"},
        ],
    }),
    is_choice=True,
)  # fmt: skip


@pytest.mark.parametrize("tool", ["argilla", "doccano", "label_studio", "potato"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_goes_out_comes_back(tool, count, tmp_path):
    path = tmp_path / build_file_name("nli-round1", tool)
    path.write_text("".join(write_tool_file([ITEM] * count, tool)))
    if EXPORT_FORMATS[tool].frame[0]:
        assert len(json.loads(path.read_text())) == count
    if tool in ("doccano", "potato"):  # they give every text an id
        records = [json.loads(line) for line in path.read_text().splitlines() if line]
        path.write_text("\n".join(json.dumps({**r, "id": n}) for n, r in enumerate(records)))
    rows, reasons = read(path, tool)
    assert reasons == []
    assert rows == [json.loads(ITEM.row_json)] * count


def test_what_tools_show(tmp_path):
    [task] = json.loads("".join(write_tool_file([ITEM], "label_studio")))
    first, second = (annotation["result"][0] for annotation in task["annotations"])
    assert (first["from_name"], first["type"], first["value"]) == (
        "label", "choices", {"choices": ["entailment"]},
    )  # fmt: skip
    assert (second["from_name"], second["value"]) == ("verdict", {"choices": ["correct"]})
    assert task["predictions"][0]["model_version"] == "m1"
    [text] = map(json.loads, "".join(write_tool_file([ITEM], "doccano")).splitlines())
    assert text["text"] == "premise: A cat sleeps.\nhypothesis: An animal rests."
    assert text["label"] == ["entailment"]
    [record] = json.loads("".join(write_tool_file([ITEM], "argilla")))
    assert record["suggestions"]["label"]["value"] == "entailment"
    [item] = map(json.loads, "".join(write_tool_file([ITEM], "potato")).splitlines())
    assert item["predictions"] == {"label": "entailment"}


def test_what_people_add_in_a_tool_comes_back_as_votes(of):
    label_studio, argilla = (
        json.loads("".join(write_tool_file([ITEM], t))) for t in ("label_studio", "argilla")
    )
    label_studio[0]["annotations"].append({"completed_by": 3, "result": [result(["neutral"])]})
    argilla[0]["responses"] = {"label": [{"value": "neutral", "user_id": "3"}]}
    doccano = {
        **json.loads("".join(write_tool_file([ITEM], "doccano"))),
        "id": 1,
        "label": ["neutral"],
    }
    potato = json.loads("".join(write_tool_file([ITEM], "potato")))
    said = {"instance_id": "u1", "user_id": "3", "labels": {"label": {"neutral": True}}}
    for tool, records in {
        "label_studio": label_studio,
        "argilla": argilla,
        "doccano": [doccano],
        "potato": [potato, said],
    }.items():
        [row], _ = of(tool, records)
        assert len(row["validations"]) == 3
        assert row["validations"][-1]["label"] == "neutral"


def test_nothing_is_settled_and_no_model_said_anything():
    bare = Item("u1", {"text": "a"}, "answer", None, None, None, [Vote(None, "b")], "{}", False)
    [task] = json.loads("".join(write_tool_file([bare], "label_studio")))
    assert task["annotations"][0]["result"][0]["type"] == "textarea"
    assert task["predictions"] == []
    assert json.loads("".join(write_tool_file([bare], "argilla")))[0]["suggestions"] == {}
    assert json.loads("".join(write_tool_file([bare], "doccano")))["label"] == []
    assert json.loads("".join(write_tool_file([bare], "doccano")))["text"] == "a"
    assert json.loads("".join(write_tool_file([bare], "potato")))["predictions"] == {}
