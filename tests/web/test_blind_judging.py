"""An owner judges their own task: what is hidden meanwhile, and what they never judge."""

# ruff: noqa: F811  (fixtures are named where they are used)

import io
import json

import pytest

from annotation.models import ShownExample
from core.errors import Refused
from evaluation.dataset_releases.cards import _list_blind_judging_periods
from tasks.contexts import uploads
from tasks.making.services import make_task
from tasks.making.templates import load_templates
from tasks.models import BlindJudging, Task, TaskMember
from tasks.services import change_members
from tests.support.factories import UserFactory
from tests.support.judging import decide_many, write
from tests.support.new_tasks import ada, as_ada  # noqa: F401
from tests.support.writing import signed_in
from validation.consensus.consensus import Vote
from validation.judging.blind_services import begin_blind_judging, end_blind_judging
from validation.judging.services import cast_validation, lease_next
from validation.models import Consensus, QueueItem, Validation

SWITCH = "/own/mine/access/blind/"


@pytest.fixture
def mine(ada, settings, tmp_path, monkeypatch):
    settings.NEW_TASKS = "everybody"
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")
    return make_task(creator=ada, code="mine", name="Mine", source=load_templates()["labels"])


def bring(client, *rows):
    """Import rows to be judged on the owner's page."""
    file = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
    file.name = "rows.jsonl"
    url = "/own/mine/rounds/1/rows/"
    page = client.post(url, {"file": file})
    assert client.post(f"{url}store/", {"ticket": page.context["ticket"]}).status_code == 302


def vote(user, example, label="positive"):
    """Somebody is handed this example and says so. Raises Refused."""
    lease = lease_next(validator=user.annotator, task=Task.objects.get(code="mine"))
    assert lease.example == example
    return cast_validation(validator=user.annotator, example=example, vote=Vote(label=label))


def test_a_lone_owner_labels_their_texts(mine, ada, as_ada):
    bring(as_ada, {"text": "The soup was cold."}, {"text": "The soup was warm."})
    assert as_ada.get("/t/mine/judge/").context["can_judge_as_owner"]
    assert as_ada.post(SWITCH, {"on": "1"}).url == "/t/mine/judge/"
    for _ in range(2):
        page = as_ada.get("/t/mine/judge/")
        answer = next(one for one, *_ in page.context["answers"] if "negative" in one)
        sent = {"example": str(page.context["example"].uuid), "answer": answer}
        as_ada.post("/t/mine/judge/", sent)
    votes = Validation.objects.filter(validator=ada.annotator, label="negative")
    assert votes.count() == 2
    assert Consensus.objects.filter(label="negative", state="decided").count() == 2
    for path in ("", "rounds/", "access/", "targets/", "rounds/1/contexts/all/", "config/"):
        assert as_ada.get(f"/own/mine/{path}").status_code == 200, path
    for path in ("review/", "review/examples/", "log/", "rounds/1/policy/", "annotators/"):
        assert as_ada.get(f"/own/mine/{path}").status_code == 403, path
    for path in ("", "judge/"):  # their way back to the switch
        assert 'href="/own/mine/"' in as_ada.get(f"/t/mine/{path}").text
    as_ada.post(SWITCH, {})
    assert as_ada.get("/own/mine/review/examples/").status_code == 200
    begun = BlindJudging.objects.get()
    assert begun.began_at <= begun.noted_at <= begun.ended_at
    dataset = type("Dataset", (), {"round": mine.rounds.get()})
    assert [one["votes"] for one in _list_blind_judging_periods(dataset)] == [2]


def test_tags_of_rows_are_in_results_and_exports(mine, ada, as_ada):
    assert as_ada.get("/own/mine/").context["numbers"]["collected"] == 0
    tags = ("food", "food", "tram", "")
    bring(as_ada, *({"text": f"Text {n}.", "tag": tag} for n, tag in enumerate(tags)))
    page = as_ada.get("/own/mine/")
    assert page.context["numbers"]["collected"] == 4  # within the minute
    assert 'href="/own/mine/access/#blind"' in page.text  # nobody else can judge them
    said = ("positive", "negative", "positive", "neutral")
    rows = mine.rounds.get().examples.order_by("pk")
    decide_many(rows, said, ada)
    labels = as_ada.get("/own/mine/results/").context["labels"]
    found = {tag: {k: n for k, n in one.items() if n} for tag, one in labels.items()}
    assert found == {
        "": {"positive": 2, "negative": 1, "neutral": 1},
        "food": {"positive": 1, "negative": 1},
        "tram": {"positive": 1},
    }
    lines = as_ada.get("/own/mine/rounds/1/export.jsonl").getvalue().splitlines()
    assert [json.loads(line)["tag"] for line in lines] == list(tags)


