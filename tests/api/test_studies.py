"""The API of a task's studies: plans, draws and reports, for the owners of all arms only."""

from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from rest_framework.test import APIClient

from dynabench.campaigns.models import Campaign
from dynabench.studies import power_services, services
from dynabench.studies.models import Study
from tasks.models import TaskMember
from tests.support.campaigns import open_campaign
from tests.support.factories import UserFactory
from tests.support.studies import PLAN, arrive, plan_study
from tests.support.study_drafts import work_off

pytestmark = pytest.mark.django_db
FOLDER = Path(__file__).parents[2] / "docs/studies"
FOUR_ARMS, CASES = FOLDER / "four-arms.yaml", FOLDER / "four-arms-cases.jsonl"
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


@pytest.fixture
def set_up(settings):
    """A study of the docs' four arms that an owner has set up, and their client."""
    settings.NEW_TASKS = "everybody"
    owner = UserFactory()
    EmailAddress.objects.create(user=owner, email=owner.email, primary=True, verified=True)
    body = {"plan_text": FOUR_ARMS.read_text(), "cases": CASES.read_text()}
    made = call_as(owner).post("/api/v1/studies/", body, format="json")
    assert made.status_code == 201, made.json()
    return made.json(), call_as(owner)


def test_a_program_sets_a_study_up_tries_it_and_opens_it(set_up, monkeypatch):
    made, api = set_up
    monkeypatch.setattr(power_services, "MAX_STUDIES", 10)
    address = f"/api/v1/tasks/{made['task']}/studies/{made['code']}/"
    assert made["state"] == "draft"
    # The power is not there until somebody asks for it, and comes from the queue.
    assert api.get(f"{address}power/").status_code == 409
    assert api.post(f"{address}power/").json()["state"] == "queued"
    assert api.post(f"{address}pilot/", {"people": 21}, format="json").status_code == 422
    assert api.post(f"{address}pilot/", {"people": 4}, format="json").status_code == 202
    work_off()
    power = api.get(f"{address}power/").json()
    assert (power["state"], power["studies"]) == ("done", 10)
    pilot = api.get(f"{address}pilot/").json()
    assert (pilot["state"], pilot["people"]) == ("done", 4)
    report = api.get(f"/api/v1/tasks/{pilot['task']}/studies/{pilot['study']}/report/").json()
    assert report["is_simulated"] is True
    assert [arm["submitted"] for arm in report["arms"].values()] == [1, 1, 1, 1]
    assert api.delete(f"{address}pilot/").status_code == 204
    assert api.get(f"{address}pilot/").status_code == 404
    opened = api.post(f"{address}open/", {"ethics_name": "Dr Ito"}, format="json").json()
    assert opened["state"] == "frozen"
    # A plan does not change after that.
    changed = {"plan_text": made["plan_text"].replace("people: 600", "people: 800")}
    assert api.patch(address, changed, format="json").status_code == 409


def test_only_owners_of_all_arms_try_and_open_a_study(set_up):
    made, _api = set_up
    address = f"/api/v1/tasks/{made['task']}/studies/{made['code']}/"
    api = call_as(UserFactory())
    for path in ("power/", "pilot/", "open/"):
        assert api.post(address + path, {"ethics_name": "Me"}, format="json").status_code in (
            403,
            404,
        )
    assert api.get(f"{address}power/").status_code in (403, 404)
    assert api.delete(f"{address}pilot/").status_code in (403, 404)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('{"claim": "Water', '{"text": "Water', "cases"),
        ('"key": {"answer": "true"}', '"key": {}', "cases"),
        ("measure: correct", "measure: corect", "plan_text"),
        ("people: 600", "people: 60", "plan_text"),
    ],
)
def test_a_wrong_case_or_plan_makes_nothing(settings, old, new, field):
    settings.NEW_TASKS = "everybody"
    owner = UserFactory()
    EmailAddress.objects.create(user=owner, email=owner.email, primary=True, verified=True)
    body = {
        "plan_text": FOUR_ARMS.read_text().replace(old, new),
        "cases": CASES.read_text().replace(old, new, 1),
    }
    refused = call_as(owner).post("/api/v1/studies/", body, format="json")
    assert refused.status_code == 422
    assert refused.json()["error"]["fields"].keys() == {field}
    assert not Study.objects.exists()
    # Nobody sets a study up who may not create tasks.
    settings.NEW_TASKS = "nobody"
    assert call_as(owner).post("/api/v1/studies/", body, format="json").status_code in (403, 422)


def test_a_study_without_setup_has_a_pilot_and_opens_by_its_campaigns(frozen):
    study, owner = frozen
    api = call_as(owner)
    assert api.post(f"{ADDRESS}{study.code}/pilot/", {}, format="json").status_code == 202
    Campaign.objects.filter(slug="arm-alone").update(kind="judge")
    assert api.delete(f"{ADDRESS}{study.code}/pilot/").status_code == 204
    assert api.post(f"{ADDRESS}{study.code}/pilot/", {}, format="json").status_code == 422
    assert api.post(
        f"{ADDRESS}{study.code}/open/", {"ethics_name": "Dr Ito"}, format="json"
    ).status_code == 422  # fmt: skip
