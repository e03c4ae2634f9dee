"""The API of a task's studies: plans, draws and reports, for the owners of all arms only."""

import pytest
from rest_framework.test import APIClient

from dynabench.studies import services
from dynabench.studies.models import Study
from tasks.models import TaskMember
from tests.support.campaigns import open_campaign
from tests.support.factories import UserFactory
from tests.support.studies import PLAN, arrive, plan_study

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/tasks/alone/studies/"


def call_as(user):
    api = APIClient()
    api.force_authenticate(user)
    return api


@pytest.fixture
def frozen():
    """A frozen study and its owner."""
    study, owner, _ = plan_study()
    services.freeze_study(study=study, actor=owner)
    return study, owner


def test_draws_are_counted_by_arm(frozen):
    study, owner = frozen
    arrive(study, 1)
    services.match_draws()
    services.draw_person(study=study, arrival=services.Arrival("somebody"))
    draws = call_as(owner).get(f"{ADDRESS}helped/").json()["draws"]
    assert sum(row["drawn"] for row in draws) == 2
    assert sum(row["joined"] for row in draws) == 1
    report = call_as(owner).get(f"{ADDRESS}helped/report/").json()
    assert report["arms"]["alone"]["drawn"] == 1


def test_a_stranger_and_an_owner_of_one_arm_read_nothing(frozen):
    study, _owner = frozen
    owner_of_one = UserFactory()
    TaskMember.objects.create(task=study.task, user=owner_of_one, role="owner")
    assert call_as(owner_of_one).get(ADDRESS).json()["results"] == []
    for user in (owner_of_one, UserFactory()):
        api = call_as(user)
        for page in ("helped/", "helped/report/"):
            assert api.get(ADDRESS + page).status_code in (403, 404)
        changed = api.patch(f"{ADDRESS}helped/", {"state": "closed"}, format="json")
        assert changed.status_code in (403, 404)
    open_campaign(study.task, slug="mine")
    plan = PLAN.replace("study: helped", "study: other").replace("arm-alone", "mine")
    made = call_as(owner_of_one).post(ADDRESS, {"plan_text": plan}, format="json")
    assert made.status_code in (403, 422)
    assert Study.objects.count() == 1


def test_a_plan_with_mistakes_is_refused_with_its_lines():
    _study, owner, _ = plan_study()
    api = call_as(owner)
    wrong = {"plan_text": PLAN.replace("caught", "cauht")}
    checked = api.post("/api/v1/tasks/alone/study-plans/", wrong, format="json").json()
    assert checked["plan_hash"] == ""
    assert checked["problems"][0]["path"] == "outcomes[1].measure"
    assert api.post(ADDRESS, wrong, format="json").status_code == 422
    for body in ({}, {"state": "open"}, {"state": "frozen", "plan_text": PLAN}):
        assert api.patch(f"{ADDRESS}helped/", body, format="json").status_code == 422
    assert api.get(f"{ADDRESS}helped/report/").status_code == 409


def test_a_frozen_plan_is_refused_a_change(frozen):
    study, owner = frozen
    changed = call_as(owner).patch(f"{ADDRESS}helped/", {"plan_text": PLAN + "\n"}, format="json")
    assert changed.status_code == 409
    study.refresh_from_db()
    assert study.plan_text == PLAN
