"""Whoever has not confirmed an address decides nothing, unless the site's owner says so.

The attack: where accounts need no confirmed address, one person signs up ten times with addresses
that are not theirs and decides every example alone.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from core.accounts.models import confirm_address
from core.accounts.services import get_annotator
from leaderboard.arena.battles.services import cast_vote
from leaderboard.arena.battles.turn_services import begin_turn
from leaderboard.models import Battle
from tests.support.arenas import make_arena
from tests.support.campaigns import agree, open_campaign
from tests.support.judging import write
from tests.support.roles import answer
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.judging.confirmed import Unconfirmed, do_votes_count
from validation.judging.services import cast_validation, lease_next, undo_validation
from validation.models import JudgeLease, Validation

pytestmark = pytest.mark.django_db
JUDGE = "/t/nli/judge/"


@pytest.fixture(autouse=True)
def _strict(settings):
    """As a site is where people may sign in before they have confirmed an address."""
    settings.UNCONFIRMED_VOTES = False
    settings.ACCOUNT_EMAIL_VERIFICATION = "optional"


@pytest.fixture
def example(nli, bob):
    return write(nli, bob)


@pytest.fixture
def lease(alice, example):
    """Alice was handed the example out before the site's owner decided otherwise."""
    now = timezone.now()
    return JudgeLease.objects.create(
        example=example, validator=get_annotator(alice), leased_at=now - timedelta(minutes=1),
        until=now + timedelta(minutes=9), takes_place=False,
    )  # fmt: skip


def test_votes_are_refused_with_a_way_out(as_alice, alice, example, lease):
    lease.delete()
    page = as_alice.get(JUDGE)
    assert 'id="unconfirmed"' in page.text
    assert 'href="/accounts/email/"' in page.text
    vote = {"example": example.uuid, "answer": "label:neutral"}
    for more in ({}, HTMX):
        assert as_alice.post(JUDGE, vote, **more).status_code == 403
    flag = {"example": example.uuid, "flag_reason": "unclear"}
    assert as_alice.post(f"{JUDGE}flag/", flag).status_code == 403
    assert not Validation.objects.exists()
    confirm_address(alice)
    assert 'id="unconfirmed"' not in as_alice.get(JUDGE).text
    as_alice.post(JUDGE, vote)
    assert Validation.objects.get().validator == alice.annotator


def test_the_api_says_why(client, alice, example):
    client.force_login(alice)
    said = client.post("/api/v1/tasks/nli/judging/next/", {}, "application/json")
    assert (said.status_code, said.json()["error"]["code"]) == (403, "unconfirmed")


def test_services_refuse_them(alice, example, lease):
    voter = get_annotator(alice)
    with pytest.raises(Unconfirmed):
        cast_validation(validator=voter, example=example, vote=Vote(label="neutral"))
    assert lease_next(validator=voter, task=example.round.task) is None
    vote = Validation.objects.create(example=example, validator=voter, label="neutral")
    with pytest.raises(Unconfirmed):
        undo_validation(validator=voter, validation=vote)


def test_arenas_refuse_them(as_alice, alice):
    arena = make_arena("arena")
    voter = get_annotator(alice)
    assert 'id="unconfirmed"' in as_alice.get("/t/arena/battle/").text
    told = {"number": 1, "key": "0" * 32, "prompt": "Hello", "drawn_pair": None}
    with pytest.raises(Unconfirmed):
        begin_turn(voter=voter, task=arena, battle=None, **told)
    pair = arena.gold_pairs.create(prompt="Hello", good="Hi.", broken="9")
    battle = Battle.objects.create(voter=voter, task=arena, gold=pair, good="left")
    with pytest.raises(Unconfirmed):
        cast_vote(battle=battle, winner="left", turns=1)
    assert not Battle.objects.get().winner


def test_people_of_a_study_may(alice, nli):
    """With an account and without, while it has them work."""
    place = agree(open_campaign(nli.task, way="account", kind="judge"), alice)
    guest = agree(open_campaign(nli.task, slug="link", kind="judge"), "somebody")
    assert do_votes_count(place.annotator, nli.task)
    assert do_votes_count(guest.annotator, nli.task)
    place.state = "submitted"
    place.save()
    assert not do_votes_count(place.annotator, nli.task)


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("UNCONFIRMED_VOTES", True),
        ("ACCOUNT_EMAIL_VERIFICATION", "none"),
        ("ACCOUNT_EMAIL_VERIFICATION", "mandatory"),
    ],
)
def test_where_the_owner_says_otherwise_they_count(
    as_alice, alice, example, settings, changed, value
):
    """Where no address is asked for nobody is unconfirmed; where it must be, nobody signs in."""
    setattr(settings, changed, value)
    as_alice.get(JUDGE)
    as_alice.post(JUDGE, {"example": example.uuid, "answer": "label:neutral"})
    assert Validation.objects.get().validator == alice.annotator
    assert answer(as_alice, "GET", JUDGE).status_code == 200
