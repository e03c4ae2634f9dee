"""How many queries each page needs: the same with one row as with many, and known.

After a wanted change: ./test --update queries
"""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Assignment, Example
from annotation.moderation import withdraw_example
from core.accounts.services import get_annotator
from evaluation.contract import SetRow
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.jobs import build_dataset
from evaluation.models import Dataset
from evaluation.submissions.teams.services import accept_invitation, invite_member, make_team
from evaluation.test_sets.services import create_set_with_version, make_version
from leaderboard.snapshots.services import take_snapshot
from tasks.models import Round, TaskMember
from tests.support.boards import fill_board
from tests.support.evaluations import accepted_model
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.judging import answered, write
from tests.support.query_counts import check, count, fill, fill_review
from tests.support.writing import open_form
from tests.support.writing_aids import (
    allow,
    earlier_round,
    generator,
    publish,
    worked_example,
)
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.judging import gold, services
from validation.models import JudgeLease, Validation

PAGES = {
    "home": "/",
    "task": "/t/nli/",
    "task data": "/t/nli/data/",
    "write": "/t/nli/write/",
    "judge, nothing": "/t/nli/judge/",
    "try-out": "/t/nli/try/",
    "people": "/t/nli/people/",
    "my data": "/me/data/",
    "account": "/account/",
    "help": "/help/",
    "numbers": "/help/numbers/",
    "numbers of a task": "/t/nli/numbers.json",
}


@pytest.mark.parametrize("page", PAGES)
def test_query_count(page, as_alice, alice, nli):
    nli.contexts.exclude(pk=nli.contexts.first().pk).delete()
    scripted_target(nli, label="entailment")
    fill(11, nli, alice)  # from ten on the page says what is left of the round
    few = count(as_alice, PAGES[page])
    fill(22, nli, alice, first=11)
    assert count(as_alice, PAGES[page]) == few
    check(page, few)


OWN = {
    "own rounds": "/own/nli/rounds/",
    "own round, close": "/own/nli/rounds/1/close/",
    "own round, plan": "/own/nli/rounds/1/edit/",
    "own config": "/own/nli/config/",
    "own preview": "/own/nli/config/preview/",
}


