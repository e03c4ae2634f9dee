"""Communities over the API: what one may see, the board, a model for all tasks."""

import pytest
from rest_framework.test import APIClient

from core.accounts.models import confirm_address
from dynabench.communities.models import Community, CommunityTask, JointSubmission
from tasks.models import TaskMember
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


def as_api(user):
    made = APIClient()
    made.force_login(user)
    return made


def test_a_community_is_proposed_founded_and_run_over_the_api(words):
    founder, boss = UserFactory(), UserFactory(is_superuser=True)
    confirm_address(founder)
    mine, admin, stranger = as_api(founder), as_api(boss), as_api(UserFactory())
    wanted = {"name": "Rivers", "slug": "rivers", "goal": "To compare."}
    assert mine.post(f"{ROOT}proposals/", {**wanted, "slug": "words"}).status_code == 409
    made = mine.post(f"{ROOT}proposals/", wanted).json()
    one = f"{ROOT}proposals/{made['id']}/"
    assert mine.patch(one, {"approve": True}).status_code == 404
    assert admin.patch(one, {"approve": False}).status_code == 422, "it needs a reason"
    assert admin.patch(one, {"approve": True}).json()["community"] == "rivers"
    assert admin.patch(one, {"approve": True}).json()["error"]["code"] == "decided"
    assert mine.get(f"{ROOT}proposals/").json()["results"][0]["state"] == "approved"

    page = f"{ROOT}rivers/"
    assert stranger.patch(page, {"text": "Mine."}).status_code == 404, "it is not listed yet"
    changed = mine.patch(page, {"is_listed": True, "tracks": ["small"]}, format="json").json()
    assert (changed["name"], changed["is_listed"], changed["tracks"]) == ("Rivers", True, ["small"])
    assert mine.patch(page, {"tracks": ["a", "a"]}, format="json").status_code == 422
    for write in (
        lambda: stranger.patch(page, {"text": "Mine."}),
        lambda: stranger.post(f"{page}owners/", {"email": founder.email}),
        lambda: stranger.post(f"{page}news/", {"title": "A", "text": "B"}),
        lambda: stranger.get(f"{page}entries/"),
    ):
        assert write().status_code == 403
    post = mine.post(f"{page}news/", {"title": "We *begin*", "text": "Today."}).json()
    assert stranger.get(page).json()["news"] == [post]
    assert mine.delete(f"{page}news/{post['id']}/").status_code == 204


def test_owners_are_named_and_tasks_let_in_over_the_api(words):
    first, second, asker = (UserFactory() for _ in range(3))
    for person in (first, second):
        confirm_address(person)
    words.owners.add(first)
    task = TaskFactory(code="qa", is_visible=False)
    TaskMember.objects.create(task=task, user=asker, role="owner")
    mine, theirs, stranger = as_api(first), as_api(asker), as_api(UserFactory())
    page = f"{ROOT}words/"
    assert len(mine.post(f"{page}owners/", {"email": second.email}).json()) == 2
    assert mine.post(f"{page}owners/", {"email": "nobody@example.com"}).status_code == 422
    assert mine.delete(f"{page}owners/{second.pk}/").status_code == 204
    assert mine.delete(f"{page}owners/{first.pk}/").json()["error"]["code"] == "owners"

    assert stranger.post(f"{page}entries/", {"task": "qa"}).status_code == 422
    entry = theirs.post(f"{page}entries/", {"task": "qa"}).json()
    assert (entry["task"], entry["state"]) == ("qa", "asked")
    assert theirs.post(f"{page}entries/", {"task": "qa"}).json()["error"]["code"] == "exists"
    one = f"{page}entries/{entry['id']}/"
    assert theirs.patch(one, {"state": "in"}).status_code == 403
    assert mine.patch(one, {"weight": 2}).status_code == 404, "they do not see the task"
    assert mine.patch(one, {"state": "in"}).json() == {**entry, "task": "", "state": "in"}
    assert mine.patch(one, {"state": "in"}).json()["error"]["code"] == "decided"
    listed = {each["task"]: each for each in mine.get(f"{page}entries/").json()}
    nli = f"{page}entries/{listed['nli']['id']}/"
    assert mine.patch(nli, {"weight": 3}).json()["weight"] == 3
    assert mine.patch(nli, {"weight": 9}).status_code == 422
    assert stranger.delete(one).status_code == 404
    assert theirs.delete(one).status_code == 204
