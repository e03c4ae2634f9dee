"""The simulated community: what it leaves in the tables, how it is marked, and its end."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import transaction
from django.urls import URLResolver, get_resolver
from django.utils import timezone

from annotation.models import Example, Report
from core.accounts.models import User
from core.web.throttles import ScopeThrottle
from dynabench.operations.demo.after import release_round
from dynabench.operations.demo.past import date_back
from tasks.models import Round
from tests.support.demo import played_round, rows, votes
from tests.support.factories import UserFactory
from validation.models import Gold, GoldAnswer, Validation

pytestmark = pytest.mark.django_db


def counts() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def test_a_round_is_written_to_its_budget_and_judged_to_the_end():
    round = played_round()
    kept = round.examples.filter(retracted_at__isnull=True)
    assert round.state == Round.State.CLOSED
    assert not round.is_being_written
    assert kept.count() >= 20  # who was writing may finish
    assert set(kept.values_list("outcome", flat=True)) == {"fooled", "not_fooled"}
    assert kept.filter(outcome="fooled", consensus__votes=0).count() == 0
    assert not kept.filter(queue_item__still_needed__gt=0, gold__isnull=True).exists()
    assert Gold.objects.exists()
    assert GoldAnswer.objects.exists()
    assert Report.objects.exists()
    assert Validation.objects.filter(verdict="flagged").exists()
    is_dated_over_the_week_before(round)


def is_dated_over_the_week_before(round: Round) -> None:
    now, week = timezone.now(), timedelta(days=7)
    date_back(round, weeks=1)
    round.refresh_from_db()
    written = list(round.examples.order_by("pk").values_list("created_at", flat=True))
    assert now - 2 * week < round.opened_at < written[0]
    assert written == sorted(written)
    assert written[-1] - written[0] > timedelta(days=1)
    assert round.closed_at < now - week + timedelta(minutes=1)
    for vote in Validation.objects.select_related("example"):
        assert vote.example.created_at < vote.created_at
        assert vote.seconds > 0
    work = [one.created_at - one.shown_at for one in round.examples.all()]
    assert timedelta(0) < max(work) < week / 20  # nobody writes all week long


def test_the_seed_decides_the_rows():
    found = []
    for _ in range(2):
        with transaction.atomic():
            task = played_round(seed=5, tries=12).task
            found.append((rows(task), votes(task)))
            transaction.set_rollback(True)
    assert found[0][0] == found[1][0]
    if transaction.get_connection().vendor == "sqlite":  # ids, which draw gold, begin again
        assert found[0][1] == found[1][1]


NAME = r"<(?:\w+:)?(\w+)>"


def addresses(**known: str) -> Iterator[str]:
    """All addresses of the site that name a task and nothing that is not known."""

    def walk(patterns: Iterable[Any], before: str = "/") -> Iterator[str]:
        for one in patterns:
            route = before + str(one.pattern)
            if isinstance(one, URLResolver):
                yield from walk(one.url_patterns, route)
            elif {"code"} <= {*re.findall(NAME, route)} <= known.keys():
                yield re.sub(NAME, lambda found: known[found[1]], route)

    return walk(get_resolver().url_patterns)


def test_each_page_and_file_says_that_it_is_simulated(client, monkeypatch):
    """In its text or the name under which it is saved; of the API's answers the address says it."""
    monkeypatch.setattr(ScopeThrottle, "allow_request", lambda self, request, view: True)
    round = played_round()
    release_round(round, User.objects.get(email="sim-owner@demo.invalid"), seed=1)
    client.force_login(UserFactory(is_superuser=True))
    files = round.datasets.get().files.values_list("name", flat=True)
    known = {"code": round.task.code, "number": "1", "version": "1"}
    doors = {door for name in files for door in addresses(**known, name=name)}
    people = f"/own/{round.task.code}/annotators/"
    doors |= {f"{people}{who}.csv" for who in ("authors", "validators")}
    board = f"/t/{round.task.code}/leaderboard/"
    doors |= {f"{board}?format={one}" for one in ("csv", "json", "latex")}
    doors |= {f"{board}rounds/?format={one}" for one in ("csv", "json")}
    doors.discard(f"/t/{round.task.code}/conversations.jsonl")  # of arenas alone
    opened = set()
    for door in sorted(doors):
        answer = client.get(door)
        if answer.status_code == 200:
            opened.add(door)
            name = answer.get("Content-Disposition", "")
            found = answer.getvalue().lower() + name.encode()
            assert b"simulated" in found or (door.startswith("/api/") and not name), door
    assert {door for door in doors if "?" in door or door.endswith((".csv", ".jsonl"))} <= opened
    assert len([door for door in opened if "/data/" in door]) > len(files)
    assert len(opened) > 60
    assert "simulated" in client.get("/").text.lower()


def test_forgetting_takes_everything_away_and_what_real_people_did_there(capsys):
    UserFactory()
    before = counts()
    round = played_round(tries=8)
    some = Example.objects.first()
    real = UserFactory().annotator
    Example.objects.create(
        round=round, context=some.context, annotator=real, inputs=some.inputs, outcome="fooled"
    )
    call_command("forget_demo")
    told = capsys.readouterr()
    assert "1 real people" in told.err
    after = counts()
    # The key by which addresses are marked stays.
    people = {"accounts.User", "accounts.Annotator", "accounts.SiteKey"}
    assert {k: n - before[k] for k, n in after.items() if n != before[k]} == dict.fromkeys(
        people, 1
    )
    call_command("forget_demo")
    assert counts() == after


def test_another_demo_is_refused_while_there_is_one():
    played_round(tries=5)
    with pytest.raises(CommandError):
        call_command("demo")
