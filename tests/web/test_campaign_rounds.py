"""What a campaign's people are offered, what counts, and what the site does by itself for it."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Assignment
from core.errors import Invalid
from dynabench.campaigns import services
from dynabench.campaigns.jobs import renew_campaigns, settle_all
from dynabench.campaigns.models import Campaign, LedgerRow, Place
from dynabench.campaigns.payment_services import warn_of_approvals
from dynabench.campaigns.selectors import (
    count_done_work,
    select_campaign_decisions,
    select_campaign_examples,
)
from dynabench.notices.news import find_news
from tasks.models import TaskMember
from tests.support.campaigns import YES, open_campaign, paid_place, take_part
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory
from tests.support.judging import write, write_many
from tests.support.ledgers import assert_refused
from validation.judging.services import open_session
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db


def decide(example, **more):
    state = {"is_verified": True, "state": "decided", "votes": 3, "still_needed": 0}
    told = {"decided_at": timezone.now(), "label": "neutral"} | more
    return Consensus.objects.create(example=example, round=example.round, **state, **told)


def test_work_in_other_rounds_is_not_offered_and_does_not_count(nli, alice):
    now = {"opened_at": timezone.now(), "kind": "both", "places": 9}
    example, _other = write_many(nli, alice, ["fooled"] * 2)
    nli.state = "closed"
    nli.save()
    second = RoundFactory(task=nli.task, number=2, state="open")
    ContextFactory(round=second)
    campaign = open_campaign(nli.task, **now)
    campaign.rounds.set([second])
    client, _page = take_part(campaign)
    place = Place.objects.get()
    me = place.annotator
    assert open_session(validator=me, task=nli.task).lease is None  # what waits is of round 1
    Validation.objects.create(example=example, validator=me, label="neutral")
    decide(write(nli, me.user))
    assert (count_done_work(place).written, count_done_work(place).judged) == (0, 0)
    assert not select_campaign_decisions(campaign).exists()
    campaign.rounds.set([nli])
    assert (count_done_work(place).written, count_done_work(place).judged) == (1, 1)
    assert select_campaign_decisions(campaign).count() == 1
    assert open_session(validator=me, task=nli.task).lease.example.round == nli
    for each in (2, 1):  # who has judged all is led on
        Campaign.objects.update(each=each)
        page = client.get("/t/nli/judge/").text
        assert ('id="study"' in page) == (each == 1)
        assert f": 1 of {each}" in page  # how much is left
    client.get("/t/nli/write/")
    given = Assignment.objects.filter(annotator=me)
    assert not given.exists()  # round 2 is open, and not theirs
    campaign.rounds.clear()
    assert ": 1 of 1" in client.get("/t/nli/write/").text
    assert given.get().round == second


def test_nobody_comes_in_where_no_round_has_work(nli):
    campaign = open_campaign(nli.task)
    campaign.rounds.set([nli])
    for state, people in (("closed", 0), ("open", 1)):
        nli.state = state
        nli.save()
        take_part(campaign)
        assert Place.objects.count() == people


def test_who_left_a_study_writes_for_the_next_alone(nli, as_alice, alice):
    first = open_campaign(nli.task, way="account")
    as_alice.post("/c/study/consent/", YES)
    write(nli, alice, 1)
    as_alice.post("/c/study/leave/")
    second = open_campaign(nli.task, slug="second", way="invitation")
    second.invited.create(user=alice, made_at=timezone.now())
    assert [one.kind for one in find_news(timezone.now(), alice)] == ["invited"]
    as_alice.post("/c/second/consent/", YES)
    assert not [*find_news(timezone.now(), alice)]
    write(nli, alice, 2)
    assert [select_campaign_examples(one).count() for one in (first, second)] == [1, 1]


def test_owners_choose_rounds(nli, as_alice, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    second = RoundFactory(task=nli.task, number=2, state="draft")
    foreign = RoundFactory(task=TaskFactory(code="sentiment"))
    campaign = open_campaign(nli.task, state="draft", ethics="Approved.", ethics_name="Ada")
    page = as_alice.get(reverse("own-campaigns:step", args=["nli", "study", "work"]))
    assert [*page.context["form"].fields["rounds"].queryset] == [nli, second]

    def choose(*rounds):
        services.move_campaign(campaign=campaign, actor=alice, rounds=rounds)
        return [*campaign.rounds.values_list("number", flat=True)]

    with pytest.raises(Invalid):
        choose(foreign)
    second.state = "released"
    second.save()
    assert choose(second) == [2]
    opened = {"campaign": campaign, "actor": alice, "state": "open"}
    with pytest.raises(Invalid):  # all are over
        services.move_campaign(**opened)
    services.move_campaign(**opened, rounds=[nli])
    campaign.refresh_from_db()
    assert choose(nli, second) == [1, 2]
    with pytest.raises(Invalid):  # what counts cannot become less
        choose(nli)
    assert choose() == []
    with pytest.raises(Invalid):
        choose(nli)


def test_owners_are_warned_once_before_a_panel_approves(
    nli, as_alice, alice, django_capture_on_commit_callbacks
):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    campaign = open_campaign(nli.task, way="prolific", opened_at=timezone.now())
    places = [paid_place(campaign, number, state="submitted") for number in range(3)]

    def warned(days, place):
        ago = timezone.now() - timedelta(days=days)
        Place.objects.filter(pk=place.pk).update(submitted_at=ago)
        with django_capture_on_commit_callbacks(execute=True):
            return renew_campaigns()

    assert warned(17, places[0]) == 0
    assert warned(18, places[0]) == 1
    assert warned(20, places[0]) == 0
    assert [one.to for one in mail.outbox] == [[alice.email]]
    page = as_alice.get("/own/nli/campaigns/study/")
    assert page.context["due"] == (3, Place.objects.first().submitted_at + timedelta(days=21))
    assert warned(20, places[1]) == 1  # another person
    campaign.approval_days = 2
    campaign.save()
    assert warned(1, places[2]) == 1
    assert len(mail.outbox) == 3
    Place.objects.update(state="approved", warned_at=None)
    assert warn_of_approvals() == 0
    assert as_alice.get("/own/nli/campaigns/study/").context["due"] is None


def test_the_minutes_job_reads_no_campaign_in_which_nothing_happened(nli):
    def closed(number):
        study = {"slug": f"study-{number}", "state": "closed", "opened_at": timezone.now()}
        campaign = open_campaign(nli.task, pay_accepted=20, **study)
        place = paid_place(campaign, 1)
        example = write(nli, place.annotator.user, number)
        ago = timezone.now() - timedelta(days=9)
        Place.objects.filter(pk=place.pk).update(began_at=ago, submitted_at=ago, expires_at=ago)
        type(example).objects.filter(pk=example.pk).update(created_at=ago)
        return decide(example, decided_at=ago)

    def queries():
        with CaptureQueriesContext(connection) as found:
            assert renew_campaigns() == 0
        return len(found)

    first = closed(0)
    renew_campaigns()
    few = queries()
    others = [closed(1 + number) for number in range(3)]
    assert queries() == few
    Consensus.objects.filter(pk=first.pk).update(decided_at=timezone.now())
    assert renew_campaigns() == 1
    assert settle_all() == len(others)  # what a site missed that was away for long


def test_the_ledger_only_grows(nli):
    paid_place(open_campaign(nli.task), 1)
    assert_refused()
    assert LedgerRow.objects.count() == 3


def test_who_began_is_paid_though_the_rounds_end_first(nli):
    campaign = open_campaign(nli.task, kind="write", each=5, places=2, pay_task=100)
    campaign.rounds.set([nli])
    begun, _page = take_part(campaign, pid="begun")
    write(nli, Place.objects.get().annotator.user)
    idle, _page = take_part(campaign, pid="idle")
    at = f"/c/{campaign.slug}"
    assert f"{at}/finish/" not in begun.get(f"{at}/progress/").text
    nli.state = "closed"
    nli.save()
    assert f"{at}/finish/" in begun.get(f"{at}/progress/").text
    for client in (begun, idle):  # who could begin nothing is let out, as after a test
        client.post(f"{at}/finish/")
    assert [place.state for place in Place.objects.order_by("pk")] == ["submitted", "screened"]
    assert LedgerRow.objects.get().amount == 100
