"""The owner's page that releases a round, and the public page of its data."""

# ruff: noqa: F811  (fixtures are named where they are used)

from io import BytesIO
from zipfile import ZipFile

import pytest

from annotation.moderation import withdraw_example
from evaluation.dataset_releases.samples import SAMPLE_SIZE
from evaluation.jobs import build_dataset
from evaluation.models import Dataset
from tasks.models import TaskMember
from tests.support.releases import (  # noqa: F401
    _own_storage,
    closed,
    content,
    people,
    released,
)
from tests.web.conftest import HTMX

OWN = "/own/nli/rounds/1/release/"
DATA = "/t/nli/rounds/1/data/"
WANTED = {"train": "", "dev": "8", "test": "8", "seed": "0", "license": "cc-by-4.0"}


def member(user, role, task):
    TaskMember.objects.create(user=user, task=task, role=role)
    return user


def test_an_owner_releases_by_the_page(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    page = client.get(OWN)
    assert page.status_code == 200
    assert page.context["authors"] == 12
    answer = client.post(OWN, {**WANTED, "description": "All *short*."}, follow=True)
    assert answer.context["last"].state == "queued"
    part = client.get(OWN, **HTMX)
    assert 'hx-trigger="load delay:2s"' in part.text
    assert "<html" not in part.text
    assert client.post(OWN, WANTED).status_code == 200  # a second click asks for nothing
    build_dataset(Dataset.objects.get().pk)
    over = client.get(OWN, **HTMX)
    assert "hx-trigger" not in over.text
    assert Dataset.objects.get().state == "done"
    dataset = Dataset.objects.get()
    assert dataset.requested_by == alice
    assert dataset.options["url"] == f"http://testserver{DATA}"
    withdraw_example(example=dataset.items.first().example, actor=alice, reason="")
    assert client.get(OWN).context["withdrawn"] == 1
    client.post(OWN, {"license": "cc-by-4.0"})
    assert Dataset.objects.count() == 2


def test_an_owner_states_what_no_number_tells(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    refused = client.post(OWN, {**WANTED, "biases": "Students alone.", "use_cases": "x" * 2001})
    assert refused.status_code == 422
    assert 'href="#id_use_cases"' in refused.text
    assert "Students alone." in refused.text
    assert '<details id="statements" open>' in refused.text
    client.post(OWN, {**WANTED, "biases": "Students alone."})
    build_dataset(Dataset.objects.get().pk)
    withdraw_example(example=Dataset.objects.get().items.first().example, actor=alice, reason="")
    # A later version begins with them, and without them where the owner takes them away.
    form = client.get(OWN).context["form"]
    assert form["biases"].value() == "Students alone."
    client.post(OWN, {"license": "cc-by-4.0", "biases": ""})
    assert Dataset.objects.get(version=2).options["statements"]["biases"] == ""


def test_what_is_wrong_is_told_and_what_was_typed_stays(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    answer = client.post(OWN, {**WANTED, "test": "-1", "description": "kept"})
    assert answer.status_code == 422
    assert 'href="#id_test"' in answer.text
    assert "kept" in answer.text
    answer = client.post(OWN, {**WANTED, "test": "900", "description": "kept"})
    assert answer.status_code == 422
    assert answer.context["form"].non_field_errors()
    assert "kept" in answer.text
    assert not Dataset.objects.exists()


def test_a_failure_is_shown_above_a_new_form(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    Dataset.objects.create(round=closed, version=1, state="failed", error="The disk is full.")
    page = client.get(OWN)
    assert "The disk is full." in page.text
    assert 'name="test"' in page.text


@pytest.mark.parametrize(("role", "refused"), [(None, 404), ("editor", 403)])
def test_only_owners_release(client, closed, alice, role, refused):
    if role:
        member(alice, role, closed.task)
    client.force_login(alice)
    assert client.get(OWN).status_code == refused
    assert client.post(OWN, WANTED).status_code == refused
    assert not Dataset.objects.exists()


def test_everybody_reads_the_data_of_a_visible_task(client, closed):
    assert not client.get(DATA).context["versions"]
    dataset = released(closed, description="All *short*. <script>alert(1)</script>")
    page = client.get(DATA)
    assert "<em>short</em>" in page.text
    assert "<script>alert" not in page.text
    assert dataset.files.get(name="SHA256SUMS").sha256 in page.text
    assert "@misc{nli-round1-v1," in page.text
    for file in dataset.files.all():
        answer = client.get(f"{DATA}1/{file.name}")
        assert b"".join(answer.streaming_content) == content(dataset, file.name)
        assert answer["Content-Disposition"] == f'attachment; filename="{file.name}"'
        assert answer["X-Content-Type-Options"] == "nosniff"


def unzip(answer):
    """Return the contents of the archive by file name, without their folder."""
    with ZipFile(BytesIO(b"".join(answer.streaming_content))) as archive:
        assert archive.testzip() is None
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def test_a_version_is_one_archive(client, closed):
    dataset = released(closed)
    assert f'href="{DATA}1.zip"' in client.get("/t/nli/data/").text
    assert client.head(f"{DATA}1.zip").status_code == 200
    assert Dataset.objects.get().downloaded_at is None
    answer = client.get(f"{DATA}1.zip")
    assert answer["Content-Disposition"] == 'attachment; filename="nli-round1-v1.zip"'
    names = list(dataset.files.values_list("name", flat=True))
    assert unzip(answer) == {name: content(dataset, name) for name in names}
    assert Dataset.objects.get().downloaded_at
    assert client.get(f"{DATA}2.zip").status_code == 404


def test_a_damaged_file_stops_the_archive_before_it_begins(client, closed):
    dataset = released(closed)
    dataset.files.filter(name="train.jsonl").update(sha256="0" * 64)
    assert client.get(f"{DATA}1.zip").status_code == 503
    assert Dataset.objects.get().downloaded_at is None


@pytest.mark.parametrize("name", ["nothing.jsonl", "..%2fsecret_key", "train.jsonl%00"])
def test_there_are_no_other_files(client, closed, name):
    released(closed)
    assert client.get(f"{DATA}1/{name}").status_code == 404
    assert client.get(f"{DATA}2/train.jsonl").status_code == 404


def test_a_hidden_tasks_data_is_its_members(client, closed, alice, bob):
    closed.task.is_visible = False
    closed.task.save()
    released(closed)
    member(bob, "viewer", closed.task)
    for user, status in ((None, 404), (alice, 404), (bob, 200)):
        if user:
            client.force_login(user)
        assert client.get(DATA).status_code == status
        assert client.get(f"{DATA}1/train.jsonl").status_code == status
        assert client.get(f"{DATA}1.zip").status_code == status


def test_private_labels_are_for_members(client, closed, alice, bob):
    released(closed, private_test=True)
    member(bob, "viewer", closed.task)
    for user, status in ((alice, 404), (bob, 200)):
        client.force_login(user)
        assert ("test.jsonl" in client.get(DATA).text) is (status == 200)
        assert client.get(f"{DATA}1/test.jsonl").status_code == status
        assert client.get(f"{DATA}1/test-unlabelled.jsonl").status_code == 200
        assert ("test.jsonl" in unzip(client.get(f"{DATA}1.zip"))) is (status == 200)


def test_a_version_that_is_not_done_cannot_be_read(client, closed):
    dataset = released(closed)
    Dataset.objects.filter(pk=dataset.pk).update(state="failed")
    assert not client.get(DATA).context["versions"]
    assert client.get(f"{DATA}1/train.jsonl").status_code == 404
    assert client.get(f"{DATA}1.zip").status_code == 404


def test_the_page_shows_rows_of_the_training_split_alone(client, closed, alice):
    dataset = released(closed)
    member(alice, "viewer", closed.task)
    client.force_login(alice)
    samples = client.get(DATA).context["samples"]
    train = set(dataset.items.filter(split="train").values_list("example__uuid", flat=True))
    assert len(samples) == SAMPLE_SIZE
    assert {sample.uuid for sample in samples} <= train
    assert samples[0].context[0][1]
    assert samples[0].model_answers


def test_only_a_final_release_shows_rows_to_strangers(client, closed, alice):
    dataset = released(closed)
    assert not client.get(DATA).context["samples"]
    client.force_login(member(alice, "owner", closed.task))
    assert client.get(DATA).context["samples"]  # who reads the answers anyway never judges
    dataset.refresh_from_db()
    assert dataset.downloaded_at is None
    client.logout()
    b"".join(client.get(f"{DATA}1/train.jsonl"))
    assert client.get(DATA).context["samples"]


def test_a_withdrawn_example_leaves_the_sample(client, closed):
    dataset = released(closed)
    b"".join(client.get(f"{DATA}1/train.jsonl"))  # so that everybody sees rows
    example = dataset.items.filter(split="train").first().example
    withdraw_example(example=example, actor=None, reason="")
    assert client.get(DATA).context["samples"]
    assert example.uuid not in {sample.uuid for sample in client.get(DATA).context["samples"]}