@pytest.mark.parametrize("page", OWN)
def test_query_count_of_an_owners_page(page, as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    scripted_target(nli, label="entailment")
    fill(1, nli, alice)
    few = count(as_alice, OWN[page])
    fill(12, nli, alice, first=1)
    assert count(as_alice, OWN[page]) == few
    check(page, few)


def test_query_count_of_a_submit(as_alice, nli):
    scripted_target(nli, label="entailment", prob=None)
    as_alice.post("/t/nli/write/", open_form(as_alice), HTTP_HX_REQUEST="true")
    form = open_form(as_alice, text="Another statement.")
    with CaptureQueriesContext(connection) as queries:
        response = as_alice.post("/t/nli/write/", form, HTTP_HX_REQUEST="true")
    assert response.status_code == 200
    check("submit", len(queries))


def test_query_count_of_examples_that_worked(as_alice, bob, nli):
    def fill_worked(rows):
        earlier = earlier_round(nli)
        Round.objects.filter(pk=earlier.pk).update(state="draft")  # its targets may change
        made = [
            worked_example(earlier, context=ContextFactory(round=earlier), text=f"Idea {number}.")
            for number in range(rows)
        ]
        for example in made:
            answered(example)
        for example in made:
            publish(example)

    fill_worked(6)
    form = open_form(as_alice) | {"want": "examples"}
    counts = []
    for _ in range(2):
        Assignment.objects.update(worked=None)
        with CaptureQueriesContext(connection) as queries:
            response = as_alice.post("/t/nli/write/support/", form, HTTP_HX_REQUEST="true")
        assert response.text.count("<li>") == 5
        counts.append(len(queries))
        fill_worked(12)
    assert counts[0] == counts[1]
    check("write, examples that worked", counts[0])


def test_query_count_of_a_suggestion(as_alice, nli):
    allow(nli.task)
    generator(nli.task)
    form = open_form(as_alice) | {"want": "suggestion"}
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            response = as_alice.post("/t/nli/write/support/", form, HTTP_HX_REQUEST="true")
        assert response.status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
    check("write, suggestion", counts[0])


def test_query_count_of_judging(as_alice, bob, nli, monkeypatch):
    # Whether it is gold's turn, and whether the walk begins again, is chance.
    monkeypatch.setattr(gold, "GOLD_INTERVAL", 2**64)
    monkeypatch.setattr(services, "SCANS_PER_RESTART", 2**129)
    fill(1, nli, bob)
    few = count(as_alice, "/t/nli/judge/")
    fill(14, nli, bob, first=1)
    assert count(as_alice, "/t/nli/judge/") == few
    check("judge", few)
    for _ in range(2):  # the first vote settles how the round is judged
        example = JudgeLease.objects.get(takes_place=True).example
        vote = {"example": example.uuid, "answer": "label:neutral"}
        with CaptureQueriesContext(connection) as queries:
            response = as_alice.post("/t/nli/judge/", vote, HTTP_HX_REQUEST="true")
        assert "Saved." in response.text
    locks = int(connection.features.has_select_for_update)  # one statement of its own
    check("vote", len(queries) - locks)


def fill_work(rows, round, me, others, first=0):
    """Decided examples of mine with votes, an answer and a decision; as many that I judged."""
    for number in range(first, rows):
        mine, theirs = (write(round, user, number) for user in (me, others[0]))
        answered(mine)
        validators = [get_annotator(user) for user in (*others[1:], me)]
        for example, voters in ((mine, validators[:2]), (theirs, validators)):
            for voter in voters:
                author = example.annotator
                Validation.objects.create(
                    example=example, validator=voter, author=author, label="neutral"
                )
            owner = others[1]
            override_consensus(example=example, owner=owner, choice=Vote(label="neutral"))
    Validation.objects.update(created_at=timezone.now() - timedelta(days=1))


@pytest.mark.parametrize(
    ("page", "url"),
    [("my work", "/me/"), ("my work, part", "/me/"), ("export", "/me/data/download/")],
)
def test_query_count_of_my_work(page, url, as_alice, alice, nli):
    headers = {"HTTP_HX_REQUEST": "true"} if "part" in page else {}

    def ask():
        with CaptureQueriesContext(connection) as queries:
            response = as_alice.get(url, **headers)
            assert b"Statement 1" in b"".join(response)
        return len(queries)

    others = UserFactory.create_batch(3)
    as_alice.get("/me/")  # the session is settled, and notes the visit
    fill_work(8, nli, alice, others)  # from eight on agreement is shown
    few = ask()
    fill_work(18, nli, alice, others, first=8)
    assert ask() == few
    check(page, few)


OWN_PAGES = {
    "own dashboard": "/own/nli/",
    "own people": "/own/nli/annotators/",
    "own people, file": "/own/nli/annotators/validators.csv",
    "own policy": "/own/nli/rounds/1/policy/",
    "own policy, preview": "/own/nli/rounds/1/policy/?rule=n-equal&needed=3",
    "own review": "/own/nli/review/",
    "own review, one": "/own/nli/review/{uuid}/",
}


@pytest.mark.parametrize("page", OWN_PAGES)
def test_query_count_of_owners_looking_at_judging(page, client, nli):
    boss = UserFactory(is_superuser=True)
    client.force_login(boss)
    people = UserFactory.create_batch(5)
    fill_review(1, nli, people)
    url = OWN_PAGES[page].format(uuid=Example.objects.get().uuid)

    def ask():
        client.get(url)
        cache.clear()  # numbers are kept there
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        return len(queries)

    few = ask()
    fill_review(12, nli, people, first=1)
    ContextFactory.create_batch(5, round=nli)
    assert ask() == few
    check(page, few)


def test_query_count_of_released_data(client, nli, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    boss = UserFactory(is_superuser=True)
    client.force_login(boss)
    pages = {"own release": "/own/nli/rounds/1/release/", "data": "/t/nli/rounds/1/data/"}
    for number in range(9):
        write(nli, boss, number, outcome="not_fooled")
    nli.state = "closed"
    nli.save()
    first = count(client, pages["own release"])
    release_next(nli)
    few = {page: count(client, url) for page, url in pages.items()}
    for _ in range(3):
        release_next(nli)
    assert {page: count(client, url) for page, url in pages.items()} == few
    check("own release, first", first)
    for page, found in few.items():
        check(page, found)


SET_PAGES = {
    "own sets": "/own/nli/evaluation-sets/",
    "own sets, one": "/own/nli/evaluation-sets/set-0/",
    "own sets, new": "/own/nli/evaluation-sets/new/",
    "own sets, new version": "/own/nli/evaluation-sets/set-0/new/",
}


def fill_sets(rows, round, first=0):
    """Sets, and as many versions of the first of them, made of releases."""
    for number in range(first, rows):
        made = SetRow(str(number), {"premise": "A.", "hypothesis": "B."}, ("neutral",))
        create_set_with_version([made], task=round.task, name=f"set-{number}", actor=None)
        dataset = Dataset.objects.create(round=round, version=number + 1, state="done")
        make_version(round.task.evaluation_sets.get(name="set-0"), [made], None, dataset)


@pytest.mark.parametrize("page", SET_PAGES)
def test_query_count_of_evaluation_sets(page, client, nli, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    client.force_login(UserFactory(is_superuser=True))
    fill_sets(1, nli)
    few = count(client, SET_PAGES[page])
    fill_sets(8, nli, first=1)
    assert count(client, SET_PAGES[page]) == few
    check(page, few)


BOARD_PAGES = {
    "leaderboards": "/leaderboards/",
    "leaderboard": "/t/nli/leaderboard/",
    "leaderboard, weights": "/t/nli/leaderboard/?w_accuracy=1&d_round-1=2",
    "leaderboard, file": "/t/nli/leaderboard/?format=csv",
    "leaderboard, embedded": "/t/nli/leaderboard/embed/",
    "forks": "/t/nli/leaderboard/forks/",
    "snapshots": "/t/nli/leaderboard/snapshots/",
    "snapshot": "/t/nli/leaderboard/snapshots/1/",
    "task with models": "/t/nli/",
}


@pytest.mark.parametrize("page", BOARD_PAGES)
def test_query_count_of_the_leaderboard(page, as_alice, nli, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path

    def add(models, first, sets):
        fill_board(nli.task, models, first, sets)
        nli.task.forks.create(name=f"fork-{models}", owner=UserFactory())
        take_snapshot(task=nli.task, actor=None)

    add(1, 0, ("round-1", "round-2"))
    few = count(as_alice, BOARD_PAGES[page])
    add(25, 1, ("round-1", "round-2", "round-3"))
    assert count(as_alice, BOARD_PAGES[page]) == few
    check(page, few)


def release_next(round):
    dataset = request_release(round=round, options=Options(), actor=None)
    build_dataset(dataset.pk)
    left = dataset.items.filter(is_withdrawn=False).last()
    withdraw_example(example=left.example, actor=None, reason="")


@pytest.mark.parametrize("page", ["teams", "team", "a team's models"])
def test_query_count_of_teams(page, as_alice, alice, nli):
    team = make_team(actor=alice, name="Lab")
    address = {
        "teams": "/me/teams/",
        "team": f"/me/teams/{team.pk}/",
        "a team's models": f"/api/v1/teams/{team.pk}/models/",
    }[page]

    def more(rows):
        for number in range(rows):
            joined = invite_member(team=team, actor=alice, email=f"{rows}-{number}@example.com")
            other = UserFactory(email=joined.address)
            get_annotator(other)
            accept_invitation(invitation=joined, user=other)
            accepted_model(nli.task, other, name=f"{rows}-{number}", team=team)
            more_of_mine = make_team(actor=alice, name=f"Team {rows}-{number}")
            invite_member(team=more_of_mine, actor=alice, email="nobody@example.com")

    more(1)
    few = count(as_alice, address)
    more(5)
    assert count(as_alice, address) == few
    check(page, few)
