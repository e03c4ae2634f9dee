"""Data in the layouts of others comes in by one command, and goes out for other tools."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from core.accounts.services import get_annotator
from tasks.formats import EXPORT_FORMATS
from tasks.formats.base import ROW_KEY
from tasks.models import TargetModel, Task, TaskMember
from tests.support.factories import RoundFactory, TaskFactory, UserFactory, importing
from tests.support.field_walk import TEXT, Walk, kinds_in, opened
from tests.support.gold_items import voted
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.models import QueueItem, Validation

PAIR = {
    "context": "A cat sleeps.",
    "hypothesis": "An animal rests.",
    "label": "e",
    "model_label": "c",
    "genre": "made up",
    "reason": "Cats are animals.",
    "tag": None,
}


def run(path, *args):
    out, err = StringIO(), StringIO()
    call_command("import_examples", str(path), *importing(args), stdout=out, stderr=err)
    return out.getvalue().splitlines()[-1]


def exported(code, number, tool):
    out = StringIO()
    call_command(
        "export_examples", "--task", code, "--round", str(number), "--to", tool, stdout=out
    )
    return out.getvalue()


@pytest.fixture
def anli(tmp_path):
    """A folder as ANLI's archive: two pairs of two rounds, one of them verified."""
    files = {
        "R1/dev.jsonl": [{**PAIR, "uid": "u1"}],
        "R2/dev.jsonl": [{**PAIR, "uid": "u2", "label": "n"}],
        "verifier_labels_R1-3.jsonl": [{"uid": "u1", "verifier labels": ["e", "n", "e"]}],
    }
    for name, lines in files.items():
        path = tmp_path / "anli" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "anli"


def test_a_folder_becomes_rounds_with_licence_and_citation(db, anli):
    options = ("--from", "anli", "--task", "pairs", "--create", "--policy", "at-least:2")
    assert run(anli, *options) == "2 new, 0 known before."
    task = Task.objects.get()
    assert task.config.about.license == "CC BY-NC 4.0"
    assert "Adversarial NLI" in task.config.about.citation
    assert {label.value for label in task.config.get_labels("label")} >= {"entailment", "neutral"}
    first, second = Example.objects.order_by("uid").select_related("round", "context")
    assert (first.round.number, second.round.number) == (1, 2)
    assert (first.outcome, first.consensus.is_validated_error) == ("fooled", True)
    assert first.context.fields == {"premise": "A cat sleeps."}
    assert first.target_outputs.get().output == {"label": "contradiction"}
    assert Validation.objects.count() == 3
    assert run(anli, *options) == "0 new, 2 known before."


def test_what_is_wrong_is_named_by_file_and_line(db, anli):
    (anli / "R2" / "dev.jsonl").write_text(json.dumps({**PAIR, "uid": "u2", "label": "x"}))
    err = StringIO()
    arguments = importing(("--from", "anli", "--task", "pairs", "--create"))
    with pytest.raises(CommandError, match=r"^1 of the lines"):
        call_command("import_examples", str(anli), *arguments, stderr=err)
    assert f"{anli}:R2/dev.jsonl:1: `label`" in err.getvalue()
    assert not Example.objects.exists()
    assert run(anli, *arguments, "--skip-bad").startswith("1 new, 0 known before, 1 bad in ")


def test_a_layout_needs_a_task_and_a_name_that_exists(db, anli):
    with pytest.raises(CommandError, match="--task CODE"):
        run(anli, "--from", "anli", "--create")
    with pytest.raises(CommandError, match=r"label_studio.*snli"):
        run(anli, "--from", "anli-2", "--task", "pairs")
    (anli / "none").mkdir()
    with pytest.raises(CommandError, match="no file of SNLI"):
        run(anli / "none", "--from", "snli", "--task", "pairs")


