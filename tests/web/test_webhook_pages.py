"""Pages of webhooks: made, shown, tested, switched and deleted by their owner and nobody else."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest
from django.utils import timezone

from core.accounts.models import LogEntry
from core.accounts.tokens import create_token
from core.data.encryption import decrypt
from dynabench.webhooks.jobs import deliver_due
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import MAX_TESTS, create_webhook, send_test
from tests.support.parts import free_port
from tests.support.query_counts import check, count
from tests.support.webhooks import (  # noqa: F401
    ALL,
    HOOKS,
    _site,
    hide,
    hook,
    receiver,
    serve,
    snapshot,
    verified,
)


def test_pages_make_show_test_switch_and_delete(as_alice, alice, nli, receiver):
    server = receiver(200)
    asked = {"url": server.url, "events": ["snapshot.made"], "task": "nli"}
    made = as_alice.post(HOOKS, asked)
    assert made.status_code == 201
    secret = re.search(r"whsec_[\w+/=]+", made.text)[0]
    assert secret not in as_alice.get(HOOKS).text
    assert Webhook.objects.get().event_titles == [Webhook.Event.SNAPSHOT_MADE.label]
    page = f"{HOOKS}{Webhook.objects.get().pk}/"
    (greeting,) = Delivery.objects.all()
    assert (greeting.event, greeting.state, len(server.seen)) == ("webhook.test", "sent", 1)
    greeting.delete()
    assert 'id="no-deliveries"' in as_alice.get(page).text
    as_alice.post(f"{page}test/")
    assert deliver_due() == 1
    verified(server.seen[1], secret, timezone.now().timestamp())
    assert "webhook.test" in as_alice.get(page).text
    again = f"{page}deliveries/{Delivery.objects.get().pk}/again/"
    assert f'action="{again}"' in as_alice.get(page).text
    as_alice.post(again)
    assert deliver_due() == 1
    assert server.seen[1].headers["webhook-id"] == server.seen[2].headers["webhook-id"]
    as_alice.post(f"{page}switch/", {"on": "0"})
    assert not Webhook.objects.get().is_on
    for action in (f"{page}test/", again):
        as_alice.post(action)
        assert not Delivery.objects.filter(state="waiting").exists()
    as_alice.post(f"{page}switch/", {"on": "1"})
    assert Webhook.objects.get().is_on
    assert "<form" in as_alice.get(f"{page}delete/").text
    as_alice.post(f"{page}delete/")
    assert not Webhook.objects.exists()


def test_a_new_secret_takes_the_place_of_the_old_one(as_alice, alice, hook):
    send_test(webhook=hook)  # it waits, and is signed when it is sent
    page = f"{HOOKS}{hook.pk}/"
    assert f'action="{page}secret/"' in as_alice.get(page).text
    made = as_alice.post(f"{page}secret/")
    assert "no-store" in made["Cache-Control"]
    secret = re.search(r"whsec_[\w+/=]+", made.text)[0]
    assert secret != hook.key
    assert secret not in as_alice.get(page).text
    deliver_due()
    verified(hook.server.seen[0], secret, timezone.now().timestamp())
    with pytest.raises(AssertionError):
        verified(hook.server.seen[0], hook.key, timezone.now().timestamp())
    row = Webhook.objects.values().get()
    assert secret not in str(row)
    assert decrypt(row["secret"]) == secret
    entry = LogEntry.objects.get(action="webhook.secret_rotated")
    assert entry.actor == alice
    assert secret not in str(LogEntry.objects.values())
    assert as_alice.get(f"{page}secret/").status_code == 405


def test_the_form_says_what_is_wrong(as_alice, nli):
    hide(nli)
    asked = {"url": "http://example.org", "events": ["round.closed"], "task": "nli"}
    response = as_alice.post(HOOKS, asked)
    assert response.status_code == 422
    assert "task" in response.context["form"].errors
    response = as_alice.post(HOOKS, {**asked, "task": ""})
    assert 'href="#id_url"' in response.text
    assert not Webhook.objects.exists()


def test_nobody_elses_webhook_is_there(client, bob, hook, nli):
    snapshot(nli.task)
    deliver_due()
    client.force_login(bob)
    page = f"{HOOKS}{hook.pk}/"
    delivery = Delivery.objects.get().pk
    assert client.get(page).status_code == 404
    for action in ("test/", "switch/", "secret/", "delete/", f"deliveries/{delivery}/again/"):
        assert client.post(f"{page}{action}").status_code == 404
    assert decrypt(Webhook.objects.get().secret) == hook.key
    assert hook.url not in client.get(HOOKS).text
    assert Webhook.objects.get().is_on


def test_pages_and_lists_take_as_many_queries_with_many_rows(as_alice, alice, nli):
    def add(rows):
        for _ in range(rows):
            create_webhook(user=alice, url="https://a.test", events=ALL, task=nli.task)
            create_token(user=alice, name="a", scopes=["read"], days=1)
            send_test(webhook=alice.webhooks.first())

    add(1)
    first = alice.webhooks.first().pk
    pages = {
        "tokens": "/account/tokens/",
        "webhooks": HOOKS,
        "webhook": f"{HOOKS}{first}/",
        "api, webhooks": "/api/v1/webhooks/",
        "api, deliveries": f"/api/v1/webhooks/{first}/deliveries/",
        "api, tokens": "/api/v1/tokens/",
    }
    few = {name: count(as_alice, page) for name, page in pages.items()}
    add(8)
    assert {name: count(as_alice, page) for name, page in pages.items()} == few
    for name, queries in few.items():
        check(name, queries)


def refusing(handler, seen):
    handler.send({"detail": "No route for events here"}, 404)


def make(client, url):
    return client.post(HOOKS, {"url": url, "events": ["snapshot.made"]})


def test_a_receiver_that_refuses_is_told_in_its_own_words_at_once(as_alice, serve):
    server = serve(refusing)
    made = make(as_alice, server.url)
    assert made.status_code == 201
    hook = Webhook.objects.get()
    for page in (made, as_alice.get(f"{HOOKS}{hook.pk}/")):
        assert "No route for events here" in page.text
    assert (hook.failing_since, hook.is_on) == (None, True)
    assert deliver_due() == 0  # it is not tried again
    assert len(server.seen) == 1


def test_a_receiver_that_is_away_is_registered_all_the_same(as_alice):
    made = make(as_alice, f"http://127.0.0.1:{free_port()}/")
    assert made.status_code == 201
    greeting = Delivery.objects.get()
    assert (greeting.state, greeting.status) == ("given_up", None)
    assert greeting.error in made.text


def test_who_sent_many_tests_gets_a_webhook_without_one(as_alice, hook):
    for _number in range(MAX_TESTS):
        send_test(webhook=hook)
    assert make(as_alice, hook.server.url).status_code == 201
    assert Delivery.objects.count() == MAX_TESTS
    assert not hook.server.seen
