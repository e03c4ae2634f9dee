"""Whoever fails a study's test does not pass it by a second try for which no items are left.

The attack: a campaign asks three gold items, two right, in two tries, of a task that has three.
Three wrong answers; the second try has no item, and nothing of nothing was enough.
"""

import re

import pytest

from core.errors import Invalid
from dynabench.campaigns import services
from dynabench.campaigns.before.qualification_items import (
    count_needed_items,
    select_test_gold_items,
)
from dynabench.campaigns.models import LedgerRow, Place, Qualification
from dynabench.notices.models import Notice
from dynabench.notices.services import renew_notices
from tasks.models import TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write_many
from validation.models import Gold, GoldAnswer

pytestmark = pytest.mark.django_db
TEST = "/c/study/test/"
PLAN = {"kind": "judge", "test_items": 3, "test_right": 2, "pay_test": 20, "code_screened": "OUT"}


@pytest.fixture
def nli():
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory(round=round)
    return round


@pytest.fixture
def owner(nli):
    user = UserFactory()
    TaskMember.objects.create(task=nli.task, user=user, role="owner")
    return user


def add_gold(round, number):
    """Gold items by somebody."""
    made = write_many(round, UserFactory(), ["fooled"] * number)
    return [Gold.objects.create(example=one, label="neutral") for one in made]


def answer(client, label):
    """Answer all items of the test that the page shows alike."""
    uuids = set(re.findall(r'name="([0-9a-f-]{36})"', client.get(TEST).text))
    return client.post(TEST, dict.fromkeys(uuids, f"label:{label}"), follow=True)


def test_a_second_try_without_items_passes_nobody(nli):
    add_gold(nli, 3)
    client, _page = take_part(open_campaign(nli.task, **PLAN, test_tries=2))
    answer(client, "entailment")
    answer(client, "entailment")
    place, row = Place.objects.get(), Qualification.objects.get()
    assert (place.state, row.passed_at, row.tries) == ("screened", None, 1)
    assert place.ran_out_at
    assert [(one.cause, one.amount) for one in LedgerRow.objects.all()] == [("test", 20)]
    assert "OUT" in client.get("/c/study/progress/").text
    assert client.get("/t/nli/judge/").status_code == 302


def test_fewer_items_do_not_lower_the_bar(nli):
    golds = add_gold(nli, 3)
    client, _page = take_part(open_campaign(nli.task, **PLAN))
    golds[0].example.gold.delete()
    for one in golds[1:]:
        Gold.objects.filter(pk=one.pk).update(label="neutral")
    page = client.get(TEST)
    assert 'id="no-test"' in page.text
    assert not re.findall(r'name="([0-9a-f-]{36})"', page.text)
    client.post(TEST)
    assert Place.objects.get().state == "screened"
    assert Qualification.objects.get().passed_at is None
    assert not GoldAnswer.objects.exists()
    assert LedgerRow.objects.get().amount == 20


def test_the_owner_is_told(nli, owner, client):
    campaign = open_campaign(nli.task, **PLAN)
    someone, _page = take_part(campaign)
    someone.post(TEST)
    client.force_login(owner)
    assert 'id="ran-out"' in client.get("/own/nli/campaigns/study/").text
    renew_notices()
    notice = Notice.objects.get(kind="studies")
    assert notice.numbers == {"count": 1}
    assert notice.task == nli.task


def test_ones_own_examples_test_nobody(nli):
    add_gold(nli, 2)
    client, _page = take_part(open_campaign(nli.task, **PLAN))
    example = write_many(nli, Place.objects.get().annotator.user, ["fooled"])[0]
    Gold.objects.create(example=example, label="neutral")
    answer(client, "neutral")
    assert Place.objects.get().state == "screened"


def test_enough_right_answers_pass(nli):
    add_gold(nli, 6)
    client, _page = take_part(open_campaign(nli.task, **PLAN, test_tries=2))
    answer(client, "entailment")
    assert Place.objects.get().state == "testing"
    answer(client, "neutral")
    assert Place.objects.get().state == "working"
    assert Qualification.objects.get().passed_at


def test_it_opens_only_with_items_for_all_tries(nli, owner, client):
    """By the page, by the API and when the plan of an open one changes."""
    add_gold(nli, 5)
    campaign = open_campaign(
        *(nli.task,), **PLAN, test_tries=2, state="draft", ethics="Approved.", ethics_name="Me"
    )
    assert (count_needed_items(campaign), select_test_gold_items(campaign).count()) == (6, 5)
    client.force_login(owner)
    assert 'id="golds"' in client.get("/own/nli/campaigns/study/").text
    client.post("/own/nli/campaigns/study/state/", {"to": "open"})
    said = client.patch("/api/v1/tasks/nli/campaigns/study/", {"state": "open"}, "application/json")
    assert said.status_code == 422
    campaign.refresh_from_db()
    assert campaign.state == "draft"
    add_gold_of_another_hand(nli)
    services.set_campaign_state(campaign=campaign, actor=owner, state="open")
    campaign.refresh_from_db()
    assert campaign.state == "open"
    plan = {
        name: getattr(campaign, name) for name in (*services.FIXED_FIELDS, *PLAN, "slug", "name")
    }
    told = {"consent": "Another.", "token": "", "completion_url": "", "actor": owner}
    with pytest.raises(Invalid) as caught:
        services.change_campaign(campaign=campaign, **told, **plan | {"test_tries": 3})
    assert caught.value.field == "test_items"
    services.change_campaign(campaign=campaign, **told, **plan | {"name": "Other"})


def add_gold_of_another_hand(round):
    add_gold(round, 1)


def test_an_address_that_nobody_is_sent_to_is_refused(nli, owner):
    """Prolific's people go to Prolific, and people with an account nowhere."""
    add_gold(nli, 3)
    told = {"task": nli.task, "actor": owner, "consent": "Yes.", "token": "", "name": "S"}
    for way in ("prolific", "account", "invitation"):
        with pytest.raises(Invalid) as caught:
            services.make_campaign(**told, slug=way, way=way, completion_url="https://a.test/")
        assert caught.value.field == "completion_url"
    services.make_campaign(**told, slug="l", way="link", completion_url="https://a.test/{code}")
    services.make_campaign(**told, slug="p", way="prolific")
