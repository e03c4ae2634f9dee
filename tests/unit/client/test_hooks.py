"""Webhooks, at the real API."""

import pytest

from dynabench.client import Invalid, NotFound
from dynabench.webhooks.models import Delivery

URL = "https://hooks.example.org/told"


@pytest.fixture
def mine(client_of, alice, nli):
    return client_of(alice)


def test_a_webhook_is_made_changed_tested_and_deleted(mine):
    made = mine.create_webhook(url=URL, events=["round.closed"], task="nli")
    assert made["secret"]
    (listed,) = mine.webhooks()
    assert "secret" not in listed
    assert (listed["id"], listed["task"], listed["is_on"]) == (made["id"], "nli", True)
    assert mine.test_webhook(made["id"])["event"] == "webhook.test"
    delivery, of_making = mine.deliveries(made["id"])  # a new one is sent a test at once
    assert delivery["event"] == of_making["event"] == "webhook.test"
    Delivery.objects.update(state="sent")
    assert mine.deliver_again(made["id"], delivery["id"])["state"] == "waiting"
    assert mine.new_webhook_secret(made["id"])["secret"] != made["secret"]
    assert mine.change_webhook(made["id"], is_on=False)["is_on"] is False
    assert mine.delete_webhook(made["id"]) is None
    assert mine.webhooks() == []


def test_what_no_webhook_can_be(mine):
    with pytest.raises(Invalid, match="events"):
        mine.create_webhook(url=URL, events=["nothing"])
    with pytest.raises(Invalid) as failed:
        mine.create_webhook(url=URL, events=["round.closed"], task="none")
    assert [*failed.value.fields] == ["task"]


def test_others_webhooks_are_not_there(mine, client_of, bob):
    made = mine.create_webhook(url=URL, events=["round.closed"])
    with pytest.raises(NotFound):
        client_of(bob).deliveries(made["id"])
