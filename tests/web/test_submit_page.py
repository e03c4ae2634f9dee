"""Submitting a model: every kind of it, mistakes, what is left of the quota, inputs to take."""

import json
import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import Submission, Upload
from tests.support.factories import TaskFactory, UserFactory
from tests.support.submissions import make_set, submission_of, url_of

State = Submission.State
COMMIT = "0123456789abcdef0123456789abcdef01234567"
URL = "/t/nli/submit/"
HUB = {"kind": "hub", "name": "MiniLM", "source": "org/name", "revision": COMMIT}


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", name="Natural language inference")


def test_the_first_step_names_every_kind_and_what_is_left(as_alice, task):
    page = as_alice.get(URL).text
    for kind in ("directory", "image", "hub", "predictions", "endpoint"):
        assert f'href="?kind={kind}"' in page
    assert "<strong>3</strong> more models today" in page
    assert '<form method="post" enctype' not in page


def test_kinds_stand_in_groups_by_where_the_model_comes_from(as_alice, task):
    groups = as_alice.get(URL).context["groups"]
    names = [[kind.name for kind in kinds] for _title, kinds in groups]
    assert names == [["directory", "image", "predictions"], ["hub", "llm"], ["chat", "endpoint"]]


@pytest.mark.parametrize("kind", ["directory", "image", "hub", "llm", "chat", "predictions"])
def test_every_field_stands_in_a_part_with_a_title(as_alice, task, kind):
    form = as_alice.get(URL, {"kind": kind}).context["form"]
    parts = form.list_parts()
    assert all(title for title, _hint, _fields in parts)
    in_parts = [bound.name for _title, _hint, fields in parts for bound in fields]
    assert sorted(in_parts) == sorted(bound.name for bound in form.visible_fields())
    assert in_parts[0] == "name"


def test_strangers_are_asked_to_sign_in_and_hidden_tasks_are_not_there(client, alice, task):
    assert client.get(URL).status_code == 302
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    client.force_login(alice)
    assert client.get(URL).status_code == 404
    assert client.post(URL, HUB).status_code == 404


def test_a_hub_id_is_handed_in(as_alice, alice, task):
    assert 'name="revision"' in as_alice.get(f"{URL}?kind=hub").text
    reply = as_alice.post(URL, HUB)
    submission = Submission.objects.get()
    assert reply.url == url_of(submission)
    assert (submission.owner, submission.name, submission.state) == (alice, "MiniLM", "queued")
    page = as_alice.get(reply.url)
    assert page.context["progress"].phase == "received"
    assert 'hx-trigger="every 5s"' in page.text
    assert "<strong>2</strong> more" in as_alice.get(URL).text


def test_a_file_is_handed_in_with_the_form(as_alice, alice, task):
    file = SimpleUploadedFile("model.zip", b"PK" * 10)
    told = {"kind": "directory", "name": "Mine", "upload": file}
    assert as_alice.post(URL, told).status_code == 302
    upload = Submission.objects.get().upload
    assert (upload.file_name, upload.size, upload.owner) == ("model.zip", 20, alice)


def test_a_file_that_came_in_pieces_is_named_by_its_id(as_alice, alice, bob, task):
    mine = add_file(alice, "model.zip", 3, SimpleUploadedFile("a", b"abc"))
    theirs = add_file(bob, "model.zip", 3, SimpleUploadedFile("a", b"abc"))
    told = {"kind": "directory", "name": "Mine", "upload_id": str(theirs.pk)}
    reply = as_alice.post(URL, told)
    assert reply.status_code == 422
    assert 'href="#id_upload"' in reply.text
    as_alice.post(URL, {**told, "upload_id": str(mine.pk)})
    assert Submission.objects.get().upload == mine


