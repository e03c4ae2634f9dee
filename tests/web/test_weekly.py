"""The summary on Mondays: for those who ask, once a week, and never about nothing."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail

from annotation.models import Example
from core.accounts.services import get_annotator
from dynabench.notices import weekly_digest_services
from dynabench.notices.models import Digest
from dynabench.notices.weekly_digest import summarise_week
from dynabench.notices.weekly_digest_services import send_weekly
from evaluation.models import Dataset
from tests.support.judging import write
from tests.support.releases import _own_storage, closed, judge, people, released  # noqa: F401
from validation.models import Consensus

# ruff: noqa: F811  (fixtures are named where they are used)

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
MORNING = MONDAY + timedelta(hours=7)
LAST_WEEK = MONDAY - timedelta(days=3)


@pytest.fixture
def clock(monkeypatch):
    """Sets the time at which summaries are sent."""

    def set_time(moment):
        monkeypatch.setattr(weekly_digest_services.timezone, "now", lambda: moment)

    return set_time


@pytest.fixture
def week(nli, alice, people):
    """Alice's last week: a catch, one that waits, and one that fooled nobody."""
    caught, _waits, _missed = (write(nli, alice, n, label="neutral") for n in range(3))
    Example.objects.update(goal="neutral", created_at=LAST_WEEK)
    judge(Example.objects.get(pk=caught.pk), people[:3], "neutral")
    Example.objects.filter(pk=_missed.pk).update(outcome="not_fooled")
    Consensus.objects.update(decided_at=LAST_WEEK)


def test_it_comes_once_to_those_who_asked(client, alice, bob, week, clock):
    clock(MORNING)
    assert send_weekly() == 0
    client.force_login(alice)
    client.post("/me/news/", {"save": "1", "kinds": ["tasks"], "weekly": "1"})
    clock(MORNING - timedelta(days=1))
    assert send_weekly() == 0  # on Sundays nobody gets it
    clock(MORNING)
    assert (send_weekly(), send_weekly()) == (1, 0)
    (sent,) = mail.outbox
    assert sent.to == ["alice@example.com"]
    summary = summarise_week(get_annotator(alice), MONDAY)
    assert (summary.tries, summary.catches, summary.waiting) == (3, 1, 1)
    assert sent.subject == summary.headline
    assert "/t/nli/write/" in sent.body
    clock(MORNING + timedelta(days=7))
    assert send_weekly() == 0  # a week without work is no news


def test_its_link_stops_it_without_signing_in(client, alice, week, clock):
    Digest.objects.create(user=alice, is_weekly=True)
    clock(MORNING)
    send_weekly()
    link = re.search(r"http\S+kind=weekly", mail.outbox[0].body)[0]
    assert mail.outbox[0].extra_headers["List-Unsubscribe"] == f"<{link}>"
    address = re.sub(r"^https?://[^/]+", "", link)
    assert 'id="stop-kind"' in client.get(address).text
    assert Digest.objects.get().is_weekly  # looking changes nothing
    client.post(address)
    assert not Digest.objects.get().is_weekly
    assert Digest.objects.get().wanted_kinds


def test_turning_off_all_email_stops_it(as_alice, alice):
    Digest.objects.create(user=alice, is_weekly=True)
    assert "checked" in as_alice.get("/me/news/").text.partition('id="weekly"')[2][:80]
    as_alice.post("/me/news/", {"digest": "off"})
    assert not Digest.objects.get().is_weekly


def test_it_is_in_the_language_of_its_reader(alice, week, clock):
    alice.language = "de"
    alice.save()
    Digest.objects.create(user=alice, is_weekly=True)
    clock(MORNING)
    languages = []
    real = weekly_digest_services.render_to_string

    def watched(*arguments):
        from django.utils.translation import get_language

        languages.append(get_language())
        return real(*arguments)

    weekly_digest_services.render_to_string = watched
    try:
        assert send_weekly() == 1
    finally:
        weekly_digest_services.render_to_string = real
    assert languages == ["de"]


def test_sensitive_tasks_are_no_part_of_it(nli, alice, week):
    warning = "content_warning: {text: It hurts.}"
    nli.task.config_text = nli.task.config_text.replace("content_warning: null", warning)
    nli.task.save()
    assert summarise_week(get_annotator(alice), MONDAY) is None


def test_a_quoted_catch_makes_its_release_final(closed, alice):
    released(closed)
    Dataset.objects.update(downloaded_at=None)
    me = get_annotator(alice)
    example = Example.objects.exclude(consensus__is_validated_error=True).earliest("pk")
    Example.objects.filter(pk=example.pk).update(annotator=me, created_at=LAST_WEEK)
    assert summarise_week(me, MONDAY).peer_catch is not None
    assert Dataset.objects.get().downloaded_at is not None


@pytest.mark.parametrize(
    ("limits", "share"),
    [({"max_spent": 100}, None), ({"max_spent": 100, "max_collected": 10}, 0.3)],
)
def test_the_used_money_is_told_to_no_writer(nli, alice, week, clock, limits, share):
    for name, value in {"pay_example": 30, **limits}.items():
        setattr(nli, name, value)
    nli.save()
    (progress,) = summarise_week(get_annotator(alice), MONDAY).rounds
    assert (progress.task, progress.used_share) == (nli.task, share)
    Digest.objects.create(user=alice, is_weekly=True)
    clock(MORNING)
    assert send_weekly() == 1
    assert mail.outbox[0].body.count("30%") == (share is not None)
    assert "90%" not in mail.outbox[0].body