def test_tasks_of_label_studio_are_judged_on(db, tmp_path):
    choice = {"from_name": "tone", "to_name": "text", "type": "choices"}
    tasks = [
        {"id": 1, "data": {"text": "The soup was warm."}, "annotations": [
            {"completed_by": 3, "result": [{**choice, "value": {"choices": ["good"]}}]}]},
        {"id": 2, "data": {"text": "The soup was cold."}, "annotations": []},
    ]  # fmt: skip
    path = tmp_path / "project.json"
    path.write_text(json.dumps(tasks))
    options = ("--from", "label_studio", "--task", "tone", "--create", "--judge")
    assert run(path, *options, "--labels", "good,bad") == "2 new, 0 known before."
    assert Validation.objects.get().validator.pseudonym == "tone:3"
    assert QueueItem.objects.count() == 2


def told(round):
    """What a round holds, without who."""
    return [
        (
            example.inputs,
            example.context.fields,
            example.outcome,
            [(vote.label, vote.verdict) for vote in example.validations.order_by("pk")],
            [(one.output, one.fooled) for one in example.target_outputs.all()],
        )
        for example in round.examples.order_by("pk").select_related("context")
    ]


@pytest.mark.parametrize(
    "tool", [name for name, form in EXPORT_FORMATS.items() if not form.required_fields]
)
def test_what_goes_out_comes_back(tool, db, anli, tmp_path):
    run(anli, "--from", "anli", "--task", "pairs", "--create", "--policy", "at-least:2")
    task = Task.objects.get()
    text = exported("pairs", 1, tool)
    if tool == "doccano":  # it gives every text an id
        text = json.dumps({**json.loads(text), "id": 1})
    path = tmp_path / "back.json"
    path.write_text(text)
    assert run(path, "--from", tool, "--task", "pairs", "--round", 3) == "1 new, 0 known before."
    assert told(task.rounds.get(number=3)) == told(task.rounds.get(number=1))
    assert TargetModel.objects.count() == 2  # the models of R1 and R2, none of them twice


@pytest.mark.parametrize(
    "tool", [name for name, form in EXPORT_FORMATS.items() if not form.required_fields]
)
def test_corrections_and_metadata_come_back(tool, db, tmp_path):
    row = {
        "task": "free", "round": 1, "uid": "f1", "context": {"passage": "Ada wrote it in 1843."},
        "input": {"question": "When?"}, "author": None, "author_label": None, "model_wrong": None,
        "model_prediction": {"model": "m1", "label": "in 1843", "probs": {"in 1843": 0.75}},
        "validations": [
            {"worker": "v1", "verdict": "incorrect", "correction": "1843"},
            {"worker": "v2", "verdict": "incorrect"},
            {"worker": None, "verdict": "incorrect", "correction": "In 1843."},
            {"worker": "v3", "verdict": "correct"},
        ],
        "metadata": {"k": "v", "worker_id": "A1", "n": [1, None]},
    }  # fmt: skip
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(row))
    run(path, "--create")
    text = exported("free", 1, tool)
    assert "A1" not in text
    if tool != "dynabench":
        assert text.count("in 1843") > text.count('in 1843\\"')
        assert "label_given" in text
    if tool == "doccano":  # it gives every text an id
        text = json.dumps({**json.loads(text), "id": 1})
    (tmp_path / "back.json").write_text(text)
    run(tmp_path / "back.json", "--from", tool, "--task", "free", "--round", 2)
    back = Example.objects.get(round__number=2)
    assert back.metadata == {"k": "v", "n": [1, None]}
    votes = Validation.objects.order_by("pk").values_list("verdict", "metadata")
    assert [*votes.filter(example=back)] == [*votes.exclude(example=back)]


