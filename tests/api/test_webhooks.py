"""Webhooks in the API: a program makes, tests and reads them; secrets are for their owner alone."""

# ruff: noqa: F811  (fixtures are named where they are used)

from uuid import uuid4

import pytest
from django.utils import timezone

from core.accounts.models import IdempotentAnswer, LogEntry
from core.data.encryption import decrypt
from dynabench.webhooks.jobs import deliver_due
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import create_webhook, send_test
from tests.support.webhooks import ALL, _site, hide, hook, receiver, serve, verified  # noqa: F401

API = "/api/v1/webhooks/"
State = Delivery.State


@pytest.fixture
def api(api_of, alice):
    return api_of(alice, "read", "submit")


def test_a_program_makes_changes_tests_reads_and_deletes(api, nli, receiver):
    server = receiver(200)
    asked = {"url": server.url, "events": ["snapshot.made", "round.closed"], "task": "nli"}
    made = api.post(API, asked)
    assert made.status_code == 201
    told = made.json()
    assert told["task"] == "nli"
    assert told["events"] == ["round.closed", "snapshot.made"]
    assert (told["contact"]["state"], told["contact"]["status"]) == ("sent", 200)
    verified(server.seen.pop(), told["secret"], timezone.now().timestamp())
    address = f"{API}{told['id']}/"
    assert "secret" not in api.get(address).json()
    assert [one["id"] for one in api.get(API).json()["results"]] == [told["id"]]
    test = api.post(f"{address}test/")
    assert test.status_code == 202
    deliver_due()
    verified(server.seen[0], told["secret"], timezone.now().timestamp())
    delivery, greeting = api.get(f"{address}deliveries/").json()["results"]
    assert greeting["id"] == told["contact"]["id"]
    assert (delivery["id"], delivery["state"]) == (test.json()["id"], "sent")
    assert delivery["status"] == 200
    assert api.patch(address, {"is_on": False}).json()["is_on"] is False
    assert api.post(f"{address}test/").status_code == 409
    assert api.patch(address, {"is_on": True, "events": ["round.closed"]}).json()["is_on"]
    assert Webhook.objects.get().events == ["round.closed"]
    assert api.delete(address).status_code == 204
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"url": "http://example.org"}, "url"),
        ({"url": "x\x00"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["all"]}, "events.0"),
        ({"task": "hidden"}, "task"),
    ],
)
def test_a_program_is_told_what_to_mend(api, nli, told, field):
    hide(nli)
    answer = api.post(API, {"url": "https://a.test", "events": ["round.closed"], **told})
    assert answer.status_code == 422
    assert list(answer.json()["error"]["fields"]) == [field]


def test_a_secret_is_not_kept_for_repeats(api):
    asked = {"url": "https://a.test", "events": ["round.closed"]}
    made = api.post(API, asked, headers={"Idempotency-Key": "k"})
    secret = made.json()["secret"]
    assert secret not in str(list(IdempotentAnswer.objects.values()))


def test_a_program_gets_a_new_secret_once(api, alice, hook):
    address = f"{API}{hook.pk}/"
    reply = api.post(f"{address}secret/", headers={"Idempotency-Key": "k"})
    assert reply.status_code == 200
    told = reply.json()
    assert (told["id"], told["url"]) == (hook.pk, hook.url)
    assert decrypt(Webhook.objects.get().secret) == told["secret"] != hook.key
    assert told["secret"] not in str(list(IdempotentAnswer.objects.values()))
    assert told["secret"] not in api.get(address).text
    assert LogEntry.objects.get(action="webhook.secret_rotated").actor == alice
    api.post(f"{address}test/")
    deliver_due()
    verified(hook.server.seen[0], told["secret"], timezone.now().timestamp())


def test_a_program_sends_again_what_arrived(api, hook):
    address = f"{API}{hook.pk}/"
    made = api.post(f"{address}test/").json()
    again = f"{address}deliveries/{made['id']}/again/"
    assert api.post(again).json()["tries"] == 0  # it waits already
    deliver_due()
    reply = api.post(again)
    assert reply.status_code == 202
    assert (reply.json()["id"], reply.json()["state"]) == (made["id"], "waiting")
    deliver_due()
    ids = [one.headers["webhook-id"] for one in hook.server.seen]
    assert ids == [made["id"]] * 2
    assert api.post(f"{address}deliveries/{uuid4()}/again/").status_code == 404
    api.patch(address, {"is_on": False})
    assert api.post(again).status_code == 409
    assert Delivery.objects.get().state == State.SENT


def test_a_program_has_neither_secret_nor_deliveries_of_others(api, bob, nli):
    theirs, secret = create_webhook(user=bob, url="https://a.test", events=ALL)
    send_test(webhook=theirs)
    address = f"{API}{theirs.pk}/"
    for action in ("secret/", f"deliveries/{Delivery.objects.get().pk}/again/"):
        assert api.post(f"{address}{action}").status_code == 404
    assert decrypt(Webhook.objects.get().secret) == secret


def test_both_take_the_scope(api_of, alice, hook):
    client = api_of(alice, "read", "own")
    send_test(webhook=hook)
    address = f"{API}{hook.pk}/"
    for action in ("secret/", f"deliveries/{Delivery.objects.get().pk}/again/"):
        reply = client.post(f"{address}{action}")
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "scope")
    assert decrypt(Webhook.objects.get().secret) == hook.key
