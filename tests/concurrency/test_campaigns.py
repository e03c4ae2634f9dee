"""Many people come to one campaign at the same time."""

import os
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest
from django.db import connections
from django.utils import timezone

from annotation.attempts.services import retract_example
from core.data.encryption import encrypt
from core.errors import Refused
from dynabench.campaigns import place_services
from dynabench.campaigns.models import LedgerRow, Payment, Place
from dynabench.campaigns.payment_services import plan_bonuses, send_payments
from tests.support.campaigns import agree, open_campaign, paid_place
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write
from tests.support.ledgers import assert_refused
from tests.support.panel_server import PanelServer
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)


def came(campaign, person):
    """Somebody's place; None where there is none for them."""
    with suppress(Refused):
        return agree(campaign, person)


def test_of_forty_people_ten_get_in(at_once):
    """Lock: the campaign, in `take_place`; also where the money ends before the places."""
    task = TaskFactory(code="nli")
    for number in races(6):
        limit = {"places": 10} if number % 2 else {"places": 40, "budget": 1550}
        campaign = open_campaign(task, slug=f"study-{number}", **limit)
        people = [f"person-{number}" for number in range(40)]
        places = at_once(lambda person, study=campaign: came(study, person), people)
        assert sum(place is not None for place in places) == 10
        campaign.refresh_from_db()
        assert campaign.state == "full"


def test_one_person_in_two_browsers_takes_one_place_and_is_paid_once(at_once):
    """Lock: the campaign, in `take_place` and `submit`."""
    task = TaskFactory(code="nli")
    for number in races(6):
        campaign = open_campaign(task, slug=f"study-{number}", each=0, places=9)
        takes = lambda person, study=campaign: came(study, person).pk  # noqa: E731
        assert len(set(at_once(takes, [f"person-{number}"] * 4))) == 1
        place = Place.objects.get(campaign=campaign)
        at_once(lambda one: place_services.submit_place(place=one), [place] * 4)
        assert LedgerRow.objects.filter(place=place).count() == 1


def test_one_person_is_in_one_campaign_of_a_task(at_once):
    """Lock: the annotator, in `take_place`."""
    task = TaskFactory(code="nli")
    plan = {"way": "account", "places": 99}
    campaigns = [open_campaign(task, slug=f"study-{number}", **plan) for number in range(4)]
    for _ in races(6):
        user = UserFactory()
        at_once(lambda one, user=user: came(one, user), campaigns)
        assert Place.objects.filter(annotator__user=user).count() == 1


def test_postgresql_keeps_the_ledger_as_it_is():
    paid_place(open_campaign(TaskFactory(code="nli")), 1)
    assert_refused()


def test_late_work_is_paid_and_the_budget_holds(at_once):
    """Reserved is also the money of who is late, whoever comes while they submit.

    Of who has done nothing it goes, once that time is over, too, to as many others.
    """
    task = TaskFactory(code="nli")
    for number in races(6):
        is_done = bool(number % 2)
        plan = {"places": 99, "each": 0 if is_done else 1, "pay_task": 100, "budget": 300}
        campaign = open_campaign(task, slug=f"study-{number}", **plan)
        late = [agree(campaign, f"late-{one}") for one in range(3)]
        ago = timedelta(minutes=1 if is_done else 121)
        campaign.all_places.update(expires_at=timezone.now() - ago)
        work = [
            *(partial(place_services.submit_place, place=one) for one in late),
            *(partial(came, campaign, f"new-{one}") for one in range(12)),
            partial(place_services.free_places, campaign=campaign),
        ]
        at_once(lambda one: one(), work)
        states = Counter(campaign.all_places.values_list("state", flat=True))
        assert states == ({"submitted": 3} if is_done else {"over": 3, "working": 3})


@pytest.fixture
def panel(settings):
    with PanelServer().running() as server:
        settings.PROLIFIC_URL = settings.MTURK_URL = server.url
        settings.PANEL_PRIVATE_HOSTS = ["127.0.0.1"]
        yield server


def killed_while_paying(panel, campaign, request, after):
    """A process of its own pays, and is killed (-9) with its n-th request, before or after it."""
    connections.close_all()
    panel.kill_in, panel.kill_after = request, after
    wait, go = os.pipe()
    if not (child := os.fork()):
        os.read(wait, 1)
        send_payments(campaign=campaign)
        os._exit(0)
    panel.victim = child
    os.write(go, b"!")
    _pid, status = os.waitpid(child, 0)
    panel.victim = None
    os.close(wait)
    os.close(go)
    Payment.objects.update(sent_at=timezone.now() - timedelta(hours=1))
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("way", ["prolific", "mturk"])
def test_killed_twenty_times_no_bonus_is_paid_twice_or_forgotten(panel, way):
    """What cannot be known is named: of Prolific, what was sent and does not show."""
    campaign = open_campaign(
        TaskFactory(code="nli"), way=way, study="6" * 24, sealed_token=encrypt("id:secret")
    )
    owner = UserFactory(is_superuser=True)
    kills = 0
    for number in range(20):
        paid_place(campaign, number)
        plan_bonuses(campaign=campaign, actor=owner)
        kills += killed_while_paying(panel, campaign, number % 7, after=number % 2)
    for _ in range(8):
        send_payments(campaign=campaign)
        Payment.objects.update(sent_at=timezone.now() - timedelta(hours=1))
    states = {one.place_id: one for one in Payment.objects.select_related("place")}
    assert kills >= 15
    assert len(states) == 20
    for place, payment in states.items():
        got = panel.sum_of(str(place))
        assert payment.state in ("done", "unclear")
        assert got == payment.amount if payment.state == "done" else got in (0, payment.amount)
        booked = LedgerRow.objects.filter(place=place, kind="paid", cause__startswith="bonus")
        assert booked.count() == (payment.state == "done")
    unclear = [one for one in states.values() if one.state == "unclear"]
    assert not unclear if way == "mturk" else len(unclear) < 10


def test_what_is_taken_back_while_it_is_submitted_is_not_paid(at_once):
    """Lock: the person's places, in `check_not_submitted`: it is there, or nothing is paid."""
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory(round=round)
    for number in races(20):
        user = UserFactory()
        campaign = open_campaign(round.task, slug=f"study-{number}", way="account")
        place = agree(campaign, user)
        example = write(round, user, number)

        def submit(place=place):
            with suppress(Refused):
                place_services.submit_place(place=place)

        def take_back(example=example):
            with suppress(Refused):
                retract_example(example=example)

        at_once(lambda step: step(), [submit, take_back])
        example.refresh_from_db()
        is_paid = LedgerRow.objects.filter(place=place, kind="earned").exists()
        assert is_paid == (example.retracted_at is None)
