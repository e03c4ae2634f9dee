"""The owners' pages of evaluation sets: look through a file, add it, change who sees it."""

import gzip
import io
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.models import Example
from core.files.bounded import TOO_LARGE_MESSAGE, Bounds
from evaluation.contract import GIB, MIB
from evaluation.models import EvaluationSet, Upload
from evaluation.test_sets import writing as set_writing
from evaluation.test_sets.selectors import find_latest_version, read_set_rows
from evaluation.test_sets.services import create_set_with_version
from evaluation.test_sets.source_services import make_missing_versions, make_round_version
from tasks.models import Round, TaskMember
from tests.support.factories import UserFactory
from tests.support.sets import ROWS, verified
from validation.models import Consensus

URL = "/own/sentiment/evaluation-sets/"
GOOD = [{"uid": "a", "text": "Very good.", "label": "positive", "tag": "food"}]
FIELDS = {"name": "reviews", "access": "hidden", "description": "From a paper."}


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def owner(as_alice, alice, sentiment):
    TaskMember.objects.create(task=sentiment.task, user=alice, role="owner")
    return as_alice


@pytest.fixture
def one(sentiment):
    version = create_set_with_version(ROWS, task=sentiment.task, name="mine", actor=None)
    return version.evaluation_set


def file_of(rows, name="rows.jsonl"):
    return SimpleUploadedFile(name, "\n".join(map(json.dumps, rows)).encode())


def kept(response):
    return re.search(r'name="upload" value="([0-9a-f-]+)"', response.text)[1]


def test_a_set_is_looked_through_and_then_added(owner, sentiment):
    response = owner.post(f"{URL}new/", FIELDS | {"file": file_of(GOOD)})
    assert response.status_code == 200
    assert "1 example in rows.jsonl" in response.text
    assert "Very good." in response.text
    assert "positive: 1" in response.text
    assert "food: 1" in response.text
    assert "From a paper." in response.text  # what was typed survives
    assert not EvaluationSet.objects.exists()
    values = FIELDS | {"upload": kept(response), "add": "1", "may_leave": "on"}
    response = owner.post(f"{URL}new/", values, follow=True)
    assert "sentiment/reviews v1: 1 example." in response.text
    made = EvaluationSet.objects.get()
    assert (made.access, made.may_leave, made.description) == ("hidden", True, "From a paper.")
    assert [row.uid for row in read_set_rows(find_latest_version(made))] == ["a"]
    assert not Upload.objects.exists()


def test_wrong_lines_are_named_and_what_was_typed_survives(owner):
    bad = file_of([*GOOD, {"text": "x"}, {"label": "<b>"}])
    response = owner.post(f"{URL}new/", FIELDS | {"file": bad, "add": "1"})
    assert response.status_code == 422
    errors = response.context["form"].preview.errors
    assert [(one.line, one.message.split()[0]) for one in errors] == [(2, "`label`"), (3, "`text`")]
    assert "From a paper." in response.text
    assert 'value="reviews"' in response.text
    assert 'name="add"' not in response.text
    assert "Error: " in re.search("<title>.*?</title>", response.text)[0]
    assert not EvaluationSet.objects.exists()


