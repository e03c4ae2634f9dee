"""Paying by the panels' APIs, against a server of ours that speaks them and fails as they do."""

from datetime import timedelta

import pytest
from django.utils import timezone

from core.data.encryption import encrypt
from core.errors import Invalid, Refused
from dynabench.campaigns import payment_services
from dynabench.campaigns.files import list_transfers
from dynabench.campaigns.jobs import renew_campaigns
from dynabench.campaigns.models import Campaign, LedgerRow, Payment, Place
from dynabench.campaigns.payment_services import plan_bonuses, plan_decision, send_payments
from dynabench.campaigns.services import record_external_payment
from dynabench.campaigns.ways.mturk import MechanicalTurk
from dynabench.campaigns.ways.paying import PanelRefused
from dynabench.campaigns.ways.prolific import Prolific
from tests.support.campaigns import open_campaign, paid_place
from tests.support.factories import UserFactory
from tests.support.panel_server import PanelServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def panel(settings):
    with PanelServer().running() as server:
        settings.PROLIFIC_URL = settings.MTURK_URL = server.url
        settings.PANEL_PRIVATE_HOSTS = ["127.0.0.1"]
        yield server


@pytest.fixture
def admin():
    return UserFactory(is_superuser=True)


def a_while_later():
    Payment.objects.update(sent_at=timezone.now() - timedelta(hours=1))


def study(nli, way):
    currency = "EUR" if way == "prolific" else "USD"
    return open_campaign(
        nli.task, way=way, currency=currency, study="6" * 24, sealed_token=encrypt("id:secret")
    )


def money(campaign):
    paid = LedgerRow.objects.filter(place__campaign=campaign, kind="paid").exclude(cause="test")
    return sorted(paid.values_list("amount", flat=True))


@pytest.mark.parametrize("way", ["prolific", "mturk"])
def test_approve_then_bonus(nli, admin, panel, way):
    campaign = study(nli, way)
    place = paid_place(campaign, 1, state="submitted")
    assert plan_bonuses(campaign=campaign, actor=admin) == 0  # not approved
    plan_decision(place=place, actor=admin, approve=True)
    with pytest.raises(Refused):
        plan_decision(place=place, actor=admin, approve=True)
    assert send_payments(campaign=campaign) == 1
    place.refresh_from_db()
    assert (place.state, money(campaign)) == ("approved", [150])
    assert plan_bonuses(campaign=campaign, actor=admin) == 1
    assert plan_bonuses(campaign=campaign, actor=admin) == 0
    assert send_payments(campaign=campaign) == 1
    assert send_payments(campaign=campaign) == 0
    assert [amount for _who, amount in panel.paid] == [101]
    assert money(campaign) == [101, 150]


@pytest.mark.parametrize("way", ["prolific", "mturk"])
def test_a_rejection_has_a_reason(nli, admin, panel, way):
    place = paid_place(study(nli, way), 1, state="submitted")
    with pytest.raises(Invalid):
        plan_decision(place=place, actor=admin, approve=False, reason="Bad.")
    plan_decision(place=place, actor=admin, approve=False, reason="Every answer is the same. " * 5)
    panel.faults = ["500 taken"]
    send_payments(campaign=place.campaign)
    place.refresh_from_db()
    assert (place.state, money(place.campaign)) == ("rejected", [])


