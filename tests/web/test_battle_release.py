"""Conversations of battles: released with consent, without personal data; and given to oneself."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from leaderboard.arena.battles import selectors, services
from leaderboard.models import Battle, Comparison, ReleaseConsent, Reply, Turn
from tasks.models import TaskMember
from tests.support.battles import (
    agreed,  # noqa: F401
    fight,
    send,
    task,  # noqa: F401
    voter,  # noqa: F401
)

URL = "/t/duel/battle/"
pytestmark = pytest.mark.django_db


def released(client):
    return b"".join(client.get("/t/duel/conversations.jsonl").streaming_content).decode()


def test_only_with_consent_and_without_personal_data(client, task, voter):
    fight(task, voter, prompt="before")
    services.give_consent(voter=voter, task=task, agrees=True)
    fight(task, voter, prompt="agreed")
    fight(task, voter, prompt="write to jo@example.org")
    text = released(client)
    assert "agreed" in text
    assert "before" not in text
    assert "jo@example" not in text
    assert voter.pseudonym not in text
    assert "setup" not in text
    waiting = Battle.objects.get(release="waiting")
    assert (waiting.personal, waiting.consent_version) == (["mail"], selectors.CONSENT_VERSION)
    services.give_consent(voter=voter, task=task, agrees=False)
    assert released(client) == ""
    assert not Battle.objects.exclude(release="private").exists()


@pytest.mark.parametrize(("button", "state"), [("publish", "released"), ("withhold", "withheld")])
def test_owners_decide_what_waits(client, bob, task, voter, agreed, button, state):
    battle = fight(task, voter, prompt="call +44 20 7946 0958")
    TaskMember.objects.create(task=task, user=bob, role="owner")
    client.force_login(bob)
    assert "+44 20 7946 0958" in client.get("/own/duel/arena/conversations/").text
    url = f"/own/duel/arena/conversations/{battle.pk}/"
    client.post(url, {button: "1"})
    battle.refresh_from_db()
    assert battle.release == state
    client.post(url, {"publish": "1"})  # decided before
    battle.refresh_from_db()
    assert battle.release == state
    assert ("+44" in released(client)) == (state == "released")
    if state == "released":
        assert '"setup"' in released(client)


def test_consent_is_asked_once_and_again_for_another_question(as_alice, task, monkeypatch):
    as_alice.post(f"{URL}consent/", {"agrees": "no"})
    assert "form" in as_alice.get(URL).context
    assert ReleaseConsent.objects.get().agrees is False
    monkeypatch.setattr("leaderboard.arena.battles.selectors.CONSENT_VERSION", 2)
    assert 'name="agrees"' in as_alice.get(URL).text
    assert ReleaseConsent.objects.count() == 1


def test_leaving_the_site_takes_the_conversations_and_leaves_the_votes(task, voter, agreed):
    fight(task, voter, prompt="my secret")
    send(task, voter, prompt="unfinished")
    services.erase_conversations(voter=voter)
    assert not Turn.objects.exists()
    assert not Reply.objects.exists()
    assert not ReleaseConsent.objects.exists()
    assert Comparison.objects.count() == 1
    assert not Battle.objects.filter(ended_at=None).exists()
    services.erase_conversations(voter=voter)


def test_ones_own_data_hold_the_battles(as_alice, task, voter, agreed):
    fight(task, voter, prompt="my words")
    send(task, voter, prompt="open one")
    response = as_alice.get("/me/data/download/")
    text = b"".join(response.streaming_content).decode()
    assert "my words" in text
    assert "open one" in text
    assert text.count('"models": ["m') == 1  # of the open one they are not told


def test_the_overview_shows_the_newest_published_battle_with_a_choice(client, task, voter):
    def past():
        return client.get("/t/duel/").context["past"]

    fight(task, voter, "left", prompt="private")
    assert past() is None
    page = client.get("/t/duel/").text
    assert 'id="how"' in page  # the drawing of what one does
    services.give_consent(voter=voter, task=task, agrees=True)
    fight(task, voter, "left", prompt="older")
    battle = fight(task, voter, "right", prompt="<b>newer</b> " + "long " * 200)
    fight(task, voter, "tie", prompt="neither is better")
    shown = past()
    assert shown.prompt.startswith("<b>newer</b> long")
    assert len(shown.prompt) < 300
    assert [answer.is_better for answer in shown.answers] == [False, True]
    assert shown.answers[1].name == battle.right.name
    page = client.get("/t/duel/").text
    assert 'id="past-battle"' in page
    assert "<b>newer</b>" not in page
    services.give_consent(voter=voter, task=task, agrees=False)
    assert past() is None
