"""Webhooks: an event is told once, however many workers look; a delivery is sent by one of them."""

import pytest
from django.utils import timezone

from core.errors import Refused
from dynabench.webhooks import delivery
from dynabench.webhooks.delivery import send_due_deliveries, store_new_deliveries
from dynabench.webhooks.jobs import deliver_due
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import MAX_WEBHOOKS, create_webhook
from leaderboard.models import Snapshot
from tests.support.factories import TaskFactory, UserFactory
from tests.unit.tasks.endpoints.conftest import serve  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)
EVENTS = 24


@pytest.fixture
def server(serve, settings):  # noqa: F811
    settings.WEBHOOK_PRIVATE_HOSTS = ["127.0.0.1"]
    return serve(lambda handler, seen: handler.send({}))


@pytest.fixture
def hook(server):
    made, _ = create_webhook(user=UserFactory(), url=server.url, events=["snapshot.made"])
    task, now = TaskFactory(), timezone.now()
    for number in range(1, EVENTS + 1):
        Snapshot.objects.create(task=task, number=number, table={}, sha256="0" * 64, made_at=now)
    return made


def ids(server):
    return [seen.headers["webhook-id"] for seen in server.seen]


def test_many_workers_note_an_event_once(at_once, hook):
    at_once(lambda _: store_new_deliveries(), range(6))
    assert Delivery.objects.count() == EVENTS


def test_many_workers_send_each_delivery_once(at_once, hook, server):
    store_new_deliveries()

    def work(_):
        while send_due_deliveries():
            pass

    at_once(work, range(6))
    assert len(ids(server)) == len(set(ids(server))) == EVENTS
    assert set(Delivery.objects.values_list("state", "tries")) == {("sent", 1)}


def test_the_whole_job_in_many_workers(at_once, hook, server):
    at_once(lambda _: deliver_due(), range(4))
    deliver_due()
    assert sorted(data["data"]["snapshot"] for data in (seen.body for seen in server.seen)) == [
        *range(1, EVENTS + 1)
    ]


def test_many_failures_switch_off_once(at_once, hook, monkeypatch):
    """Each worker sees the end of the patience; one switches off and mails."""
    store_new_deliveries()
    Webhook.objects.update(failing_since=timezone.now() - delivery.MAX_FAILURE_TIME)
    mailed = []
    monkeypatch.setattr(delivery, "_mail_switched_off", lambda *said: mailed.append(said))
    monkeypatch.setattr(delivery, "_post", lambda letter: delivery.WebhookReply(500, "No."))
    at_once(lambda _: send_due_deliveries(), range(4))
    assert len(mailed) == 1
    assert not Delivery.objects.filter(state="waiting").exists()


def test_many_tabs_make_no_more_than_the_cap(at_once):
    user = UserFactory()

    def make(_):
        try:
            return create_webhook(user=user, url="https://a.test", events=["round.closed"])
        except Refused:
            return None

    for _ in range(MAX_WEBHOOKS - 2):
        make(None)
    at_once(make, range(6))
    assert Webhook.objects.count() == MAX_WEBHOOKS
