"""Tasks that rank training data: one model learns from the rows of each submission."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from itertools import islice
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from annotation.models import Example
from core.errors import Invalid
from core.files.decoding import decode_picture
from evaluation.isolation.uploads.chunked import add_file
from evaluation.jobs import check_submission
from evaluation.models import Submission, Upload
from evaluation.submissions import intake
from evaluation.submissions.services import submit_model
from evaluation.test_sets.overlap import DIGEST_BYTES
from evaluation.test_sets.source_services import make_missing_versions
from tasks.config.dynabench1 import convert_config
from tasks.contexts.media.services import store_decoded
from tasks.contexts.scenes.drawing import encode_png
from tasks.contexts.scenes.scene import make_scenes
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory
from tests.support.made_sets import make_set
from tests.support.releases import (  # noqa: F401
    _own_storage,
    closed,
    lines,
    people,
    released,
)
from validation.models import Consensus

DATAPERF = Path(__file__).parents[1] / "fixtures" / "dynabench1" / "dataperf.yaml"
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
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: None)
    with monkeypatch.context() as patch:  # one that answers five is enough
        patch.setattr(intake, "_answer_public_examples", lambda *_: [])
        before = submitted(task, alice, GOOD[:2], name="Before there was a set")
    make_set(task, "open", may_leave=True)
    made = submitted(task, alice, GOOD[:2])
    assert (made.state, made.outcome, made.error) == ("done", "ok", "")
    assert made.runs.filter(suite="plain").count() == 1
    assert len(made.trained_rows.digests) == 2 * DIGEST_BYTES
    assert before.digest == made.digest


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


def test_ten_wrong_lines_are_told_at_once(task, alice):
    wrong = [b"{no json\n", GOOD[0], *({"uid": f"nobody's {number}"} for number in range(9))]
    lines = submitted(task, alice, [GOOD[0], *wrong]).error.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [f"Line {n}" for n in range(2, 12)]
    assert lines[-1].endswith(" 11.")


def test_models_are_refused_by_the_option_that_takes_rows(task, alice):
    with pytest.raises(Invalid, match="--rows") as told:
        submit_model(task=task, owner=alice, kind="hub", name="Mine", source="org/name")
    assert told.value.field == "kind"


def test_rows_of_a_released_train_split_are_named_by_uid(task, closed, alice, monkeypatch):
    dataset = released(closed)
    learned = []
    monkeypatch.setattr(
        "evaluation.submissions.kinds.rows.train_on_rows",
        lambda config, rows, *_: learned.extend(rows),
    )
    train = lines(dataset, "train")[:5]
    submitted(task, alice, [*({"uid": row["uid"]} for row in train), *GOOD[:2]])
    assert [row["label"] for row in learned[:5]] == [row["label"] for row in train]
    assert learned[0]["premise"] == json.loads(train[0]["context"]["context_json"])["premise"]
    assert learned[5]["hypothesis"] == GOOD[0]["hypothesis"]
    (test,) = lines(dataset, "test")[:1]
    assert "Line 9:" in submitted(task, alice, [*GOOD, {"uid": test["uid"]}], "Test").error


@pytest.fixture
def pictures(people):
    """A closed round of pictures with labels, as Dynabench's contest of training files has them."""
    config = convert_config(DATAPERF.read_text(), name="Pictures").config_yaml_text
    task = TaskFactory(code="pictures", config_text=config)
    round = RoundFactory(task=task, state="closed")
    context = ContextFactory(round=round, fields={})
    examples = []
    for number, scene in enumerate(islice(make_scenes(3), 40)):
        value = {
            **store_decoded(task=task, decoded_file=decode_picture(encode_png(scene))),
            "alt": "Shapes",
        }
        inputs = {"image": value, "label": str(int(len(scene.figures) > 5))}
        examples.append(Example(
            round=round, context=context, annotator=people[number % 8], inputs=inputs,
            digest=str(number), outcome="undecided", shown_at=timezone.now(),
        ))  # fmt: skip
    Example.objects.bulk_create(examples)
    Consensus.objects.bulk_create(
        Consensus(
            example=one, round=round, state="decided", votes=3, still_needed=0, is_verified=True,
            verdict="correct", label=one.inputs["label"], decided_by="votes",
        )
        for one in examples
    )  # fmt: skip
    return round


def test_pictures_of_a_release_are_chosen_by_uid_and_labelled_anew(pictures, alice, monkeypatch):
    answered = []
    monkeypatch.setattr(
        "evaluation.submissions.intake._answer_public_examples",
        lambda *given: answered.append(given[1]) or [],
    )
    dataset = released(pictures)
    make_missing_versions()
    uids = [row["uid"] for row in lines(dataset, "train")]
    chosen = [*({"uid": uid} for uid in uids[:8]), {"uid": uids[8], "label": "1"}]
    made = submitted(pictures.task, alice, chosen)
    assert (made.state, made.outcome, made.error) == ("done", "ok", "")
    assert made.runs.filter(suite="plain").count() == 1
    assert [(model.fields, model.labels) for model in answered] == [(("image",), ("0", "1"))]


def test_rows_of_pictures_are_refused_with_their_line(pictures, alice):
    dataset = released(pictures)
    uids = [row["uid"] for row in lines(dataset, "train")]
    chosen = [{"uid": uid} for uid in uids[:8]]
    url = "data:image/png;base64,"
    for wrong, line in (
        ([*chosen, {"uid": uids[0], "label": "1"}], 9),
        ([*chosen, {"uid": lines(dataset, "test")[0]["uid"]}], 9),
        ([*chosen, {"uid": uids[8], "label": "maybe"}], 9),
        ([*chosen, {"uid": uids[8], "image": url}], 9),
        ([{"image": url, "label": "0"}, *chosen], 1),
    ):
        refused = submitted(pictures.task, alice, wrong, name="Wrong")
        assert refused.outcome == "rejected"
        assert f"Line {line}:" in refused.error


def test_each_task_takes_what_it_ranks(task, alice, as_alice):
    with pytest.raises(Invalid):
        submit_model(task=task, owner=alice, kind="hub", name="Mine", source="a/b", revision="0")
    page = as_alice.get("/t/nli/submit/").text
    assert "?kind=hub" not in page
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
