"""The API of mixed rounds."""

import pytest
from rest_framework.test import APIClient

from tasks.models import TaskMember
from tests.support.adversaries import sentiment_round
from tests.support.factories import UserFactory
from tests.support.mixed_rounds import ALL, mixed_round, write_texts

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/tasks/sentiment/rounds/1/arms/"


def sign_in(user):
    api = APIClient()
    api.force_authenticate(user)
    return api


def test_shares_are_read_and_set():
    round, owner = mixed_round()
    api = sign_in(owner)
    write_texts(round, UserFactory(), 3)
    body = api.get(ADDRESS).json()
    assert body["shares"] == ALL
    assert [(one["arm"], one["tries"], one["texts"]) for one in body["arms"]] == [
        ("people", 1, 1), ("helped", 1, 1), ("drafts", 1, 1), ("machines", 0, None)
    ]  # fmt: skip
    assert {one["share"] for one in body["arms"]} == {0.25}
    shares = {"people": 3, "helped": 0, "drafts": 0, "machines": 1}
    changed = api.put(ADDRESS, shares, format="json")
    assert (changed.status_code, changed.json()["shares"]) == (200, shares)
    assert [one["share"] for one in changed.json()["arms"]] == [0.75, 0, 0, 0.25]
    assert api.delete(ADDRESS).json()["shares"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"helped": 1}, "helped"),
        ({"drafts": 1}, "drafts"),
        ({"machines": 1}, "machines"),
        ({"people": 0}, "people"),
        ({"people": 11}, "people"),
        ({"people": -1}, "people"),
        ({"people": "half"}, "people"),
        ({"people": None}, "people"),
    ],
)
def test_a_share_that_is_not_possible_is_refused_at_its_field(change, field):
    round, owner = sentiment_round()
    shares = {"people": 1, "helped": 0, "drafts": 0, "machines": 0} | change
    refused = sign_in(owner).put(ADDRESS, shares, format="json")
    assert refused.status_code == 422
    assert [*refused.json()["error"]["fields"]] == [field]
    round.refresh_from_db()
    assert (round.arm_shares, round.shares_number) == (None, 0)


def test_an_official_tasks_round_starts_with_one_request():
    round, owner = sentiment_round()
    refused = sign_in(owner).post(f"{ADDRESS}start/")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "none_ready")
    round.task.is_official = True
    round.task.save()
    started = sign_in(owner).post(f"{ADDRESS}start/")
    assert started.status_code == 200
    assert started.json()["shares"] == {"people": 1, "helped": 0, "drafts": 0, "machines": 1}
    assert {one.kind for one in round.task.adversaries.all()} == {"rules", "search"}


@pytest.mark.parametrize("role", [None, "reviewer", "viewer", "judge", "annotator"])
def test_others_get_in_at_no_door(role):
    round, _owner = mixed_round()
    person = UserFactory()
    if role:
        TaskMember.objects.create(task=round.task, user=person, role=role)
    api = sign_in(person)
    answers = [
        api.get(ADDRESS),
        api.put(ADDRESS, ALL, format="json"),
        api.delete(ADDRESS),
        api.post(f"{ADDRESS}start/"),
    ]
    assert {answer.status_code for answer in answers} <= {403, 404}
    assert api.get("/api/v1/tasks/sentiment/rounds/9/arms/").status_code in (403, 404)
