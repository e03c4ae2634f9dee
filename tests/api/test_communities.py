"""Communities over the API: what one may see, the board, a model for all tasks."""

import pytest
from rest_framework.test import APIClient

from dynabench.communities.models import Community, CommunityTask, JointSubmission
from tests.support.archives import zip_of
from tests.support.boards import measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import TaskFactory, UserFactory
from tests.support.query_counts import count

ROOT = "/api/v1/communities/"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def words(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    made = Community.objects.create(slug="words", name="Words", is_listed=True, tracks=["small"])
    for code in ("nli", "second", "secret"):
        text = TaskFactory.build(code="nli").config_text
        task = TaskFactory(code=code, config_text=text, is_visible=code != "secret")
        CommunityTask.objects.create(community=made, task=task, state="in")
        set_version(task, "reviews", may_leave=True)
    Community.objects.create(slug="circle", name="Circle")
    return made


@pytest.fixture
def client(words):
    made = APIClient()
    made.force_login(UserFactory())
    return made


def test_a_stranger_reads_what_is_listed_and_nothing_of_hidden_tasks(words):
    stranger = APIClient()
    assert [one["slug"] for one in stranger.get(ROOT).json()["results"]] == ["words"]
    assert stranger.get(f"{ROOT}circle/").status_code == 404
    found = stranger.get(f"{ROOT}words/").json()
    assert [task["code"] for task in found["tasks"]] == ["nli", "second"]
    assert "secret" not in str(found) + str(stranger.get(f"{ROOT}words/board/").json())
    assert stranger.get(f"{ROOT}words/submissions/").status_code == 401
    for query in ("w_nli=9", "w_nli=nan", "w_secret=1", "w_nowhere=1", "x=1"):
        assert stranger.get(f"{ROOT}words/board/?{query}").status_code == 422, query


def test_the_board_tells_points_floors_and_what_is_missing(words, client):
    task = words.entries.get(task__code="nli").task
    version = task.evaluation_sets.get(name="reviews").versions.last()
    measured(accepted_model(task, UserFactory(), "Mine", is_published=True), version, 0.8)
    found = client.get(f"{ROOT}words/board/?w_second=0").json()
    assert [(one["task"], one["weight"]) for one in found["columns"]] == [("nli", 1), ("second", 0)]
    (line,) = found["lines"]
    assert (line["rank"], line["name"], line["missing"]) == ("1", "Mine", [])
    floor = found["columns"][0]["floor"]
    assert line["score"] == pytest.approx(100 * (80 - floor) / (100 - floor))
    (line,) = client.get(f"{ROOT}words/board/").json()["lines"]
    assert (line["rank"], line["score"], line["missing"]) == ("", None, ["second"])


def test_a_model_goes_to_all_tasks_or_to_none(words, client):
    hub = {"kind": "hub", "name": "Mine", "source": "org/name", "revision": COMMIT}
    url = f"{ROOT}words/submissions/"
    answer = client.post(url, hub, format="json")
    assert (answer.status_code, [*answer.json()["error"]["fields"]]) == (422, ["track"])
    made = client.post(url, {**hub, "track": "small"}, format="json")
    assert made.status_code == 201
    assert [one["task"] for one in made.json()["models"]] == ["nli", "second"]
    again = client.post(url, {**hub, "track": "small"}, format="json").json()["error"]
    assert again["code"] == "joint"
    assert "nli" in again["message"]
    assert len(client.get(url).json()["results"]) == JointSubmission.objects.count() == 1
    few = count(client, url)
    client.post(url, {**hub, "name": "Another", "track": "small"}, format="json")
    assert count(client, url) == few
    data = zip_of({"nli.jsonl": "{}"})
    upload = client.post("/api/v1/uploads/", {"file_name": "a.zip", "size": len(data)}).json()
    place = f"/api/v1/uploads/{upload['id']}/?offset=0"
    client.put(place, data, content_type="application/octet-stream")
    told = {"kind": "predictions", "name": "Two", "track": "small", "upload": upload["id"]}
    assert client.post(url, told, format="json").json()["error"]["code"] == "joint"
    other = APIClient()
    other.force_login(UserFactory())
    assert other.post(url, told, format="json").status_code == 422  # a file of somebody else
