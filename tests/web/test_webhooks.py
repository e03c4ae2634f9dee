"""Webhooks: a real receiver checks signatures; who may not know is told nothing; tries and ends."""

# ruff: noqa: F811  (fixtures are named where they are used)

import threading
from datetime import timedelta

import pytest
import time_machine
from django.core import mail
from django.utils import timezone
from django_q.models import OrmQ

from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.data.encryption import decrypt
from core.errors import Refused
from dynabench.webhooks import delivery as delivering
from dynabench.webhooks import services
from dynabench.webhooks.delivery import (
    MAX_FAILURE_TIME,
    RETRY_DELAYS,
    claim_delivery,
    store_new_deliveries,
)
from dynabench.webhooks.jobs import deliver_due
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import MAX_TESTS, MAX_WEBHOOKS, create_webhook, send_test
from dynabench.webhooks.signing import compute_signature
from evaluation.models import EvaluationRun, Submission
from leaderboard.models import Snapshot
from tasks.models import TaskMember
from tasks.rounds.states import set_round_state
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import UserFactory
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

State = Delivery.State


def close(round):
    set_round_state(round=round, state="closed", actor=None)


def later(seconds):
    return time_machine.travel(timezone.now() + timedelta(seconds=seconds), tick=False)


def test_a_closed_round_is_told_once_and_signed(hook, nli):
    close(nli)
    assert deliver_due() == 1
    assert deliver_due() == 0
    (seen,) = hook.server.seen
    assert (seen.method, seen.path) == ("POST", "/told?x=1")
    body = verified(seen, hook.key, timezone.now().timestamp())
    assert body["type"] == "round.closed"
    assert body["data"] == {
        "task": "nli", "round": 1, "url": "https://site.example/t/nli/",
        "api_url": "https://site.example/api/v1/tasks/nli/rounds/1/",
    }  # fmt: skip
    delivery = Delivery.objects.get()
    assert {k.lower(): v for k, v in seen.headers.items()}["webhook-id"] == str(delivery.pk)
    assert (delivery.state, delivery.tries, delivery.status) == (State.SENT, 1, 200)


def test_the_signature_is_that_of_the_specification():
    """The example that the specification's own libraries are tested with."""
    said = compute_signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert said == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_round_that_closes_again_is_another_event(hook, nli):
    close(nli)
    deliver_due()
    set_round_state(round=nli, state="open", actor=None)
    with later(60):
        close(nli)
        assert deliver_due() == 1
    assert len(hook.server.seen) == 2


def test_a_finished_model_is_told_to_its_owner_and_its_tasks_editors(
    hook, alice, bob, nli, receiver
):
    bobs_server, carols_server = receiver(200), receiver(200)
    TaskMember.objects.create(task=nli.task, user=bob, role="editor")
    create_webhook(user=bob, url=bobs_server.url, events=ALL)
    create_webhook(user=UserFactory(), url=carols_server.url, events=ALL)
    model = accepted_model(nli.task, alice, name="Secret name", is_published=True)
    assert deliver_due() == 0  # its first run has not been asked for
    run = queued_run(model, set_version(nli.task))
    assert deliver_due() == 0
    EvaluationRun.objects.filter(pk=run.pk).update(
        state="done", outcome="ok", finished_at=timezone.now()
    )
    assert deliver_due() == 2
    body = verified(hook.server.seen[0], hook.key, timezone.now().timestamp())
    assert body["data"] == {
        "task": "nli", "model": str(model.pk), "url": f"https://site.example/m/{model.pk}/",
        "api_url": f"https://site.example/api/v1/models/{model.pk}/",
    }  # fmt: skip
    assert "Secret name" not in str(hook.server.seen)
    assert get_annotator(alice).pseudonym not in str(bobs_server.seen)
    assert len(bobs_server.seen) == 1
    assert carols_server.seen == []


@pytest.mark.parametrize("state", ["failed", "lost", "cancelled"])
def test_a_check_that_ends_otherwise_is_an_end_too(hook, alice, nli, state):
    accepted_model(nli.task, alice)
    Submission.objects.update(state=state, finished_at=timezone.now())
    assert deliver_due() == 1


def test_a_snapshot_is_told(hook, nli):
    snapshot(nli.task, 7)
    assert deliver_due() == 1
    assert hook.server.seen[0].body["data"] == {
        "task": "nli", "snapshot": 7,
        "url": "https://site.example/t/nli/leaderboard/snapshots/7/",
        "api_url": "https://site.example/api/v1/tasks/nli/leaderboard/snapshots/7/",
    }  # fmt: skip


