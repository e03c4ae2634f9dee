"""No import doubles a vote, and whatever it does not keep is counted. Texts are made up."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count

from annotation.models import Example
from tasks.models import Task
from tests.support.factories import importing
from validation.models import Consensus, Validation

TEXT = "The soup was warm."


def said(who, label, when):
    result = {"from_name": "tone", "type": "choices", "value": {"choices": [label]}}
    return {"completed_by": who, "created_at": when, "result": [result]}


def potato(label, **more):
    return {"displayed_text": TEXT, "label_annotations": {"tone": {label: label}}, **more}


HISTORY = {
    "task": "x", "round": 1, "uid": "1", "context": {}, "input": {"text": TEXT}, "author": None,
    "author_label": None, "model_prediction": None, "model_wrong": None, "metadata": {},
}  # fmt: skip
SOURCES = {
    "label_studio": {
        "a.json": [{"id": 1, "data": {"text": TEXT}, "annotations": [
            said(2, "good", "2026-01-01T00:00:00Z"),
            said(3, "good", "2026-01-01T00:00:00Z"),
            said(2, "bad", "2026-01-02T00:00:00Z"),
        ]}],
    },
    "doccano": {
        "2.jsonl": [{"id": 1, "text": TEXT, "label": ["good"]},
                    {"id": 1, "text": TEXT, "label": ["bad"]}],
        "3.jsonl": [{"id": 1, "text": TEXT, "label": ["good"]}],
    },
    "argilla": {
        "a.json": [{"id": "1", "fields": {"text": TEXT}, "responses": {"tone": [
            {"value": "good", "user_id": "2"},
            {"value": "bad", "user_id": "2"},
            {"value": "good", "user_id": "3"},
        ]}}],
    },
    "potato": {
        "annotated_instances.jsonl": [
            potato("bad", user_id="2", instance_id="1"),
            potato("good", user_id="3", instance_id="1"),
        ],
        "2/annotated_instances.jsonl": [potato("bad", id="1")],
        "3/annotated_instances.jsonl": [potato("good", id="1")],
    },
    "dynabench": {
        "r1.jsonl": [{"id": 1, "text": TEXT, "validations": [
            ["good", "user", "2"], ["bad", "user", "2"], ["good", "user", "3"],
        ]}],
    },
    None: {
        "history.jsonl": [{**HISTORY, "validations": [
            {"worker": "2", "label": "good"},
            {"worker": "2", "label": "bad"},
            {"worker": "3", "label": "good"},
        ]}],
    },
}  # fmt: skip


@pytest.fixture
def source(tmp_path):
    """A folder or file of a tool."""

    def source(tool, files):
        for name, records in files.items():
            path = tmp_path / "from" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            is_list = name.endswith(".json")
            path.write_text(json.dumps(records) if is_list else "\n".join(map(json.dumps, records)))
        return tmp_path / "from" if tool else path

    return source


def run(path, tool, *args):
    """The lines that the command says."""
    out = StringIO()
    given = [*(["--from", tool] if tool else []), "--task", "tone", "--create", *args]
    call_command("import_examples", str(path), *importing(given), stdout=out, stderr=StringIO())
    return out.getvalue().splitlines()


@pytest.mark.parametrize("tool", SOURCES, ids=str)
def test_a_database_holds_one_vote_of_a_person_on_an_example(db, source, tool):
    run(source(tool, SOURCES[tool]), tool)
    assert Example.objects.count() == 1
    each = Validation.objects.values("example", "validator").annotate(votes=Count("pk"))
    assert [one["votes"] for one in each] == [1, 1]
    votes = Validation.objects.values_list("validator__pseudonym", "label")
    assert sorted(votes) == [("tone:2", "bad"), ("tone:3", "good")]
    assert Consensus.objects.get().votes == 2


def test_nothing_is_stored_where_one_only_looks(db, source):
    path = source("label_studio", SOURCES["label_studio"])
    told = run(path, "label_studio", "--dry-run")
    assert not Task.objects.filter(code="tone").exists()
    assert not Example.objects.exists()
    assert any("2 on 1" in line for line in told)
    stored = run(path, "label_studio")
    assert told[:-1] == stored


def test_a_look_writes_no_file_of_bad_lines(db, source):
    path = source(None, {"history.jsonl": [{**HISTORY, "validations": []}, {"uid": "no"}]})
    told = run(path, None, "--dry-run", "--skip-bad")
    assert told[-2].startswith("1 new, 0 known before, 1 bad")
    assert [one.name for one in path.parent.iterdir()] == ["history.jsonl"]


def test_later_votes_on_what_is_there_are_counted(db, source):
    vote = {"worker": "2", "label": "good"}
    row = {**HISTORY, "validations": [vote]}
    run(source(None, {"history.jsonl": [row]}), None)
    more = {
        **row,
        "validations": [vote, {"worker": None, "label": "good"}, {**vote, "worker": "5"}],
    }
    path = source(None, {"history.jsonl": [row, more]})
    told = run(path, None)
    assert told[-1] == "0 new, 2 known before."
    assert sum("2 votes" in line for line in told) == 1
    assert Validation.objects.count() == 1


def test_votes_of_one_example_twice_in_a_file_are_counted(db, source):
    row = {**HISTORY, "validations": [{"worker": "2", "label": "good"}]}
    later = {**HISTORY, "validations": [{"worker": "3", "label": "bad"}]}
    told = run(source(None, {"history.jsonl": [row, later]}), None)
    assert sum("1 votes" in line for line in told) == 1
    assert Validation.objects.get().label == "good"


def test_the_first_places_of_what_is_not_kept_are_named(db, source):
    skipped = {"completed_by": 2, "was_cancelled": True, "result": []}
    tasks = [{"id": n, "data": {"text": f"t{n}"}, "annotations": [skipped]} for n in range(1, 9)]
    told = run(source("label_studio", {"a.json": tasks}), "label_studio")
    [line] = [line for line in told if "8 skipped" in line]
    assert line.count("a.json:") == 5
    assert line.endswith("…)")


def typed(*answers):
    return [
        {"id": n, "data": {"text": f"t{n}"}, "annotations": [{"completed_by": n, "result": [
            {"from_name": "why", "type": "textarea", "value": {"text": [answer]}}]}]}
        for n, answer in enumerate(answers)
    ]  # fmt: skip


def test_what_people_typed_is_free_text_and_goes_out_as_such(db, source, tmp_path):
    long = " ".join(["It is."] * 500)
    run(source("label_studio", {"a.json": typed("It is.", "It is not.", long)}), "label_studio")
    assert max(Validation.objects.values_list("label", flat=True), key=len) == long
    task = Task.objects.get(code="tone")
    assert task.config.get_component(task.config.answer_field).type == "long_text"
    out = StringIO()
    call_command(
        "export_examples", "--task", "tone", "--round", "1", "--to", "label_studio", stdout=out
    )
    results = [task["annotations"][0]["result"][0] for task in json.loads(out.getvalue())]
    assert {one["type"] for one in results} == {"textarea"}
    assert results[-1]["value"] == {"text": [long]}


def test_labels_that_are_named_are_labels_though_people_typed_them(db, source):
    path = source("label_studio", {"a.json": typed("good", "bad")})
    run(path, "label_studio", "--labels", "good,bad")
    task = Task.objects.get(code="tone")
    assert task.config.get_component(task.config.answer_field).values == ("good", "bad")


@pytest.mark.parametrize("typing", ["text_box", "free_response"])
def test_potatos_texts_are_free_and_a_long_answer_makes_all_so(db, source, typing):
    def said(who, answer, name):
        return {"id": "1", "text": TEXT, "user_id": who, "labels": {"why": {name: answer}}}

    records = [said("a", "It is.", typing), said("b", "It is not.", typing)]
    run(source("potato", {"annotations.jsonl": records}), "potato")
    config = Task.objects.get(code="tone").config
    assert config.get_component(config.answer_field).type == "long_text"


def test_an_answer_too_long_for_a_label_makes_all_of_them_texts(db, source):
    row = {**HISTORY, "validations": [{"worker": "2", "label": "good"}]}
    more = {**row, "uid": "2", "validations": [{"worker": "2", "label": "b" * 201}]}
    run(source(None, {"history.jsonl": [row, more]}), None)
    config = Task.objects.get(code="tone").config
    assert config.get_component(config.answer_field).type == "long_text"


def asked(*answers):
    return [
        {"id": n, "data": {"text": f"t{n}"}, "annotations": [{"completed_by": n, "result": [
            {"from_name": control, "type": "choices", "value": {"choices": [label]}}]}]}
        for n, (control, label) in enumerate(answers)
    ]  # fmt: skip


def test_answers_to_two_questions_are_not_counted_against_each_other(db, source):
    path = source("label_studio", {"a.json": asked(("tone", "good"), ("topic", "food"))})
    with pytest.raises(CommandError):
        run(path, "label_studio")
    assert not Validation.objects.exists()
    told = run(path, "label_studio", "--question", "topic")
    assert told[-1].startswith("2 new")
    assert [vote.label for vote in Validation.objects.all()] == ["food"]


def test_a_question_that_nobody_answered_is_refused(db, source):
    path = source("label_studio", {"a.json": asked(("tone", "good"))})
    with pytest.raises(CommandError, match="topic"):
        run(path, "label_studio", "--question", "topic")
    assert not Example.objects.exists()


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("doccano", ["--question", "tone"]),
        (None, ["--question", "tone"]),
        ("label_studio", ["--free", "--labels", "a,b"]),
    ],
)
def test_options_that_do_not_go_together(db, source, tool, args):
    with pytest.raises(CommandError):
        run(source("label_studio", {"a.json": asked(("tone", "good"))}), tool, *args)


def test_a_file_of_a_tool_without_examples_is_refused(db, source):
    with pytest.raises(CommandError):
        run(source("label_studio", {"a.json": []}), "label_studio")


@pytest.mark.parametrize(
    ("labels", "args"),
    [(("good", "bad"), ["--free"]), (("It is,\nas I see.", "No."), [])],
)
def test_answers_of_several_lines_or_said_to_be_free_are_texts(db, source, labels, args):
    records = [{"id": n, "text": "a", "label": [label]} for n, label in enumerate(labels)]
    run(source("doccano", {"ann.jsonl": records}), "doccano", *args)
    config = Task.objects.get(code="tone").config
    assert config.get_component(config.answer_field).type == "long_text"


def test_numbers_are_labels_by_size(db, source):
    answers = [("tone", label) for label in ("10", "9", "b", "-1.5", "a")]
    run(source("label_studio", {"a.json": asked(*answers)}), "label_studio")
    config = Task.objects.get(code="tone").config
    assert config.get_component(config.answer_field).values == ("-1.5", "9", "10", "a", "b")


def test_a_conversation_of_a_tool_is_one_here(db, source):
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    records = [
        {"id": str(n), "fields": {"talk": talk, "mood": 3}, "responses": {"tone": [
            {"value": label, "user_id": "1"}]}}
        for n, label in enumerate(("good", "bad"))
    ]  # fmt: skip
    told = run(source("argilla", {"a.json": records}), "argilla")
    assert sum("2 responses without" in line for line in told) == 1
    task = Task.objects.get(code="tone")
    assert [(one.name, one.type) for one in task.config.context] == [("talk", "chat")]
    example = Example.objects.first()
    assert example.context.fields["talk"][0] == {"role": "user", "text": "Hi"}
    assert example.inputs["mood"] == "3"