@pytest.mark.own_process
def test_a_small_file_that_takes_all_memory_is_an_error_of_the_field(owner, monkeypatch):
    """Less than 1 kB of Parquet, one batch of which is 1.5 GB."""
    monkeypatch.setattr(set_writing, "READ_BOUNDS", Bounds(memory_bytes=GIB))
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), ["x" * 3 * MIB])
    bomb = io.BytesIO()
    told = {"compression": "zstd", "dictionary_pagesize_limit": 4 * MIB, "store_schema": False}
    pq.write_table(pa.table({"text": texts}), bomb, **told)
    file = SimpleUploadedFile("rows.parquet", bomb.getvalue())
    assert file.size < 1000
    response = owner.post(f"{URL}new/", FIELDS | {"file": file})
    assert response.status_code == 422
    assert response.context["form"].errors["file"] == [TOO_LARGE_MESSAGE]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, "file"),
        ({"upload": "4f5e8b9e-0000-4000-8000-000000000000"}, "file"),
        ({"file": SimpleUploadedFile("a.jsonl", b"")}, "file"),
        ({"file": SimpleUploadedFile("a.jsonl", b"\n")}, "file"),
        ({"file": SimpleUploadedFile("a.xlsx", b"x")}, "file"),
        ({"file": file_of(GOOD), "name": "mine"}, "name"),
        ({"file": file_of(GOOD), "name": "a b"}, "name"),
        ({"file": file_of(GOOD), "name": "control", "add": "1"}, "__all__"),
        ({"file": file_of(GOOD), "access": "x"}, "access"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_forms_that_are_refused(changes, field, owner, one):
    for value in changes.values():
        if hasattr(value, "seek"):
            value.seek(0)
    response = owner.post(f"{URL}new/", FIELDS | changes)
    assert response.status_code == 422
    assert [*response.context["form"].errors] == [field]
    assert EvaluationSet.objects.count() == 1


def test_a_file_is_kept_while_other_fields_are_mended(owner):
    response = owner.post(f"{URL}new/", FIELDS | {"file": file_of(GOOD), "name": ""})
    assert response.status_code == 422
    assert "1 example in rows.jsonl" in response.text
    assert owner.post(f"{URL}new/", FIELDS | {"upload": kept(response)}).status_code == 200


def test_another_file_takes_the_place_of_the_first(owner):
    for _ in range(7):  # more than a person may have open
        response = owner.post(f"{URL}new/", FIELDS | {"file": file_of(GOOD)})
        assert response.status_code == 200
    assert Upload.objects.count() == 1


def test_nobody_adds_the_file_of_somebody_else(owner, client):
    response = owner.post(f"{URL}new/", FIELDS | {"file": file_of(GOOD)})
    client.force_login(UserFactory(is_superuser=True))
    values = FIELDS | {"upload": kept(response), "add": "1"}
    assert [*client.post(f"{URL}new/", values).context["form"].errors] == ["file"]


def test_files_that_are_too_large_for_the_page(owner, monkeypatch):
    monkeypatch.setattr("evaluation.test_sets.forms.MAX_FILE_BYTES", 10)
    response = owner.post(f"{URL}new/", FIELDS | {"file": file_of(GOOD)})
    assert [*response.context["form"].errors] == ["file"]
    assert not Upload.objects.exists()


def test_a_set_gets_its_next_version(owner, one):
    url = f"{URL}mine/new/"
    assert owner.get(url).context["one"] == one
    response = owner.post(url, {"file": file_of(GOOD)})
    response = owner.post(url, {"upload": kept(response), "add": "1"}, follow=True)
    assert "sentiment/mine v2: 1 example." in response.text
    assert find_latest_version(one).version == 2
    assert find_latest_version(one).made_by is not None


def test_the_list_and_a_set(owner, one):
    text = owner.get(URL).text
    assert f'href="{URL}mine/"' in text
    assert "tag (2)" in text
    text = owner.get(f"{URL}mine/").text
    assert "food: 2" in text
    assert "/inputs/" not in text  # they are not shared
    assert "positive" not in text


def test_who_sees_it_is_changed(owner, one):
    response = owner.post(f"{URL}mine/", {"access": "standard", "description": "**New**"})
    assert response.status_code == 302
    assert "<strong>New</strong>" in owner.get(f"{URL}mine/").text
    one.refresh_from_db()
    assert (one.access, one.may_leave) == ("standard", False)
    assert owner.post(f"{URL}mine/", {"access": "x", "description": "kept"}).status_code == 422


def test_a_closed_round_can_be_taken_again(owner, sentiment):
    def example(number):
        made = verified(sentiment, number, label="neutral")
        made.inputs = {"text": f"Sentence {number}.", "label": "neutral"}
        made.save()

    example(1)
    Round.objects.update(state="closed")
    sentiment.refresh_from_db()
    make_round_version(sentiment)
    example(2)
    assert f'action="{URL}round-1/take/"' in owner.get(f"{URL}round-1/").text
    response = owner.post(f"{URL}round-1/take/", follow=True)
    assert "sentiment/round-1 v2: 2 examples." in response.text
    assert owner.get(f"{URL}round-1/new/").status_code == 404  # it is no uploaded one
    Round.objects.update(state="open")
    assert owner.post(f"{URL}round-1/take/").status_code == 404


def test_a_round_that_is_still_judged_is_taken_with_a_reason(owner, sentiment):
    for number in (1, 2):
        verified(sentiment, number, label="neutral")
        inputs = {"text": f"Sentence {number}.", "label": "neutral"}
        Example.objects.filter(digest=str(number)).update(inputs=inputs)
    Consensus.objects.get(example__digest="2").delete()
    Round.objects.update(state="closed")
    make_missing_versions()
    assert 'name="reason"' in owner.get(f"{URL}round-1/").text
    owner.post(f"{URL}round-1/take/")
    assert find_latest_version(EvaluationSet.objects.get()) is None
    owner.post(f"{URL}round-1/take/", {"reason": "The paper is due."})
    assert find_latest_version(EvaluationSet.objects.get()).is_provisional
    assert "provisional" in owner.get(f"{URL}round-1/").text


def test_texts_of_a_sensitive_task_are_shielded(as_alice, alice, hate):
    TaskMember.objects.create(task=hate.task, user=alice, role="owner")
    rows = [{"text": "They are awful.", "label": "hate"}]
    url = "/own/hate-speech/evaluation-sets/new/"
    text = as_alice.post(url, FIELDS | {"file": file_of(rows)}).text
    before = text.partition("<main")[2].partition("They are awful.")[0]
    assert before.count("<details") == before.count("</details>") + 1
    assert before.rpartition("<details")[2].startswith(' class="shield">')


def test_inputs_leave_only_where_they_may(owner, one):
    url = f"{URL}mine/v1/inputs/"
    assert owner.get(url).status_code == 404
    EvaluationSet.objects.update(may_leave=True)
    lines = gzip.decompress(b"".join(owner.get(url))).decode().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"uid": row.uid, "inputs": row.inputs} for row in ROWS
    ]
    assert url in owner.get(f"{URL}mine/").text
    assert owner.get(url.replace("v1", "v2")).status_code == 404


PAGES = ["", "new/", "mine/", "mine/new/", "mine/take/", "mine/v1/inputs/"]


@pytest.mark.parametrize("page", PAGES)
def test_only_editors_enter(page, client, one):
    EvaluationSet.objects.update(may_leave=True)
    assert client.get(URL + page).status_code in (302, 405)
    client.force_login(UserFactory())
    for method in (client.get, client.post):
        assert method(URL + page).status_code in (404, 405)


@pytest.mark.parametrize("name", ["mine", "new", "nothing"])
def test_pages_of_sets_that_are_not_there(name, owner, sentiment):
    assert owner.get(f"{URL}{name}/").status_code == (200 if name == "new" else 404)
    assert owner.post(f"{URL}{name}/take/").status_code == 404