@pytest.mark.parametrize("place", ["context", "input"])
def test_every_type_of_field_is_read_in_every_tool(place, db, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    one = Walk(place, [kind for kind in kinds_in(place) if kind != "chat" or place == "context"])
    round, _ = opened(one.text, **one.given)
    inputs = {"text": TEXT, "label": "yes", **one.written}
    voted(write(round, alice, **inputs), Vote("yes", None), by=[UserFactory()])
    given = {**round.contexts.get().fields, **inputs}
    del given["label"]
    for tool in ("label_studio", "doccano", "argilla", "potato"):
        record = json.loads(exported("walk", 1, tool))
        record = record[0] if isinstance(record, list) else record
        shown = record.get("data") or record.get("fields") or record["text"]
        beside = record.get("data") or record.get("metadata") or record
        kept = json.loads(beside[ROW_KEY])
        assert {**kept["context"], **kept["input"]} == given
        assert kept["author_label"] == "yes"
        assert [vote["label"] for vote in kept["validations"]] == ["yes"]
        if isinstance(shown, str):
            assert all(f"{name}: " in shown for name in given)
        else:
            assert {*given} <= {*shown}


def test_rows_without_a_text_do_not_end_an_export(db, tmp_path):
    path = tmp_path / "a.jsonl"
    row = {"task": "bare", "round": 1, "uid": "1", "context": {}, "input": {}, "author": None,
           "author_label": None, "model_prediction": None, "model_wrong": None, "metadata": {},
           "validations": [{"worker": "a", "label": "x"}]}  # fmt: skip
    path.write_text(json.dumps(row))
    run(path, "--create")
    for tool in ("label_studio", "doccano", "argilla", "potato"):
        assert '"uid' in exported("bare", 1, tool)


def test_what_goes_out_does_not_come_back_beside_itself(nli, bob, tmp_path):
    voted(write(nli, bob), Vote(None, "cannot_tell"), by=[UserFactory()])
    path = tmp_path / "back.json"
    path.write_text(exported("nli", 1, "label_studio"))
    with pytest.raises(CommandError, match=r"^1 of the lines"):
        run(path, "--from", "label_studio", "--task", "nli")
    assert Example.objects.count() == 1
    assert run(path, "--from", "label_studio", "--task", "nli", "--round", 2).startswith("1 new")
    first, second = Validation.objects.order_by("pk")
    assert (first.verdict, second.verdict) == ("cannot_tell", "cannot_tell")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "layout", "folder", "rows", "votes"),
    [
        ("dynasent-r2-dev", "dynasent", "", 720, 3600),
        ("anli-dev-sample", "dynabench", "", 300, 686),
        ("anli-dev-sample", "anli", "R1/", 300, 0),
        ("train/nli-cad-dev", "snli", "", 1000, 0),
        ("train/hate-hatemojibuild-dev", "hatemojibuild", "", 195, 0),
        ("train/qa-aqa-bert-dev", "squad", "", 3390, 0),
    ],
)
def test_published_data_come_back_from_each_layout(
    name, layout, folder, rows, votes, db, data, tmp_path
):
    """Every row of the real files goes out and comes in again, with labels, answers and votes."""
    run(data / f"{name}.jsonl.gz", "--task", "real", "--create")
    first = Task.objects.get().rounds.order_by("number").last()
    if layout in ("anli", "dynabench"):
        first = Task.objects.get().rounds.get(number=1)
    path = tmp_path / folder / "dev.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(exported("real", first.number, layout))
    said = run(path, "--from", layout, "--task", "back", "--create", "--round", 1)
    assert said == f"{rows:,} new, 0 known before."
    back = Example.objects.filter(round__task__code="back").order_by("pk")
    assert Validation.objects.filter(example__in=back).count() == votes
    there = first.examples.order_by("pk")
    fields = ("context__fields", "inputs__text", "inputs__hypothesis", "inputs__question")
    assert [*back.values_list(*fields)] == [*there.values_list(*fields)]


URL = "/own/nli/rounds/1/export/label_studio/"


def test_members_download_a_round_for_a_tool(client, alice, bob, nli):
    people = [UserFactory() for _ in range(2)]
    example = write(nli, bob)
    voted(example, Vote("neutral"), Vote(None, "flagged"), by=people)
    TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    client.force_login(alice)
    answer = client.get(URL)
    named = 'attachment; filename="nli-round1-label_studio.json"'
    assert answer["Content-Disposition"] == named
    text = answer.getvalue().decode()
    [task] = json.loads(text)
    assert len(task["annotations"]) == 2
    assert not any(get_annotator(one).pseudonym in text for one in (bob, *people))
    assert client.get(URL.replace("label_studio", "csv")).status_code == 404
    assert client.get(URL.replace("label_studio", "squad")).status_code == 302
    assert client.get(URL.replace("label_studio", "snli")).status_code == 200
    client.force_login(bob)
    assert client.get(URL).status_code == 404


