"""Studies within people on a site: each person is in all arms, in an order that is drawn."""

import json
from collections import Counter
from io import BytesIO

import pytest
from django.core.management import call_command
from django.test import Client

from dynabench.campaigns.models import Campaign, Place
from dynabench.studies import services
from dynabench.studies.models import StudyDraw
from dynabench.studies.rules.bundle import find_bundle_problems
from dynabench.studies.selectors import count_people, list_task_studies
from tests.support.campaigns import YES
from tests.support.factories import UserFactory
from tests.support.studies import PLAN, arrive, plan_study, write_in_study

pytestmark = pytest.mark.django_db
WITHIN = PLAN.replace("design: between", "design: within")


@pytest.fixture
def frozen():
    """A frozen study within people and its owner."""
    study, owner, _ = plan_study(WITHIN)
    services.freeze_study(study=study, actor=owner)
    study.refresh_from_db()
    return study, owner


def take_parts(study, person):
    """A person comes once with the panel's ids, and then goes from part to part."""
    client, slugs = Client(REMOTE_ADDR=f"10.2.0.{person}"), []
    address, query = f"/s/{study.code}/", {"pid": f"person-{person}"}
    for _ in range(2):
        page = client.get(address, query, follow=True)
        slug = page.request["PATH_INFO"].split("/")[2]
        client.post(f"/c/{slug}/consent/", YES)
        client.post(f"/c/{slug}/finish/")
        slugs.append(slug)
        query = {}
    return client, slugs


def test_a_person_goes_through_all_arms_in_the_order_drawn(frozen):
    study, _ = frozen
    client, slugs = take_parts(study, 1)
    draws = list(StudyDraw.objects.select_related("arm__campaign"))
    assert slugs == [draw.arm.campaign.slug for draw in draws]
    assert sorted(slugs) == ["arm-alone", "arm-helped"]
    assert [draw.probability for draw in draws] == [0.5, 1.0]
    assert [draw.first for draw in draws] == [None, draws[0]]
    assert set(Place.objects.values_list("state", flat=True)) == {"submitted"}
    # After the last part there is no next one, and the panel's code is shown.
    page = client.get(f"/c/{slugs[1]}/progress/").text
    assert f'href="/s/{study.code}/"' not in page
    assert "DONE" in page


@pytest.mark.usefixtures("frozen")
def test_the_code_waits_for_the_last_part():
    client = Client()
    client.get("/s/helped/", {"pid": "person-1"}, follow=True)
    slug = StudyDraw.objects.first().arm.campaign.slug
    client.post(f"/c/{slug}/consent/", YES)
    # Before the first part is submitted, the study leads to it again.
    assert Client().get("/s/helped/", {"pid": "person-1"}).url.startswith(f"/c/{slug}/")
    client.post(f"/c/{slug}/finish/")
    page = client.get(f"/c/{slug}/progress/").text
    assert 'href="/s/helped/"' in page
    assert "DONE" not in page


def test_people_are_compared_with_themselves(frozen, capsys):
    study, owner = frozen
    for person in range(12):
        take_parts(study, person)
    services.match_draws()
    firsts = Counter(StudyDraw.objects.filter(first=None).values_list("arm__name", flat=True))
    assert sum(firsts.values()) == 12
    for draw in StudyDraw.objects.select_related("arm", "place__campaign__task"):
        is_helped = draw.arm.name == "helped"
        person = draw.first_id_or_own
        # Half of the people are good at it in both arms, which adds no noise within people.
        outcomes = ["fooled" if person % 4 < 2 else "not_fooled", "not_fooled"]
        write_in_study(draw.place, outcomes + ["fooled"] * (4 * is_helped), {"sure_before": 3})
        Place.objects.filter(pk=draw.place_id).update(submitted_at=None, state="working")
    call_command("study_report", study.code, "--json")
    report = json.loads(capsys.readouterr().out)
    fooled = report["planned"][0]
    assert fooled["people"] == 12
    assert fooled["difference"] > 0.2
    assert fooled["p"] < 0.05
    client = Client()
    client.force_login(owner)
    content = client.get("/own/alone/studies/helped/bundle.zip").content
    assert find_bundle_problems(BytesIO(content)) == []


def test_an_account_goes_through_all_arms():
    study, owner, _ = plan_study(WITHIN, way="account", completion_url="")
    services.freeze_study(study=study, actor=owner)
    user = UserFactory()
    client, slugs = Client(), []
    client.force_login(user)
    for _ in range(2):
        slug = client.get("/s/helped/").url.split("/")[2]
        client.post(f"/c/{slug}/consent/", YES)
        client.post(f"/c/{slug}/finish/")
        slugs.append(slug)
    assert sorted(slugs) == ["arm-alone", "arm-helped"]
    # All is done, so the study leads to the last part.
    assert client.get("/s/helped/").url == f"/c/{slugs[1]}/"


@pytest.mark.usefixtures("frozen")
def test_who_leaves_a_part_takes_no_further_one():
    client = Client()
    client.get("/s/helped/", {"pid": "person-1"}, follow=True)
    slug = StudyDraw.objects.first().arm.campaign.slug
    client.post(f"/c/{slug}/consent/", YES)
    client.post(f"/c/{slug}/leave/")
    services.match_draws()
    assert client.get("/s/helped/", {"pid": "person-1"}).url.startswith(f"/c/{slug}/")
    assert 'href="/s/helped/"' not in client.get(f"/c/{slug}/progress/").text
    assert not Campaign.objects.exclude(slug=slug).get().all_places.exists()


def test_people_are_counted_once_over_all_arms(frozen):
    study, _owner = frozen
    take_parts(study, 1)
    arrive(study, 2)
    services.match_draws()
    assert count_people(study) == {"drawn": 2, "began": 2, "submitted": 1}
    assert list_task_studies(study.task).get().people_count == 2