def test_only_what_was_asked_for_is_told(alice, nli, qa, receiver):
    server = receiver(200)
    create_webhook(user=alice, url=server.url, events=["snapshot.made"], task=nli.task)
    close(nli)
    snapshot(qa.task)
    assert deliver_due() == 0
    snapshot(nli.task)
    assert deliver_due() == 1


def test_what_was_before_is_not_told(nli, alice, receiver):
    snapshot(nli.task)
    close(nli)
    with later(1):
        create_webhook(user=alice, url=receiver(200).url, events=ALL)
        assert deliver_due() == 0


def test_an_event_that_is_committed_late_is_told(hook, nli):
    """Its row bears the time at which its transaction began, before the last look."""
    early = timezone.now() + timedelta(minutes=10)
    with later(20 * 60):
        assert deliver_due() == 0
        snapshot(nli.task)
        Snapshot.objects.update(made_at=early)
        assert deliver_due() == 1


@pytest.mark.parametrize("when", ["before it is noted", "before it is sent"])
def test_who_may_not_see_the_task_any_more_is_told_nothing(hook, nli, when):
    snapshot(nli.task)
    if when == "before it is sent":
        assert store_new_deliveries() == 1
    hide(nli)
    assert deliver_due() == 0
    assert hook.server.seen == []
    if when == "before it is sent":
        kept = Delivery.objects.get()
        assert (kept.state, kept.data) == (State.WITHHELD, {})
    else:
        assert not Delivery.objects.exists()


def test_who_edits_the_task_no_more_is_not_told_of_its_models(hook, alice, bob, nli):
    member = TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    accepted_model(nli.task, bob)
    Submission.objects.update(state="failed", finished_at=timezone.now())
    assert store_new_deliveries() == 1
    member.delete()
    assert deliver_due() == 0
    assert Delivery.objects.get().state == State.WITHHELD


def test_a_switched_off_account_is_told_nothing(hook, alice, nli):
    snapshot(nli.task)
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    assert deliver_due() == 0


def test_failures_are_tried_again_and_then_given_up(alice, nli, receiver):
    server = receiver(500)
    create_webhook(user=alice, url=server.url, events=ALL)
    snapshot(nli.task)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for tries, wait in enumerate(RETRY_DELAYS, 1):
            assert deliver_due() == 1
            delivery = Delivery.objects.get()
            assert (delivery.state, delivery.tries) == (State.WAITING, tries)
            assert (delivery.status, delivery.error) == (500, "It answered 500.")
            clock.shift(wait - timedelta(seconds=1))
            assert deliver_due() == 0
            clock.shift(1)
        assert deliver_due() == 1
        assert Delivery.objects.get().state == State.GIVEN_UP
        clock.shift(timedelta(days=1))
        assert deliver_due() == 0
    ids = {one.headers["webhook-id"] for one in server.seen}
    assert (len(server.seen), len(ids)) == (6, 1)


def test_what_arrives_late_is_sent_and_the_failure_forgotten(alice, nli, receiver):
    create_webhook(user=alice, url=receiver(503, 204).url, events=ALL)
    snapshot(nli.task)
    deliver_due()
    assert Webhook.objects.get().failing_since
    with later(61):
        assert deliver_due() == 1
    assert Delivery.objects.get().state == State.SENT
    assert Webhook.objects.get().failing_since is None


@pytest.mark.parametrize(
    "url",
    ["https://10.0.0.8/x", "https://169.254.169.254/latest/meta-data", "https://[::1]/x"],
)
def test_a_private_address_is_not_called(alice, nli, url):
    create_webhook(user=alice, url=url, events=ALL)
    snapshot(nli.task)
    deliver_due()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status) == (State.WAITING, None)
    assert "public address" in delivery.error


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_leads_nowhere_private(alice, nli, receiver, settings, status):
    inside = receiver(200)
    settings.WEBHOOK_PRIVATE_HOSTS = ["localhost"]
    port = receiver(status, Location=inside.url).port
    create_webhook(user=alice, url=f"http://localhost:{port}/", events=ALL)
    snapshot(nli.task)
    deliver_due()
    assert inside.seen == []
    assert Delivery.objects.get().state == State.WAITING


def test_a_receiver_that_hangs_does_not_hold_the_worker(alice, nli, serve, monkeypatch):
    monkeypatch.setattr(delivering, "TIMEOUT_SECONDS", 0.2)
    stop = threading.Event()
    server = serve(lambda handler, seen: stop.wait(30))
    create_webhook(user=alice, url=server.url, events=ALL)
    snapshot(nli.task)
    deliver_due()
    stop.set()
    assert Delivery.objects.get().error


