"""Whoever takes part and finds no more work is told, may finish, and is paid for what they did.

Before, the page of the task sent them to other tasks, and only leaving without pay was offered.
"""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Attempt
from core.data.encryption import encrypt
from core.errors import Refused
from dynabench.campaigns import payment_services, place_services
from dynabench.campaigns.files import list_transfers
from dynabench.campaigns.jobs import renew_campaigns
from dynabench.campaigns.models import Campaign, LedgerRow, Payment, Place
from dynabench.campaigns.selectors import (
    calculate_pay,
    count_done_work,
    find_next_approval,
    list_owed_outside,
)
from tasks.models import Task, TaskMember
from tests.support.arenas import make_arena
from tests.support.campaigns import agree, open_campaign, take_part
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write_many
from tests.support.panel_server import PanelServer
from validation.models import Gold, GoldAnswer, Validation

pytestmark = pytest.mark.django_db
PROGRESS, JUDGE = "/c/study/progress/", "/t/nli/judge/"


@pytest.fixture
def nli():
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory(round=round)
    return round


@pytest.fixture
def others(nli):
    """Another task in which something waits for everybody."""
    round = RoundFactory(task=TaskFactory(code="sentiment", is_visible=True))
    ContextFactory(round=round, fields={"prompt": "It rained."})
    return write_many(round, UserFactory(), ["fooled"])


def judge_one(client, nli, me):
    """Vote on what the page gives."""
    client.get(JUDGE)
    example = me.judge_leases.filter(takes_place=True).get().example
    return client.post(JUDGE, {"example": example.uuid, "answer": "label:neutral"}, follow=True)


@pytest.fixture
def half(nli, others):
    """A person of a panel who has judged one example of two; a third is not there."""
    write_many(nli, UserFactory(), ["fooled"])
    campaign = open_campaign(nli.task, kind="judge", each=2, pay_test=20)
    client, _page = take_part(campaign)
    page = judge_one(client, nli, Place.objects.get().annotator)
    return client, page


def amounts():
    return [(one.kind, one.cause, one.amount) for one in LedgerRow.objects.order_by("pk")]


def test_who_runs_out_of_work_is_paid_for_the_part(half):
    client, page = half
    assert 'id="study"' in page.text
    assert "/t/sentiment/" not in page.text
    assert "/t/nli/write/" not in page.text
    page = client.get(PROGRESS)
    assert 'id="no-work"' in page.text
    assert f'href="{JUDGE}"' not in page.text
    assert page.context["pay"] == 75
    page = client.post("/c/study/finish/", follow=True)
    assert "DONE" in page.text
    place = Place.objects.get()
    assert (place.state, place.part_pay) == ("submitted", 75)
    assert amounts() == [("earned", "task", 75)]
    client.post("/c/study/finish/")
    assert len(amounts()) == 1


def test_where_work_is_left_nobody_is_paid_for_a_part(half, nli):
    client, _page = half
    write_many(nli, UserFactory(), ["fooled"])
    assert 'id="no-work"' not in client.get(PROGRESS).text
    client.post("/c/study/finish/")
    assert Place.objects.get().state == "working"
    assert amounts() == []
    page = judge_one(client, nli, Place.objects.get().annotator)
    assert 'id="finish"' in page.text  # the last one leads on to the code
    client.post("/c/study/finish/")
    assert amounts() == [("earned", "task", 150)]
    assert Place.objects.get().part_pay is None


def test_who_was_told_may_finish_later(half, nli):
    """Also when something comes in between."""
    client, _page = half
    client.get(PROGRESS)
    write_many(nli, UserFactory(), ["fooled"])
    page = client.get(PROGRESS).text
    assert 'id="finish"' in page
    assert f'href="{JUDGE}"' in page
    client.post("/c/study/finish/")
    assert amounts() == [("earned", "task", 75)]


def test_who_could_do_nothing_gets_what_the_test_pays(nli):
    campaign = open_campaign(nli.task, kind="judge", each=2, pay_test=20, code_screened="OUT")
    client, _page = take_part(campaign)
    assert 'id="no-work"' in client.get(PROGRESS).text
    page = client.post("/c/study/finish/", follow=True)
    assert "OUT" in page.text
    assert (Place.objects.get().state, amounts()) == ("screened", [("earned", "test", 20)])


def test_who_closed_the_tab_is_paid_too(half):
    """The time is over, and nobody has pressed anything."""
    Campaign.objects.update(opened_at=timezone.now())
    place = Place.objects.get()
    late = timezone.now() - place.campaign.late_time
    Place.objects.update(expires_at=late + timedelta(minutes=2))
    renew_campaigns()
    assert Place.objects.get().ran_out_at
    Place.objects.update(expires_at=late - timedelta(minutes=1))
    renew_campaigns()
    assert Place.objects.get().state == "submitted"
    assert amounts() == [("earned", "task", 75)]


def test_items_of_the_test_are_no_work(half, nli):
    client, _page = half
    example = write_many(nli, UserFactory(), ["fooled"])[0]
    gold = Gold.objects.create(example=example, label="neutral")
    me = Place.objects.get().annotator
    GoldAnswer.objects.create(gold=gold, validator=me, is_correct=True, counts=False, label="x")
    assert client.get(JUDGE).context["judged"] == 1


