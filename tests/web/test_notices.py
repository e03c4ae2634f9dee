"""Notices to owners: on their pages, once a day by mail, and to webhooks."""

import re
from datetime import timedelta
from smtplib import SMTPServerDisconnected

import pytest
import time_machine
from allauth.account.models import EmailAddress
from django.core import mail, signing
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.context_picking.services import assign
from annotation.models import Example, Report
from core.accounts.services import get_annotator
from dynabench.campaigns.models import ConsentText, LedgerRow, Pause, Place
from dynabench.campaigns.quality_services import answer_appeal
from dynabench.campaigns.services import invite_addresses as invite_people
from dynabench.notices.digest_services import (
    LINK_SALT,
    renew_notices_and_send_digests,
    send_digests,
)
from dynabench.notices.models import Digest, Notice
from dynabench.notices.registry import NEWS_KINDS, TASKS_SWITCH, list_switches
from dynabench.notices.services import renew_notices
from dynabench.webhooks.delivery import store_new_deliveries
from dynabench.webhooks.events import find_events
from dynabench.webhooks.models import Delivery, Webhook
from tasks.members.assignments.services import change_assignment, end_assignment, set_assignments
from tasks.members.invitation_services import send_invitations
from tasks.models import Invitation, TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import PASSWORD, ContextFactory, UserFactory
from tests.support.guide import example_of
from tests.support.submissions import submission_of
from tests.support.writing_aids import worked_example
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.judging.queue_services import fill_queue
from validation.models import Consensus, Validation

PAGE = "/own/nli/"


def in_days(days):
    return time_machine.travel(timezone.now() + timedelta(days=days), tick=False)


