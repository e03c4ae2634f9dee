"""Campaigns for tests: one that is open, and people who come by a panel's link."""

import json
from itertools import count

from django.test import Client
from django.utils import timezone

from core.data.encryption import encrypt
from dynabench.campaigns import place_services
from dynabench.campaigns.models import Campaign, ConsentText, LedgerRow, Place
from dynabench.campaigns.ways.panels import Arrival
from tests.support.factories import UserFactory

PANEL_IDS = {
    "link": {"pid": "panel-person-1"},
    "prolific": {"PROLIFIC_PID": "5" * 24, "STUDY_ID": "6" * 24, "SESSION_ID": "7" * 24},
    "mturk": {
        "workerId": "AWORKER1",
        "assignmentId": "3ASSIGN",
        "hitId": "3HIT0",
        "turkSubmitTo": "https://www.mturk.com",
    },
}
ADDRESSES = count(1)
YES = {"agree": "on", "age": "on", "number": "1"}


def open_campaign(task, **more):
    """A campaign that people may enter: one example each, for 150 cents and bonuses."""
    plan = {"slug": "study", "name": "A study", "each": 1, "places": 2, "pay_task": 150}
    codes = {"code_done": "DONE", "code_returned": "BACK"}
    plan |= codes | {"completion_url": "https://panel.test/done?cc={code}", "state": "open"}
    made = Campaign.objects.create(task=task, **plan | more)
    ConsentText.objects.create(campaign=made, number=1, text="We keep **what you write**.")
    return made


def come(campaign, client=None, **ids):
    """Somebody comes by their panel's link, from an address of their own, to the page that asks."""
    client = client or Client(REMOTE_ADDR=f"10.0.0.{next(ADDRESSES)}")
    query = PANEL_IDS.get(campaign.way, {}) | ids
    return client, client.get(f"/c/{campaign.slug}/", query, follow=True)


def agree(campaign, person, **more):
    """Somebody of a panel, or with an account, says yes."""
    who = {"arrival": Arrival(person)} if isinstance(person, str) else {"user": person}
    consent = campaign.consents.first()
    return place_services.take_place(campaign=campaign, consent=consent, **who, **more)[0]


def take_part(campaign, client=None, **ids):
    """Somebody comes and says yes."""
    client, _page = come(campaign, client, **ids)
    return client, client.post(f"/c/{campaign.slug}/consent/", YES)


def paid_place(campaign, number, state="approved"):
    """Somebody who has submitted and is owed a bonus of 100 cents and `number`.

    The panel's ids are the place's number; of who was approved, the pay for the task is paid.
    """
    now = timezone.now()
    place = Place.objects.create(
        campaign=campaign, annotator=UserFactory().annotator, state=state, expires_at=now,
        began_at=now, submitted_at=now, id_hash=f"{campaign.slug} {number}",
    )  # fmt: skip
    place.sealed_id = encrypt(json.dumps(Arrival(str(place.pk), str(place.pk))._asdict()))
    place.save()
    owed = {"earned": 150, "bonus": 100 + number} | ({"paid": 150} if state == "approved" else {})
    for kind, amount in owed.items():
        LedgerRow.objects.create(
            place=place, kind=kind, amount=amount, currency=campaign.currency, cause="test"
        )
    return place
