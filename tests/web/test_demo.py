"""The simulated community: what it leaves in the tables, how it is marked, and its end."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from annotation.models import Example, Report
from dynabench.demo.past import date_back
from tasks.models import Round, TaskMember
from tests.support.demo import played_round, rows, votes
from tests.support.factories import UserFactory
from validation.models import Gold, GoldAnswer, Validation

pytestmark = pytest.mark.django_db


def counts() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def test_a_round_is_written_to_its_budget_and_judged_to_the_end():
    round = played_round(tries=80)
    kept = round.examples.filter(retracted_at__isnull=True)
    assert round.state == Round.State.CLOSED
    assert not round.is_being_written
    assert kept.count() >= 80  # who was writing may finish
    assert set(kept.values_list("outcome", flat=True)) == {"fooled", "not_fooled"}
    assert kept.filter(outcome="fooled", consensus__votes=0).count() == 0
    assert not kept.filter(queue_item__still_needed__gt=0, gold__isnull=True).exists()
    assert Gold.objects.exists()
    assert GoldAnswer.objects.exists()
    assert Report.objects.exists()
    assert Validation.objects.filter(verdict="flagged").exists()


def test_the_seed_decides_the_rows():
    found = []
    for _ in range(2):
        with transaction.atomic():
            task = played_round(seed=5, tries=30).task
            found.append((rows(task), votes(task)))
            transaction.set_rollback(True)
    assert found[0][0] == found[1][0]
    if transaction.get_connection().vendor == "sqlite":  # ids, which draw gold, begin again
        assert found[0][1] == found[1][1]


def test_each_page_says_that_it_is_simulated(client):
    task = played_round(tries=10).task
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    client.force_login(owner)
    for path in ("t/{}/", "t/{}/leaderboard/", "own/{}/", "own/{}/review/", "own/{}/rounds/"):
        page = client.get("/" + path.format(task.code))
        assert page.status_code == 200
        assert "Simulated: programs" in page.text, path
    assert "simulated" in client.get("/").text.lower()


def test_forgetting_takes_everything_away_and_what_real_people_did_there(capsys):
    UserFactory()
    before = counts()
    round = played_round(tries=20)
    some = Example.objects.first()
    real = UserFactory().annotator
    Example.objects.create(
        round=round, context=some.context, annotator=real, inputs=some.inputs, outcome="fooled"
    )
    call_command("forget_demo")
    told = capsys.readouterr()
    assert "1 real people" in told.err
    after = counts()
    people = {"accounts.User", "accounts.Annotator"}
    assert {k: n - before[k] for k, n in after.items() if n != before[k]} == dict.fromkeys(
        people, 1
    )
    call_command("forget_demo")
    assert counts() == after


def test_a_played_round_is_dated_over_the_week_before():
    round = played_round(tries=20)
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
        assert vote.seconds > 1


def test_another_demo_is_refused_while_there_is_one():
    played_round(tries=5)
    with pytest.raises(Exception, match="forget_demo"):
        call_command("demo")