def test_a_receiver_that_is_gone_is_switched_off_with_a_mail(
    alice, nli, receiver, django_capture_on_commit_callbacks
):
    server = receiver(410)
    made, _ = create_webhook(user=alice, url=server.url, events=ALL)
    snapshot(nli.task)
    snapshot(nli.task, 2)
    with django_capture_on_commit_callbacks(execute=True):
        deliver_due()
    assert not Webhook.objects.get().is_on
    assert set(Delivery.objects.values_list("state", flat=True)) == {State.GIVEN_UP}
    (sent,) = mail.outbox
    assert sent.to == [alice.email]
    assert f"https://site.example{HOOKS}{made.pk}/" in sent.body


def test_what_fails_for_days_is_switched_off(
    alice, nli, receiver, django_capture_on_commit_callbacks
):
    create_webhook(user=alice, url=receiver(500).url, events=ALL)
    snapshot(nli.task)
    deliver_due()
    assert Webhook.objects.get().is_on
    Webhook.objects.update(failing_since=timezone.now() - MAX_FAILURE_TIME)
    with later(61), django_capture_on_commit_callbacks(execute=True):
        deliver_due()
    assert not Webhook.objects.get().is_on
    assert len(mail.outbox) == 1


def test_switched_on_again_it_is_told_what_happens_from_then_on(hook, alice, nli):
    told = {"webhook": hook, "actor": alice, "url": hook.url, "events": ALL}
    services.change_webhook(**told, is_on=False)
    snapshot(nli.task)
    assert deliver_due() == 0
    with later(5):
        services.change_webhook(**told, is_on=True)
        snapshot(nli.task, 2)
        assert deliver_due() == 1
    assert hook.server.seen[0].body["data"]["snapshot"] == 2


def test_a_killed_workers_delivery_comes_back(hook, nli):
    snapshot(nli.task)
    store_new_deliveries()
    assert claim_delivery(Delivery.objects.get().pk)  # and then its worker died
    assert deliver_due() == 0
    with later(61):
        assert deliver_due() == 1
    assert Delivery.objects.get().tries == 2


def test_a_worker_that_was_too_slow_changes_nothing(hook, nli):
    snapshot(nli.task)
    store_new_deliveries()
    slow = claim_delivery(Delivery.objects.get().pk)
    with later(61):
        deliver_due()
    delivering._note_reply(slow, delivering.WebhookReply(500, "late"))
    kept = Delivery.objects.get()
    assert (kept.state, kept.status) == (State.SENT, 200)


def test_a_secret_of_another_key_cannot_sign(hook, nli, settings):
    snapshot(nli.task)
    settings.SECRET_KEY = "another"
    deliver_due()
    assert "cannot be signed" in Delivery.objects.get().error
    assert hook.server.seen == []


def test_old_deliveries_are_deleted(hook, nli):
    snapshot(nli.task)
    deliver_due()
    with time_machine.travel(timezone.now() + timedelta(days=31), tick=False):
        deliver_due()
    assert not Delivery.objects.exists()


# What people do with them


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"events": []}, "events"),
        ({"url": "example.org"}, "url"),
        ({"url": "http://example.org"}, "url"),
        ({"url": "https://a:b@example.org"}, "url"),
        ({"url": "ftp://example.org"}, "url"),
    ],
)
def test_what_a_webhook_cannot_be(alice, told, field):
    with pytest.raises(Refused) as refused:
        create_webhook(user=alice, **{"url": "https://a.test", "events": ALL, **told})
    assert refused.value.field == field
    assert not Webhook.objects.exists()


def test_nobody_has_more_than_some(alice):
    for _ in range(MAX_WEBHOOKS):
        create_webhook(user=alice, url="https://a.test", events=ALL)
    with pytest.raises(Refused, match=f"{MAX_WEBHOOKS} webhooks"):
        create_webhook(user=alice, url="https://a.test", events=ALL)


def test_the_secret_is_kept_encrypted_and_logged_nowhere(hook):
    row = Webhook.objects.values().get()
    assert hook.key not in str(row)
    assert decrypt(row["secret"]) == hook.key
    log = str(list(LogEntry.objects.values()))
    assert "webhook.created" in log
    assert hook.key not in log
    assert hook.url not in log


def test_a_test_rings_and_is_sent_at_once(hook):
    send_test(webhook=hook)
    assert OrmQ.objects.count() == 1
    assert deliver_due() == 1
    assert hook.server.seen[0].body["type"] == "webhook.test"


def test_tests_have_a_cap(hook):
    for _ in range(MAX_TESTS):
        send_test(webhook=hook)
    with pytest.raises(Refused):
        send_test(webhook=hook)