@pytest.fixture
def owner(nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return alice


@pytest.fixture
def lagging(nli, owner, bob):
    """A round whose one context is used, with an example that waits for votes."""
    nli.contexts.all().delete()
    example = worked_example(nli, author=get_annotator(bob), context=ContextFactory(round=nli))
    Consensus.objects.all().delete()
    fill_queue(round=nli)
    return example


def open_ones():
    found = Notice.objects.filter(ended_at=None).order_by("kind")
    return [(one.kind, one.round, one.numbers) for one in found]


def test_notices_begin_change_and_end(lagging, nli, bob):
    submission_of(nli.task, bob)
    Report.objects.create(annotator=get_annotator(bob), context=lagging.context, reason="broken")
    renew_notices()
    at_first = [
        ("contexts", 1, {"count": 0, "all": 1}),
        ("models", 0, {"count": 1}),
        ("reports", 0, {"count": 1}),
    ]
    assert open_ones() == at_first
    nli.max_collected = 1
    nli.save()
    ContextFactory(round=nli, fields={"premise": "Another one."})
    with in_days(4):
        renew_notices()
    kinds = [kind for kind, *_ in open_ones()]
    assert kinds == ["budget", "judging", "models", "reports"]
    with in_days(8):
        renew_notices()
    assert [kind for kind, *_ in open_ones()] == ["budget", "judging", "reports"]
    assert Notice.objects.exclude(ended_at=None).count() == 2


def test_those_who_run_the_task_see_them(lagging, as_alice, nli, bob):
    renew_notices()
    [notice] = as_alice.get(PAGE).context["notices"]
    page = as_alice.get(PAGE).text
    assert notice.kind == "contexts"
    assert 'href="/own/nli/rounds/1/contexts/"' in page
    TaskMember.objects.create(task=nli.task, user=bob, role="viewer")
    viewer = Client()
    viewer.force_login(bob)
    assert "notices" not in viewer.get(PAGE).context


def test_a_digest_comes_once_a_day_and_is_switched_off_without_signing_in(lagging, owner, client):
    renew_notices_and_send_digests()
    renew_notices_and_send_digests()
    [sent] = mail.outbox
    assert sent.to == [owner.email]
    assert "/own/nli/rounds/1/contexts/" in sent.body
    assert send_digests() == 0
    with in_days(4):
        renew_notices()
        assert send_digests() == 1
    link = sent.extra_headers["List-Unsubscribe"].strip("<>").partition("/notices/")[2]
    url = f"/notices/{link}"
    assert (client.get(url).status_code, Digest.objects.get().is_off) == (200, False)
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(url, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert "tasks" not in Digest.objects.get().wanted_kinds
    Digest.objects.update(told_at=None)
    assert send_digests() == 0
    assert strict.post(url, {"digest": "on"}).status_code == 200
    assert send_digests() == 1
    assert client.get("/notices/forged/").status_code == 404


def test_a_digest_waits_for_the_mail_server(lagging, owner, monkeypatch):
    def away(self):
        raise SMTPServerDisconnected

    with monkeypatch.context() as patched:
        patched.setattr(EmailMessage, "send", away)
        renew_notices_and_send_digests()
    assert Digest.objects.get().told_at is None
    assert send_digests() == 1


def test_webhooks_of_those_who_run_the_task_are_told(lagging, owner, bob):
    now = timezone.now() - timedelta(minutes=1)
    for user in (owner, bob):
        Webhook.objects.create(
            user=user, url="https://x.test", events=["notice.began"], secret="", on_since=now
        )
    renew_notices()
    store_new_deliveries()
    [told] = Delivery.objects.all()
    assert told.webhook.user == owner
    assert {key: told.data[key] for key in ("task", "kind", "round", "count")} == {
        "task": "nli", "kind": "contexts", "round": 1, "count": 0,
    }  # fmt: skip


def test_people_are_told_of_assignments_until_they_are_done(nli, owner, bob):
    """When they are set, when they are due tomorrow, when they are overdue; everybody's to each."""
    TaskMember.objects.create(task=nli.task, user=bob, role="judge")
    due_on = (timezone.now() + timedelta(days=7)).date()
    asked = {"task": nli.task, "actor": owner, "kind": "judge", "amount": 1}
    (assignment,) = set_assignments(**asked, people=[], due_on=due_on)
    for days, mails in ((0, 1), (3, 0), (6, 1), (7, 0), (8, 1), (12, 0)):
        with in_days(days):
            assert send_digests() == mails
    assert [sent.to for sent in mail.outbox] == [[bob.email]] * 3
    assert all("/me/assignments/" in sent.body for sent in mail.outbox)
    end_assignment(assignment=assignment, actor=owner)
    with in_days(20):
        (again,) = set_assignments(**asked, people=[bob])
        example = worked_example(nli, author=get_annotator(owner))
        Validation.objects.filter(validator=get_annotator(bob)).delete()
        Validation.objects.create(
            example=example,
            validator=get_annotator(bob),
            label="neutral",
            created_at=timezone.now(),
        )
        assert send_digests() == 0
    with in_days(21):
        change_assignment(
            assignment=again, actor=owner, amount=2, share=None, overlap=1, due_on=None
        )
        assert send_digests() == 1


def forget_votes():
    Consensus.objects.all().delete()
    Validation.objects.all().delete()


def send_back(example):
    Consensus.objects.filter(example=example).update(
        is_sent_back=True, is_verified=False, is_validated_error=False, decided_at=timezone.now()
    )


def ticked(page):
    """Return the kinds whose boxes are ticked, and those whose boxes are not."""
    boxes = re.findall(r'<input\s+type="checkbox"\s+id="kinds-([\w-]+)"[^>]*?(checked)?\s*>', page)
    return {kind for kind, is_on in boxes if is_on}, {kind for kind, is_on in boxes if not is_on}


def test_all_kinds_of_emails_are_chosen_at_once(as_alice, alice):
    kinds = {*list_switches()}
    assert ticked(as_alice.get("/me/news/").text) == (kinds, set())
    wanted = {"paid", TASKS_SWITCH}
    assert as_alice.post("/me/news/", {"save": "1", "kinds": [*wanted]}).url == "/me/news/"
    assert ticked(as_alice.get("/me/news/").text) == (wanted, kinds - wanted)
    assert {*Digest.objects.get(user=alice).wanted_kinds} == wanted
    assert as_alice.post("/me/news/", {"save": "1", "kinds": ["nothing"]}).status_code == 404
    # None of them is the same as the switch for all, which can be turned back.
    as_alice.post("/me/news/", {"save": "1"})
    assert Digest.objects.get(user=alice).is_off
    as_alice.post("/me/news/", {"digest": "on"})
    assert ticked(as_alice.get("/me/news/").text) == (kinds, set())


def test_the_link_of_a_mail_offers_its_kind_and_all_others(client, alice):
    url = f"/notices/{signing.dumps(alice.pk, salt=LINK_SALT)}/"
    page = client.get(f"{url}?kind=paid").text
    assert 'id="stop-kind"' in page
    assert 'id="stop-kind"' not in client.get(url).text
    assert 'id="stop-kind"' not in client.get(f"{url}?kind=nothing").text
    assert 'id="saved"' in client.post(url, {"save": "1", "kinds": ["paid"]}).text
    assert Digest.objects.get(user=alice).wanted_kinds == ["paid"]


def test_people_are_told_of_their_work_and_switch_kinds_off(nli, owner, bob, client):
    """Of consent, disagreement, the end of a round, pay and appeals; each by one click less."""
    now, me = timezone.now(), get_annotator(bob)
    nli.ends_at = now + timedelta(hours=30)
    nli.save()
    assign(annotator=me, round=nli)
    mails = open_campaign(nli.task, slug="mails", way="invitation")
    EmailAddress.objects.create(user=bob, email=bob.email, verified=True)
    invite_people(campaign=mails, actor=owner, addresses=[bob.email])
    campaign = open_campaign(nli.task, way="account")
    values = {"expires_at": now, "began_at": now, "consent": campaign.consents.get()}
    place = Place.objects.create(campaign=campaign, annotator=me, state="working", **values)
    ConsentText.objects.create(campaign=campaign, number=2, text="Another text.")
    LedgerRow.objects.create(place=place, kind="paid", amount=150, currency="EUR", cause="bank 7")
    pause = Pause.objects.create(place=place, evidence={}, appeal="I was careful.")
    answer_appeal(pause=pause, actor=owner, text="Go on.", lift=True)
    example = worked_example(nli, author=me)
    forget_votes()
    for number in range(3):
        judge = UserFactory(email=f"judge{number}@example.com")
        Validation.objects.create(
            example=example,
            validator=get_annotator(judge),
            verdict="flagged",
            flag_reason="harmful",
        )
    derive_consensus_of_all([example])
    send_back(worked_example(nli, author=me))
    take_part(open_campaign(nli.task, slug="panel"))  # who has no address
    assert send_digests() == 1
    [sent] = mail.outbox
    page = Client()
    page.force_login(bob)
    shown = page.get("/me/news/").context["news"]
    kinds = {*NEWS_KINDS}
    assert {one.kind for one in shown} == kinds
    [invited] = [one for one in shown if one.kind == "invited"]
    assert "We keep" in page.get(page.get(invited.path).url, follow=True).text  # without a key
    assert Client().get("/c/mails/").status_code == 400
    assert all(one.path in sent.body and f"?kind={one.kind}" in sent.body for one in shown)
    assert "(3)" in sent.body  # the judges' reasons
    assert "1.50\u00a0EUR" in sent.body
    link = (
        "/notices/" + sent.extra_headers["List-Unsubscribe"].strip("<>").partition("/notices/")[2]
    )
    assert client.post(f"{link}?kind=paid").status_code == 200
    assert client.post(f"{link}?kind=nothing").status_code == 404
    assert Digest.objects.get(user=bob).off == "paid"
    Digest.objects.update(told_at=None)
    assert send_digests() == 1
    assert "1.50\u00a0EUR" not in mail.outbox[1].body
    for kind in kinds:
        client.post(f"{link}?kind={kind}")
    Digest.objects.update(told_at=None)
    assert send_digests() == 0
    page.post("/me/news/", {"kind": "paid", "digest": "on"})
    assert Digest.objects.get(user=bob).wanted_kinds == ["tasks", "paid"]
    assert send_digests() == 1
    [header] = [mail.outbox[2].extra_headers["List-Unsubscribe"]]
    assert header.endswith("?kind=paid>")  # with one kind in the mail, its button means that


def test_an_address_refuses_invitations(nli, owner, client, django_capture_on_commit_callbacks):
    def invited():
        with django_capture_on_commit_callbacks(execute=True):
            asked = {"role": "judge", "addresses": ["New@example.com"], "days": 7}
            send_invitations(task=nli.task, actor=owner, **asked)
        return len(mail.outbox)

    assert invited() == 1
    url = mail.outbox[0].extra_headers["List-Unsubscribe"].strip("<>").partition("/invitations")[2]
    assert client.get(f"/invitations{url}").status_code == 200
    assert invited() == 2
    assert Client(enforce_csrf_checks=True).post(f"/invitations{url}").status_code == 200
    assert invited() == 2
    assert client.post("/invitations/off/forged/").status_code == 404


def number(client, address="/"):
    """What the menu of a page says of the person's news; a phone's menu also while it is closed."""
    found = re.findall(r'class="count">(\d+)<', client.get(address).text)
    assert len(found) == (3 if found else 0)
    return int(found[0]) if found else 0


def test_the_menu_counts_what_waits_until_it_is_read_or_done(nli, owner, bob, client):
    """Sent back and asked by name until they are done, the others until they are read."""
    example = worked_example(nli, author=get_annotator(bob))
    send_back(example)
    asked = {"task": nli.task, "actor": owner, "kind": "judge", "amount": 1, "due_on": None}
    set_assignments(**asked, people=[])  # of everybody, in a task that all see
    client.post("/accounts/login/", {"login": bob.email, "password": PASSWORD})
    assert number(client) == number(client, "/t/nli/") == 2
    items = client.get("/me/news/").context["news"]
    assert [one.kind for one in items] == ["assigned", "sent-back"]
    assert number(client) == 1  # the assignment was read, the example still waits
    with in_days(1 / 24):
        TaskMember.objects.create(task=nli.task, user=bob, role="writer")
        set_assignments(**{**asked, "kind": "write"}, people=[bob])
        assert number(client) == 2
    with in_days(2 / 24):
        Example.objects.filter(pk=example.pk).update(retracted_at=timezone.now())
        assert number(client) == 1
    client.force_login(owner)
    with CaptureQueriesContext(connection) as queries:
        assert number(client, "/help/") == 0  # not counted: nobody signed in by the form
    assert not [one for one in queries if "notices_digest" in one["sql"]]


def test_one_class_makes_a_notice_at_every_door(nli, owner, as_alice):
    """The example of docs/extending.md: on the task's page, in the digest and for webhooks."""
    now = timezone.now()
    asked = {"role": "judge", "addresses": ["new@example.com"], "days": 2}
    with example_of("Add a notice"):
        send_invitations(task=nli.task, actor=owner, **asked)
        renew_notices()
        assert open_ones() == [("unused", 0, {"count": 1})]
        [notice] = as_alice.get(PAGE).context["notices"]
        assert notice.get_kind_display() == "invitations end"
        assert 'href="/own/nli/access/"' in as_alice.get(PAGE).text
        assert send_digests() == 1
        assert "/own/nli/access/" in mail.outbox[-1].body
        [event] = find_events(now - timedelta(minutes=1))
        assert (event.data["kind"], event.data["count"]) == ("unused", 1)
        Invitation.objects.update(uses=1)
        renew_notices()
        assert open_ones() == []
