"""Examples with answers of other tools come in on an owner's page, and rounds come back."""

import io
import json

import pytest

from annotation.models import Example, ShownExample
from tasks.contexts import uploads
from tasks.models import TaskMember
from tests.support.factories import RoundFactory, UserFactory
from tests.support.judging import answered, write
from tests.support.writing import signed_in
from validation.imports.tool_files import HISTORY_LAYOUT, LAYOUTS
from validation.judging.blind_services import begin_blind_judging
from validation.models import QueueItem, Validation

IMPORT = "/own/nli/rounds/2/import/"
OWN = "dynabench"
TOOLS = ("argilla", "doccano", "label_studio", "potato")


@pytest.fixture
def owner(nli, alice, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    RoundFactory(task=nli.task, number=2, state="draft")
    return signed_in(alice)


@pytest.fixture
def judged(nli, bob):
    """Two examples with a model's answer and three votes."""
    made = [write(nli, bob, number) for number in range(2)]
    for example, labels in zip(made, (["neutral", "neutral"], ["entailment"]), strict=True):
        answered(example)
        for label in labels:
            Validation.objects.create(
                example=example, validator=UserFactory().annotator, label=label
            )
    return made


def preview(client, layout, content, name="rows.jsonl", **more):
    file = io.BytesIO(content)
    file.name = name
    return client.post(IMPORT, {"layout": layout, "file": file, **more})


def store(client, page, **more):
    sent = {"ticket": page.context["ticket"], "layout": page.context["form"]["layout"].value()}
    return client.post(f"{IMPORT}store/", {**sent, **more})


def exported(client, layout):
    path = "export.jsonl" if layout == OWN else f"export/{layout}/"
    response = client.get(f"/own/nli/rounds/1/{path}")
    assert response.status_code == 200
    return b"".join(response.streaming_content), response["Content-Disposition"].split('"')[1]


@pytest.mark.parametrize("layout", [OWN, *TOOLS])
def test_a_round_goes_out_and_comes_back_with_its_votes(owner, nli, judged, layout):
    content, name = exported(owner, layout)
    assert b"Statement 0." in content  # what is judged is there to read
    if layout == "doccano":  # which numbers what it exports
        rows = map(json.loads, content.splitlines())
        content = "\n".join(json.dumps({"id": n, **row}) for n, row in enumerate(rows)).encode()
    page = preview(owner, layout, content, name)
    assert (page.status_code, page.context["brought"].summary.new_count) == (200, 2)
    assert not Example.objects.filter(round__number=2).exists()
    assert store(owner, page).url == "/own/nli/"
    votes = Validation.objects.filter(example__round__number=2)
    assert sorted(votes.values_list("label", flat=True)) == ["entailment", "neutral", "neutral"]
    assert all(votes.values_list("is_imported", flat=True))
    again = preview(owner, layout, content, name)
    assert (
        again.context["brought"].summary.new_count,
        again.context["brought"].summary.known_count,
    ) == (0, 2)


def test_examples_are_judged_here_where_that_is_asked(owner, nli, judged):
    content, name = exported(owner, OWN)
    page = preview(owner, OWN, content, name, judge="on")
    assert store(owner, page, judge="on").status_code == 302
    assert QueueItem.objects.filter(round__number=2).count() == 2
    assert nli.task.rounds.get(number=2).state == "closed"


def test_what_cannot_be_stored_is_named_before(owner):
    row = {"task": "nli", "round": 1, "uid": "1", "author": None, "author_label": "neutral",
           "model_wrong": None, "model_prediction": None, "metadata": {},
           "context": {"premise": "It rains."}, "input": {"hypothesis": "It is wet."},
           "validations": [{"worker": "w1", "label": "neutral"}]}  # fmt: skip
    content = json.dumps(row).encode() + b"\n{"
    page = preview(owner, HISTORY_LAYOUT, content)
    brought = page.context["brought"]
    assert (brought.summary.new_count, brought.summary.bad_count) == (1, 1)
    assert {place for place, _reason in brought.bad_lines} == {2}
    assert store(owner, page).status_code == 302
    assert Example.objects.get(round__number=2).validations.count() == 1
    refused = preview(owner, "label_studio", b"\x00\x01", "rows.json")
    assert refused.status_code == 422


def test_who_may_and_when(owner, nli, judged, bob):
    content, name = exported(owner, OWN)
    page = preview(owner, OWN, content, name)
    TaskMember.objects.create(task=nli.task, user=bob, role="reviewer")
    other = signed_in(bob)
    assert preview(other, OWN, content).status_code == 403
    assert store(other, page).status_code == 403
    owner.post(f"{IMPORT}store/", {"ticket": "forged", "layout": OWN})
    nli.task.rounds.filter(number=2).update(state="released")
    store(owner, page)
    assert preview(owner, OWN, content).status_code == 422
    assert not Example.objects.filter(round__number=2).exists()
    assert set(TOOLS) < set(LAYOUTS)


def test_answers_that_a_blind_owner_brings_are_known_to_them(owner, nli, judged, alice):
    content, name = exported(owner, OWN)
    begin_blind_judging(task=nli.task, owner=alice)
    store(owner, preview(owner, OWN, content, name))
    shown = ShownExample.objects.filter(example__round__number=2, annotator=alice.annotator)
    assert shown.count() == 2