def test_what_an_owner_could_read_they_never_judge(mine, ada, as_ada, alice, bob):
    rows = [{"text": f"Text {n}."} for n in range(4)]
    bring(as_ada, *rows, {"text": "It has a label.", "label": "neutral"})
    examples = {one.context.fields["text"]: one for one in mine.rounds.get().examples.all()}
    bare, voted, decided, late = (examples[row["text"]] for row in rows)
    QueueItem.objects.update(still_needed=2, free=2)
    for example in (voted,):
        Validation.objects.create(example=example, validator=bob.annotator, label="neutral")
    decide_many([decided], ["neutral"], ada)
    begin_blind_judging(task=mine, owner=ada)
    shown = set(ShownExample.objects.filter(annotator=ada.annotator).values_list("example", "way"))
    told = (voted, decided, examples["It has a label."])
    assert shown == {(one.pk, "role") for one in told}
    handed = set()
    while lease := lease_next(validator=ada.annotator, task=Task.objects.get()):
        handed.add(lease.example)
        cast_validation(validator=ada.annotator, example=lease.example, vote=Vote(label="neutral"))
    assert handed == {bare, late}
    Validation.objects.filter(validator=ada.annotator, example=late).delete()
    end_blind_judging(task=mine, owner=ada)
    Validation.objects.create(example=late, validator=bob.annotator, label="positive")
    begin_blind_judging(task=mine, owner=ada)
    with pytest.raises(Refused) as error:
        cast_validation(validator=ada.annotator, example=late, vote=Vote(label="positive"))
    assert error.value.code == "already_shown"


def test_labels_that_a_blind_owner_brings_are_known_to_them(mine, ada, as_ada):
    begin_blind_judging(task=mine, owner=ada)
    bring(as_ada, {"text": "One.", "label": "neutral"}, {"text": "Two."})
    lease = lease_next(validator=ada.annotator, task=Task.objects.get())
    assert lease.example.context.fields == {"text": "Two."}
    assert ShownExample.objects.count() == 1


def test_an_owner_whose_notes_were_interrupted_judges_nothing(mine, ada, as_ada):
    bring(as_ada, {"text": "One."})
    BlindJudging.objects.create(task=mine, annotator=ada.annotator)
    TaskMember.objects.update(is_blind=True)
    assert lease_next(validator=ada.annotator, task=Task.objects.get()) is None
    assert as_ada.get("/own/mine/review/").status_code == 403
    begin_blind_judging(task=mine, owner=ada)
    assert lease_next(validator=ada.annotator, task=Task.objects.get())


def test_in_another_role_nobody_stays_blind(mine, ada, as_ada, bob):
    TaskMember.objects.create(task=mine, user=bob, role="owner")
    bring(as_ada, {"text": "One."})
    begin_blind_judging(task=mine, owner=ada)
    member = TaskMember.objects.get(task=mine, user=ada)
    for role in ("viewer", "owner"):
        member.role = role
        change_members(task=mine, actor=bob, changed_members=[member])
    example = mine.rounds.get().examples.get()
    Validation.objects.create(example=example, validator=bob.annotator, label="neutral")
    assert as_ada.get("/own/mine/review/").status_code == 200
    begin_blind_judging(task=Task.objects.get(), owner=ada)
    assert ShownExample.objects.get().example == example
    assert BlindJudging.objects.filter(ended_at=None).count() == 1


def test_only_members_who_own_a_task_judge_it_blind(mine, alice, nli, bob):
    TaskMember.objects.create(task=mine, user=alice, role="editor")
    assert signed_in(alice).post(SWITCH, {"on": "1"}).status_code == 403
    boss = UserFactory(is_superuser=True)
    TaskMember.objects.create(task=mine, user=boss, role="owner")
    signed_in(boss).post(SWITCH, {"on": "1"})
    with pytest.raises(Refused):
        begin_blind_judging(task=mine, owner=alice)
    assert not BlindJudging.objects.exists()


def test_examples_by_others_are_hidden_and_judged_after_the_switch(nli, ada, as_ada, bob):
    TaskMember.objects.create(task=nli.task, user=ada, role="owner")
    before = write(nli, bob, 0)
    begin_blind_judging(task=nli.task, owner=ada)
    after = write(nli, bob, 1)
    assert lease_next(validator=ada.annotator, task=Task.objects.get()).example == after
    for path in (f"/own/nli/review/{after.uuid}/", f"/own/nli/examples/{after.uuid}/"):
        assert as_ada.get(path).status_code == 403
    assert as_ada.get(f"/api/v1/examples/{before.uuid}/").status_code == 404
    assert as_ada.get("/admin/annotation/example/").status_code == 302