@pytest.mark.parametrize(
    ("told", "field", "said"),
    [
        ({**HUB, "name": ""}, "id_name", "This field is required."),
        ({**HUB, "revision": "main"}, "id_revision", "40 hexadecimal digits"),
        ({**HUB, "source": "../etc"}, "id_source", "organisation/name"),
        ({"kind": "directory", "name": "Typed name"}, "id_upload", "Choose the archive"),
        ({"kind": "image", "name": "Typed name", "adapter": "jsonl"}, "id_source", "docker save"),
        ({"kind": "predictions", "name": "Typed name"}, "id_evaluation_set", "required"),
    ],
)
def test_mistakes_are_told_and_what_was_typed_stays(as_alice, task, told, field, said):
    reply = as_alice.post(URL, told)
    assert reply.status_code == 422
    assert said in reply.text
    assert f'href="#{field}"' in reply.text
    assert "<title>Error: " in reply.text
    assert told["name"] in reply.text
    assert not Submission.objects.exists()


def test_a_secret_is_never_shown_again(as_alice, task):
    make_set(task, "open", may_leave=True)
    told = {"kind": "endpoint", "name": "Far", "source": "http://example.org", "adapter": "jsonl",
            "secret": "s3cret"}  # fmt: skip
    reply = as_alice.post(URL, told)
    assert reply.status_code == 422
    assert "s3cret" not in reply.text
    reply = as_alice.post(URL, {**told, "source": "https://example.org"})
    assert "s3cret" not in as_alice.get(reply.url).text


def test_a_full_quota_is_told_with_its_end_and_takes_no_file(as_alice, alice, task):
    for _ in range(3):
        submission_of(task, alice)
    page = as_alice.get(URL)
    quota = page.context["quota"]
    assert quota.left == 0
    assert f'<time datetime="{quota.free_at:%Y-%m-%dT%H:%M}' in page.text
    file = SimpleUploadedFile("model.zip", b"PK" * 10)
    reply = as_alice.post(URL, {"kind": "directory", "name": "More", "upload": file})
    assert reply.status_code == 422
    assert not Upload.objects.exists()


def test_the_line_of_a_predictions_file_can_be_copied(as_alice, task):
    page = as_alice.get(URL, {"kind": "predictions"})
    text = unescape(page.text)
    places = [found.start() for found in re.finditer(r"\{\"id", text)]
    wanted = {"id": "…", "output": {task.config.answer_field: "…"}}
    shown = [json.JSONDecoder().raw_decode(text, place)[0] for place in places]
    assert shown == [wanted, {**wanted, "prob": None}]


def test_a_file_that_is_refused_does_not_stay(as_alice, alice, task):
    submission_of(task, alice, state=State.DONE)
    file = SimpleUploadedFile("model.zip", b"PK" * 10)
    reply = as_alice.post(URL, {"kind": "directory", "name": "MiniLM seed 1", "upload": file})
    assert reply.status_code == 422
    assert [*reply.context["form"].errors] == ["name"]
    assert not Upload.objects.exists()


def test_inputs_of_open_sets_are_downloaded_and_no_others(client, task):
    kept = make_set(task, "kept")
    hidden = make_set(task, "hidden", access="hidden", may_leave=True)
    version = make_set(task, "open", may_leave=True)
    url = f"/t/nli/sets/{version.pk}/inputs/"
    lines = client.get(url).getvalue().decode().splitlines()
    assert len(lines) == 6
    assert json.loads(lines[0]) == {
        "id": "open0",
        "inputs": {"premise": "Premise 0.", "hypothesis": "So."},
    }
    TaskFactory(code="qa")
    assert client.get(f"/t/qa/sets/{version.pk}/inputs/").status_code == 404
    for other in (kept, hidden):
        assert client.get(f"/t/nli/sets/{other.pk}/inputs/").status_code == 404
    client.force_login(UserFactory())
    page = client.get(f"{URL}?kind=predictions").text
    assert f'href="{url}"' in page
    assert "kept v1" not in page
    assert "hidden v1" not in page
