"""Tasks that rank training data: one model learns from the rows of each submission."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json

import pytest
from django.core.files.base import ContentFile

from dynabench.lib.errors import Invalid
from evaluation.jobs import check_submission
from evaluation.models import Submission, Upload
from evaluation.submissions.services import submit_model
from evaluation.uploads.chunked import add_file
from tests.support.made_sets import make_set
from tests.support.releases import (  # noqa: F401
    _own_storage,
    closed,
    lines,
    people,
    released,
)

MOST = 12
GOOD = [
    {"premise": f"Ada has {n} cats.", "hypothesis": words, "label": label}
    for n in range(4)
    for words, label in (
        (f"Ada has {n} animals.", "entailment"),
        ("Ada has no cat.", "contradiction"),
    )
]


@pytest.fixture
def task(closed):
    task = closed.task
    task.config_text = f"{task.config_text}\ntraining_rows: {MOST}\n"
    task.save(update_fields=["config_text"])
    return task


def submitted(task, owner, rows, name="Mine"):
    data = b"".join(
        row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows
    )
    upload = add_file(owner, "rows.jsonl", len(data), ContentFile(data))
    made = submit_model(task=task, owner=owner, kind="rows", name=name, upload=upload)
    check_submission(made.pk)
    made.refresh_from_db()
    return made


@pytest.mark.own_process
def test_a_model_learns_from_the_rows_and_is_evaluated(task, alice, monkeypatch):
    monkeypatch.setattr("evaluation.sandbox.engine.engine", lambda: None)
    make_set(task, "open", may_leave=True)
    made = submitted(task, alice, GOOD[:2])
    assert (made.state, made.outcome, made.error) == ("done", "ok", "")
    assert made.runs.filter(suite="plain").count() == 1
    assert submitted(task, alice, GOOD[:2], name="Once more").digest == made.digest


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*GOOD, {**GOOD[0], "label": "maybe"}], "Line 9:"),
        ([{**GOOD[0], "premise": " "}, *GOOD], "Line 1:"),
        ([{**GOOD[0], "weight": 3}, *GOOD], "Line 1:"),
        ([{"premise": "Ada has cats."}, *GOOD], "Line 1:"),
        ([*GOOD, GOOD[2]], "Line 9:"),
        ([*GOOD, b"{no json\n"], "Line 9:"),
        ([*GOOD, {"uid": "nobody's"}], "Line 9:"),
        ([{**GOOD[0], "premise": f"{n} cats."} for n in range(MOST + 1)], str(MOST)),
        (GOOD[::2], "label"),
        ([], "no rows"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(task, alice, rows, words):
    made = submitted(task, alice, rows or [b"\n"])
    assert (made.state, made.outcome) == ("failed", "rejected")
    assert words in made.error
    assert not made.runs.exists()
    assert not Upload.objects.exists()


def test_rows_of_a_released_train_split_are_named_by_uid(task, closed, alice, monkeypatch):
    dataset = released(closed)
    learned = []
    monkeypatch.setattr("evaluation.jobs.learn", lambda config, rows, folder: learned.extend(rows))
    train = lines(dataset, "train")[:5]
    submitted(task, alice, [*({"uid": row["uid"]} for row in train), *GOOD[:2]])
    assert [row["label"] for row in learned[:5]] == [row["label"] for row in train]
    assert learned[0]["premise"] == json.loads(train[0]["context"]["context_json"])["premise"]
    assert learned[5]["hypothesis"] == GOOD[0]["hypothesis"]
    (test,) = lines(dataset, "test")[:1]
    assert "Line 9:" in submitted(task, alice, [*GOOD, {"uid": test["uid"]}], "Test").error


def test_each_task_takes_what_it_ranks(task, alice, as_alice):
    with pytest.raises(Invalid):
        submit_model(task=task, owner=alice, kind="hub", name="Mine", source="a/b", revision="0")
    page = as_alice.get("/t/nli/submit/").text
    assert "?kind=rows" in page
    assert "?kind=directory" not in page
    assert as_alice.get("/t/nli/submit/?kind=directory").context["form"] is None
    task.config_text = task.config_text.replace(f"training_rows: {MOST}", "")
    task.save(update_fields=["config_text"])
    assert "?kind=rows" not in as_alice.get("/t/nli/submit/").text
    answer = as_alice.post(
        "/api/v1/tasks/nli/models/", {"kind": "rows", "name": "Mine"}, "application/json"
    )
    assert answer.status_code == 422
    assert not Submission.objects.exists()