def test_writers_of_a_paused_round_may_finish(nli):
    campaign = open_campaign(nli.task, kind="both", each=2)
    client, _page = take_part(campaign)
    place = Place.objects.get()
    write_many(nli, place.annotator.user, ["fooled"])
    assert 'id="no-work"' not in client.get(PROGRESS).text  # another one may be written
    nli.state = "paused"
    nli.save()
    page = client.get(PROGRESS)
    assert 'id="no-work"' in page.text
    assert page.context["pay"] == 38  # a fourth of 150, rounded up
    client.post("/c/study/finish/")
    assert amounts() == [("earned", "task", 38)]


def test_writers_without_a_round_are_sent_to_no_other_task(nli, others):
    client, _page = take_part(open_campaign(nli.task, each=2))
    nli.state = "closed"
    nli.save()
    page = client.get("/t/nli/write/").text
    assert 'id="study"' in page
    assert 'href="/"' not in page.partition('id="work"')[2].partition("</section>")[0]


def test_writers_who_have_used_up_the_day_may_finish(nli):
    text = nli.task.config_text.replace("tries_per_day: 50", "tries_per_day: 1")
    Task.objects.update(config_text=text)
    client, _page = take_part(open_campaign(nli.task, each=2))
    assert 'id="no-work"' not in client.get(PROGRESS).text
    me = Place.objects.get().annotator
    (example,) = write_many(nli, me.user, ["fooled"])
    Attempt.objects.create(
        annotator=me, assignment=me.assignment_set.get(), key=uuid4(), inputs={}, state="done",
        example=example, asked_at=timezone.now(),
    )  # fmt: skip
    assert 'id="no-work"' in client.get(PROGRESS).text


def test_an_arena_without_models_ends_a_study():
    arena = make_arena("arena")
    open_campaign(arena, kind="arena", each=2, pay_test=30)
    client, _page = take_part(Campaign.objects.get())
    assert 'id="study"' in client.get("/t/arena/battle/").text
    client.post("/c/study/finish/")
    assert amounts() == [("earned", "test", 30)]


def test_people_who_are_paused_are_not_told_that_work_ran_out(half):
    client, _page = half
    Place.objects.get().pauses.create(evidence={})
    page = client.get(PROGRESS).text
    assert 'id="no-work"' not in page
    assert Place.objects.get().ran_out_at is None


def submitted_part(nli, **more):
    """Somebody who has done half, and their owner."""
    example = write_many(nli, UserFactory(), ["fooled"])[0]
    plan = {"kind": "judge", "each": 2, "sealed_token": encrypt("k:s"), "completion_url": ""}
    campaign = open_campaign(nli.task, **plan | more)
    client, _page = take_part(campaign)
    place = Place.objects.get()
    Validation.objects.create(example=example, validator=place.annotator, label="neutral")
    client.get(PROGRESS)
    page = client.post("/c/study/finish/", follow=True)
    owner = UserFactory()
    TaskMember.objects.create(task=nli.task, user=owner, role="owner")
    return campaign, owner, page


@pytest.fixture
def panel(settings):
    with PanelServer().running() as server:
        settings.PROLIFIC_URL = settings.MTURK_URL = server.url
        settings.PANEL_PRIVATE_HOSTS = ["127.0.0.1"]
        yield server


def test_prolific_pays_a_part_as_a_bonus(nli, panel):
    """They go back with the code for leaving, so nobody can approve the whole as well."""
    campaign, owner, page = submitted_part(nli, way="prolific")
    assert "BACK" in page.text
    assert "DONE" not in page.text
    assert find_next_approval(campaign) is None
    assert [row.owed for row in list_owed_outside(campaign)] == [75]
    with pytest.raises(Refused):
        payment_services.plan_decision(place=Place.objects.get(), actor=owner, approve=True)
    assert payment_services.plan_bonuses(campaign=campaign, actor=owner) == 1
    payment_services.send_payments(campaign=campaign)
    assert Payment.objects.get().state == "done"
    assert panel.sum_of("5" * 24) == 75
    assert [kind for kind, _cause, _n in amounts()] == ["earned", "paid"]
    assert list_owed_outside(campaign) == []


@pytest.mark.parametrize("way", ["mturk", "prolific"])
def test_where_approval_pays_the_whole_the_ledger_says_so(nli, panel, way):
    """On Mechanical Turk, and on Prolific without a code for people who leave."""
    campaign, owner, page = submitted_part(nli, way=way, code_returned="", currency="USD")
    assert "DONE" in page.text
    assert list_owed_outside(campaign) == []
    assert payment_services.plan_bonuses(campaign=campaign, actor=owner) == 0
    payment_services.plan_decision(place=Place.objects.get(), actor=owner, approve=True)
    payment_services.send_payments(campaign=campaign)
    assert amounts() == [
        ("earned", "task", 75), ("earned", "rest", 75), ("paid", "approval", 150)
    ]  # fmt: skip
    assert Place.objects.get().state == "approved"


def test_a_part_of_an_account_is_owed(nli):
    campaign = open_campaign(nli.task, kind="judge", each=3, way="account")
    place = agree(campaign, UserFactory())
    example = write_many(nli, UserFactory(), ["fooled"])[0]
    Validation.objects.create(example=example, validator=place.annotator, label="neutral")
    assert place_services.note_end_of_work(place, count_done_work(place))
    assert calculate_pay(place, count_done_work(place)) == 50
    place_services.submit_place(place=place)
    assert [row[1] for row in list_transfers(campaign)][1:] == ["0.50"]


def test_leaving_early_is_still_leaving(half, nli):
    """Who leaves while work is there gets nothing for the task, as they were told."""
    client, _page = half
    client.post("/c/study/leave/")
    assert (Place.objects.get().state, amounts()) == ("returned", [])
    assert Client().post("/c/study/finish/").status_code == 302
