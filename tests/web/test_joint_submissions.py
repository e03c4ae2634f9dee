"""One model for all tasks of a community: all of them take it or none does."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from dynabench.communities.models import Community, CommunityTask, JointSubmission
from evaluation.models import Submission, Upload
from tasks.models import Task
from tests.support.archives import zip_of
from tests.support.factories import TaskFactory
from tests.support.submissions import make_set, work_off

URL = "/communities/words/submit/"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = {"kind": "hub", "name": "MiniLM", "source": "org/name", "revision": COMMIT}
LINES = "\n".join(
    json.dumps({"id": f"reviews{n}", "output": {"label": "entailment"}, "prob": None})
    for n in range(6)
)


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def words(db):
    """Two open tasks that take models, one that is hidden, one that takes training data."""
    made = Community.objects.create(slug="words", name="Words", is_listed=True)
    for code in ("nli", "second", "secret", "data"):
        text = TaskFactory.build(code="nli").config_text
        if code == "data":
            text = text.replace("version: 1\n", "version: 1\ntraining_rows: 50\n", 1)
        task = TaskFactory(code=code, config_text=text, is_visible=code != "secret")
        CommunityTask.objects.create(community=made, task=task, state="in")
        make_set(task, "reviews", may_leave=True)
    return made


def predictions(**files):
    named = {f"{name.replace('__', '/')}.jsonl": data for name, data in files.items()}
    archive = SimpleUploadedFile("answers.zip", zip_of(named))
    return {"kind": "predictions", "name": "Mine", "upload": archive}


def nothing_is_kept():
    return not (Submission.objects.exists() or Upload.objects.exists())


@pytest.mark.parametrize("kind", ["hub", "llm"])
def test_a_model_becomes_a_submission_of_each_task_that_takes_it(as_alice, alice, words, kind):
    answer = as_alice.post(URL, {**HUB, "kind": kind})
    joint = JointSubmission.objects.get()
    assert answer.url == f"/communities/words/submissions/{joint.pk}/"
    made = joint.submissions.order_by("task__code")
    assert [one.task.code for one in made] == ["nli", "second"]
    assert {(one.owner, one.name, one.source) for one in made} == {(alice, "MiniLM", "org/name")}
    assert {(one.kind, bool(one.chat)) for one in made} == {(kind, kind == "llm")}
    page = as_alice.get(answer.url)
    assert [one.task.code for one, _ in page.context["rows"]] == ["nli", "second"]


def test_an_archive_holds_a_file_for_each_task(as_alice, words):
    assert as_alice.post(URL, predictions(nli__reviews=LINES, second=LINES)).status_code == 302
    work_off()
    found = Submission.objects.order_by("task__code")
    assert [(one.task.code, one.state) for one in found] == [("nli", "done"), ("second", "done")]
    assert {one.evaluation_set.evaluation_set.name for one in found} == {"reviews"}
    found.update(is_published=True)
    lines = as_alice.get("/communities/words/board/").context["board"].lines
    ((name, scores),) = [(one.entrant.name, {*one.entrant.scores}) for one in lines]
    assert (name, scores) == ("Mine", {"nli", "second"})


def test_endings_in_an_archive_have_any_case(as_alice, words):
    files = {"nli/reviews.JSONL": LINES, "second.Jsonl": LINES}
    archive = SimpleUploadedFile("Ü 100% #1.ZIP", zip_of(files))
    sent = {"kind": "predictions", "name": "Mine", "upload": archive}
    assert as_alice.post(URL, sent).status_code == 302
    assert Submission.objects.count() == 2


def test_training_data_goes_to_the_tasks_that_take_it(as_alice, words):
    row = '{"premise": "A.", "hypothesis": "B.", "label": "neutral"}'
    archive = SimpleUploadedFile("rows.zip", zip_of({"data.jsonl": row}))
    told = {"kind": "rows", "name": "Data", "upload": archive}
    assert as_alice.post(URL, told).status_code == 302
    assert [(one.task.code, one.kind) for one in Submission.objects.all()] == [("data", "rows")]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"nli__reviews": LINES}, {"nli": False, "second": True}),
        ({"nli__reviews": LINES, "second": LINES, "secret__reviews": LINES}, None),
        ({"nli__reviews": LINES, "second": LINES, "..__x": LINES}, None),
        ({}, None),
    ],
)
def test_an_archive_that_lacks_or_holds_something_else_leaves_nothing(as_alice, words, files, said):
    answer = as_alice.post(URL, predictions(**files))
    assert answer.status_code == 422
    if said:
        assert {code: bool(words) for code, words in answer.context["answers"]} == said
    else:
        assert [*answer.context["form"].errors] == ["upload"]
    assert nothing_is_kept()


def test_one_task_that_refuses_is_enough_and_what_each_said_is_told(as_alice, alice, words):
    second = Task.objects.get(code="second")
    taken = Submission.objects.create(task=second, owner=alice, name="MiniLM", kind="hub")
    answer = as_alice.post(URL, HUB)
    assert answer.status_code == 422
    assert {code: bool(words) for code, words in answer.context["answers"]} == {
        "nli": False,
        "second": True,
    }
    assert [*Submission.objects.all()] == [taken]
    assert not JointSubmission.objects.exists()
    for number in range(3):  # the quota of one task is asked for before any file is read
        Submission.objects.create(task=second, owner=alice, name=f"{number}", kind="hub")
    answer = as_alice.post(URL, predictions(nli__reviews=LINES, second=LINES))
    assert {code: bool(words) for code, words in answer.context["answers"]}["second"]
    assert not Upload.objects.exists()


def test_a_hidden_task_takes_part_for_those_alone_who_may_see_it(as_alice, alice, words):
    assert "secret" not in as_alice.get(URL).text
    Task.objects.get(code="secret").members.create(user=alice, role="viewer")
    as_alice.post(URL, HUB)
    joint = JointSubmission.objects.get()
    assert joint.submissions.filter(task__code="secret").exists()
    Task.objects.get(code="secret").members.all().delete()
    rows = as_alice.get(f"/communities/words/submissions/{joint.pk}/").context["rows"]
    assert [one.task.code for one, _ in rows] == ["nli", "second"]


def test_a_joint_submission_is_its_owners_page(as_alice, bob, client, words):
    address = as_alice.post(URL, HUB).url
    client.force_login(bob)
    assert client.get(address).status_code == 404
    Community.objects.create(slug="other", name="Other", is_listed=True)
    other = address.replace("words", "other")
    assert as_alice.get(other).status_code == 404
    client.logout()
    assert client.post(URL, HUB).status_code == 302  # sign in first
    assert client.get(URL).url.startswith("/accounts/login/")


def test_a_track_is_one_of_the_communitys(as_alice, words):
    Community.objects.update(tracks=["small", "large"])
    for track in ("", "huge"):
        answer = as_alice.post(URL, {**HUB, "track": track})
        assert [*answer.context["form"].errors] == ["track"]
    assert as_alice.post(URL, {**HUB, "track": "small"}).status_code == 302
    assert JointSubmission.objects.get().track == "small"