SEVERAL = {
    "version": 1,
    "name": "Kinds",
    "goal": {"text": "Write"},
    "input": [
        {"name": "text", "type": "long_text"},
        {"name": "kinds", "type": "multilabel", "labels": ["a", "b"]},
    ],
    "output": ["kinds"],
    "verdict": {"type": "exact_match", "fields": ["kinds"]},
    "metrics": {"main": "accuracy"},
    "validation": {"mode": "verdict"},
}


def test_answers_that_no_tool_has_are_refused(as_alice, alice):
    task = Task.objects.create(code="kinds", name="Kinds", config_text=json.dumps(SEVERAL))
    RoundFactory(task=task)
    TaskMember.objects.create(task=task, user=alice, role="viewer")
    assert as_alice.get(URL.replace("nli", "kinds")).status_code == 302
    with pytest.raises(CommandError, match="multilabel"):
        exported("kinds", 1, "argilla")


def test_answers_to_be_judged_and_conversations_go_out(db, tmp_path):
    config = """
version: 1
name: Helper
goal: {text: Write}
context: [{name: talk, type: chat}]
input: [{name: question, type: text}, {name: reply, type: text}]
output: [{name: reply}]
verdict: {type: string_f1, field: reply}
metrics: {main: squad_f1}
validation: {mode: verdict}
"""
    task = TaskFactory(code="helper", config_text=config)
    RoundFactory(task=task, number=1, state="closed")
    turns = [{"role": "user", "text": "Hello."}, {"role": "assistant", "text": "Good day."}]
    row = {"task": "helper", "round": 1, "uid": "1", "context": {"talk": turns},
           "input": {"question": "How so?"}, "author": None, "author_label": "It is late.",
           "model_prediction": None, "model_wrong": None, "validations": [],
           "metadata": {}}  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row))
    run(path)
    for tool in ("doccano", "potato"):
        text = json.loads(exported("helper", 1, tool))["text"]
        assert "reply_given: It is late." in text
        assert "Good day." in text
        assert "assistant" not in text
    for tool, place in {"argilla": "fields", "label_studio": "data"}.items():
        [record] = json.loads(exported("helper", 1, tool))
        assert record[place]["reply_given"] == "It is late."


def test_rows_without_a_place_are_counted_and_do_not_end_an_export(db, tmp_path):
    row = {"task": "qa", "round": 1, "uid": "1", "context": {"passage": "Ada wrote it."},
           "input": {"question": "Who?"}, "author": None, "author_label": "Ada",
           "model_prediction": None, "model_wrong": None, "validations": [],
           "metadata": {"label_start": "no number"}}  # fmt: skip
    bare = {**row, "uid": "2", "context": {}}
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(row)}\n{json.dumps(bare)}\n")
    run(path, "--create")
    out, err = StringIO(), StringIO()
    call_command(
        "export_examples", "--task", "qa", "--round", "1", "--to", "squad", stdout=out, stderr=err
    )
    [article] = json.loads(out.getvalue())["data"]
    assert article["title"] == "1"
    assert "1 rows" in err.getvalue()


def test_a_value_of_null_goes_out_as_nothing(db, tmp_path):
    path = tmp_path / "a.json"
    data = {"text": "The soup was warm.", "note": None}
    path.write_text(json.dumps([{"id": 1, "data": data, "annotations": []}]))
    run(path, "--from", "label_studio", "--task", "tone", "--create")
    assert json.loads(exported("tone", 1, "doccano"))["text"] == "The soup was warm."
    [task] = json.loads(exported("tone", 1, "label_studio"))
    assert {*task["data"]} == {"text", ROW_KEY}