FAULTS = {
    # what fails in turn: the look at the bonuses, the preparation, the payment, the look after it
    "the panel is away": ([500], "planned", 0),
    "the preparation is lost": ([None, "lost"], "planned", 0),
    "the preparation is made and lost": ([None, "taken"], "planned", 0),
    "the payment is lost": ([None, None, "lost"], "sent", 0),
    "the payment is taken, no answer": ([None, None, "taken"], "done", 101),
    "the payment is taken, 500": ([None, None, "500 taken"], "done", 101),
    "taken, and nobody can look": ([None, None, "taken", 500], "sent", 101),
    "the payment is refused": ([None, None, 400], "refused", 0),
    "nobody is known": ([404], "refused", 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_prolific(nli, admin, panel, name):
    faults, state, paid = FAULTS[name]
    campaign = study(nli, "prolific")
    place = paid_place(campaign, 1)
    plan_bonuses(campaign=campaign, actor=admin)
    panel.faults = list(faults)
    send_payments(campaign=campaign)
    assert (Payment.objects.get().state, sum(amount for _who, amount in panel.paid)) == (
        state,
        paid,
    )
    send_payments(campaign=campaign)  # at once: what is sent waits
    a_while_later()
    send_payments(campaign=campaign)
    send_payments(campaign=campaign)
    payment = Payment.objects.get()
    known = {"the payment is lost": "unclear", "the payment is refused": "refused"}
    assert payment.state == known.get(name, state if state == "refused" else "done")
    assert panel.sum_of(str(place.pk)) == (101 if payment.state == "done" else 0)
    assert money(campaign) == ([101] if payment.state == "done" else [])
    if payment.state == "unclear":
        assert plan_bonuses(campaign=campaign, actor=admin) == 0
        payment_services.resolve_payment(payment=payment, actor=admin, is_paid=False)
        assert plan_bonuses(campaign=campaign, actor=admin) == 1
        send_payments(campaign=campaign)
        assert panel.sum_of(str(place.pk)) == 101
        with pytest.raises(Refused):
            payment_services.resolve_payment(payment=payment, actor=admin, is_paid=True)


def test_mechanical_turk_knows_a_token_again(nli, admin, panel):
    campaign = study(nli, "mturk")
    place = paid_place(campaign, 1)
    plan_bonuses(campaign=campaign, actor=admin)
    panel.faults = [None, "taken", 500]
    send_payments(campaign=campaign)
    assert Payment.objects.get().state == "sent"
    Payment.objects.update(before=7)  # what is read back tells nothing
    for _ in range(2):
        a_while_later()
        send_payments(campaign=campaign)
    assert Payment.objects.get().state == "done"
    assert panel.sum_of(str(place.pk)) == 101


def test_what_the_owner_says_was_paid_is_in_the_ledger(nli, admin, panel):
    campaign = study(nli, "prolific")
    paid_place(campaign, 1)
    plan_bonuses(campaign=campaign, actor=admin)
    Payment.objects.update(state="unclear")
    payment_services.resolve_payment(payment=Payment.objects.get(), actor=admin, is_paid=True)
    assert money(campaign) == [101]
    assert Place.objects.get().payments.get().state == "done"


def test_what_the_panel_is_to_pay_is_paid_nowhere_else(nli, admin, panel, monkeypatch):
    campaign = study(nli, "prolific")
    paid_place(campaign, 1)
    paid_place(campaign, 2, state="submitted")  # the panel pays once it is approved
    plan_bonuses(campaign=campaign, actor=admin)
    assert len(list(list_transfers(campaign))) == 1  # the heading
    assert record_external_payment(campaign=campaign, actor=admin, cause="bank") == 0

    def refused(self, arrival):
        Payment.objects.update(state="sent")  # by another process, which was not refused
        raise PanelRefused("Too many requests.")

    monkeypatch.setattr(Prolific, "get_bonus_sum", refused)
    send_payments(campaign=campaign)
    assert Payment.objects.get().state == "sent"
    assert plan_bonuses(campaign=campaign, actor=admin) == 0
    Payment.objects.update(state="refused")
    assert record_external_payment(campaign=campaign, actor=admin, cause="bank") == 1


def test_a_panel_that_answers_nonsense_stops_no_other_campaign(nli, admin, panel, monkeypatch):
    fine = open_campaign(nli.task, way="prolific", study="6" * 24, sealed_token=encrypt("token"))
    broken = open_campaign(nli.task, slug="broken", way="mturk", sealed_token=encrypt("id:secret"))
    for campaign in (fine, broken):  # the newest is renewed first
        paid_place(campaign, 1)
        plan_bonuses(campaign=campaign, actor=admin)
    Campaign.objects.update(opened_at=timezone.now())
    late = paid_place(fine, 2, state="submitted")
    late.submitted_at = timezone.now() - timedelta(days=20)
    late.save()
    monkeypatch.setattr(MechanicalTurk, "get_bonus_sum", lambda self, arrival: int("nonsense"))
    with pytest.raises(ValueError, match="nonsense"):
        renew_campaigns()
    assert (money(broken), money(fine)) == ([], [101])
    late.refresh_from_db()
    assert late.warned_at  # its owner is warned
