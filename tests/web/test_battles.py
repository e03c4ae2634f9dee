"""Battles of an arena: the page, the turns, the vote, and what is told when."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import GatePass
from annotation.refusals import CapReached, NotAllowed, StaleForm
from core.accounts.services import get_annotator
from leaderboard.arena.battles import selectors, services, views
from leaderboard.arena.battles.page import IDEAS
from leaderboard.arena.battles.voters import list_voters
from leaderboard.arena.report import compute_report
from leaderboard.models import Battle, Comparison, GoldPair, Reply, Turn
from tasks.models import TargetFailure, TargetModel, TaskMember
from tests.support.battles import (
    agreed,  # noqa: F401
    battle_arena,
    fight,
    send,
    task,  # noqa: F401
    voter,  # noqa: F401
)
from tests.support.chat_server import chat_server
from tests.support.factories import UserFactory
from tests.support.query_counts import check
from tests.web.conftest import HTMX

URL = "/t/duel/battle/"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(views, "POLL_SECONDS", 5)


def hidden(response):
    """The values of the message's form."""
    return dict(re.findall(r'name="(battle|number|key)" value="([^"]*)"', response.text))


def say(client, text="Hello", **headers):
    form = client.get(URL).context["form"]
    data = {bound.name: bound.value() or "" for bound in form}
    return client.post(URL, {**data, "prompt": text}, **headers)


def choose(client, winner="left", **headers):
    battle = Battle.objects.get(ended_at=None)
    data = {"battle": battle.uuid, "turns": battle.turns.count(), "winner": winner}
    return client.post(f"{URL}vote/", data, **headers)


def test_the_whole_way_from_two_models_to_the_board(client, alice, bob, settings):
    """Owners add two models by their page; a person writes, chooses, reads names and the board."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    task = battle_arena(models={})
    TargetModel.objects.all().delete()
    TaskMember.objects.create(task=task, user=bob, role="owner")
    with chat_server(
        {"long": lambda m: f"At length: {m[-1]['content']}", "short": lambda m: "No."}
    ) as server:
        client.force_login(bob)
        for name in ("long", "short"):
            options = f'{{"model": "{name}", "instructions": "Be {name}.", "temperature": 0.5}}'
            form = {
                "name": f"model-{name}",
                "adapter": "openai_chat",
                "url": server.url,
                "options": options,
            }
            assert client.post("/own/duel/arena/", form).status_code == 302
        client.force_login(alice)
        assert 'name="agrees"' in client.get(URL).text
        client.post(f"{URL}consent/", {"agrees": "yes"})
        say(client, "What is rain?")
        page = client.get(URL).text
        assert "At length: What is rain?" in page
        assert "model-" not in page
        say(client, "And snow?")
        asked = [one for one in server.seen if one["model"] == "long"][-1]
    told = [message["content"] for message in asked["messages"]]
    assert told == ["Be long.", "What is rain?", "At length: What is rain?", "And snow?"]
    assert asked["temperature"] == 0.5
    battle = Battle.objects.get()
    side = "left" if battle.left.name == "model-long" else "right"
    over = client.get(choose(client, side)["Location"])
    assert "model-long" in over.text
    assert "model-short" in over.text
    assert compute_report(task).lines[0].name == "model-long"
    reply = Reply.objects.get(turn__number=1, side=side)
    assert reply.version.fingerprint["model"] == "long"
    assert reply.setup["options"]["instructions"] == "Be long."
    assert battle.turns.count() == 2
    (row,) = Comparison.objects.all()
    assert row.style["length"][side == "right"] > row.style["length"][side == "left"]


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_vote_reveals_the_names_and_offers_the_next(as_alice, task, agreed, headers):
    say(as_alice, **headers)
    response = choose(as_alice, "tie", **headers)
    if not headers:
        response = as_alice.get(response["Location"])
    assert {"m1", "m2"} == set(response.context["names"])
    assert re.search(r'id="next"[^>]*autofocus', response.text)
    assert response.context.get("form") is None
    assert Comparison.objects.get().winner == "tie"
    assert as_alice.get(URL).context["battle"] is None


def test_names_are_told_only_after_the_vote(as_alice, task, agreed):
    say(as_alice)
    for url in (URL, f"{URL}{Battle.objects.get().uuid}/"):
        text = as_alice.get(url, follow=True).text
        assert "m1" not in text
        assert "m2" not in text


def test_a_double_click_asks_once(task, voter):
    battle = None
    first = send(task, voter)
    again = send(task, voter, key=first.key, battle=battle, number=1)
    assert again.pk == first.pk
    assert (Battle.objects.count(), Turn.objects.count(), Reply.objects.count()) == (1, 1, 2)


def test_an_idea_fills_the_first_message_only(as_alice, task, voter, agreed):
    page = as_alice.get(URL, {"idea": "riddle"})
    assert len(page.context["ideas"]) == 3
    assert page.context["form"].initial["prompt"] == str(IDEAS["riddle"][1])
    assert as_alice.get(URL, {"idea": "unknown"}).context["form"].initial["prompt"] == ""
    send(task, voter)
    page = as_alice.get(URL, {"idea": "riddle"})
    assert "ideas" not in page.context
    assert page.context["form"].initial["prompt"] == ""


def test_a_page_that_is_old_is_refused_and_keeps_the_text(as_alice, task, voter, agreed):
    form = hidden(as_alice.get(URL))
    send(task, voter)
    response = as_alice.post(URL, {**form, "prompt": "My typed text"})
    assert response.status_code == 409
    assert "My typed text" in response.text
    assert Turn.objects.count() == 1


def test_both_answers_or_none(as_alice, task, voter, agreed):
    TargetModel.objects.filter(name="m2").update(options={"fail": "rubbish"})
    response = say(as_alice, "Keep me", **HTMX)
    turn = Turn.objects.get()
    assert (turn.state, turn.failure, Reply.objects.count()) == ("failed", "rubbish", 0)
    assert "Keep me" in response.text
    assert TargetFailure.objects.get().target.name == "m2"
    assert choose(as_alice).status_code == 409
    TargetModel.objects.filter(name="m2").update(options={"label": "Two."})
    say(as_alice, "Keep me")
    turn.refresh_from_db()
    assert (turn.state, turn.number, Reply.objects.count()) == ("done", 1, 2)


@pytest.mark.parametrize("said", ["  ", "x" * 30_001, 7])
def test_what_is_no_answer_fails_the_turn(task, voter, said):
    TargetModel.objects.filter(name="m2").update(options={"output": {"answer": said}})
    turn = send(task, voter)
    assert (turn.state, turn.failure) == ("failed", "rubbish")


def test_a_lost_turn_can_be_sent_again(task, voter):
    turn = send(task, voter)
    long_ago = timezone.now() - timedelta(hours=1)
    Turn.objects.update(state="asking", asked_at=long_ago)
    Reply.objects.all().delete()
    assert Turn.objects.get().is_lost
    send(task, voter, number=1)
    turn.refresh_from_db()
    assert turn.state == "done"


def test_while_models_answer_the_page_waits(as_alice, task, voter, agreed):
    send(task, voter)
    Turn.objects.update(state="asking", asked_at=timezone.now())
    response = as_alice.get(URL)
    assert 'id="answering"' in response.text
    assert 'name="winner"' not in response.text
    with pytest.raises(StaleForm):
        send(task, voter)
    assert choose(as_alice).status_code == 409


@pytest.mark.parametrize(
    "data", [{"prompt": ""}, {"prompt": "x" * 4001}, {"key": "no"}, {"number": "0"}]
)
def test_bad_messages_are_refused(as_alice, task, agreed, data):
    form = hidden(as_alice.get(URL))
    response = as_alice.post(URL, {**form, "prompt": "Hello", **data})
    assert response.status_code == 422
    assert not Battle.objects.exists()


def test_caps_hold(task, voter):
    task = battle_arena(
        "small", models={"a1": {"label": "a"}, "b1": {"label": "b"}}, per_day=2, turns=1
    )
    fight(task, voter)
    send(task, voter)
    with pytest.raises(CapReached):
        send(task, voter)  # turns
    services.leave_battle(battle=Battle.objects.get(ended_at=None))
    with pytest.raises(CapReached):
        send(task, voter)
    Battle.objects.update(began_at=timezone.now() - timedelta(days=1))
    assert send(task, voter).state == "done"


def test_answers_are_markdown_without_danger(as_alice, task, agreed):
    bad = {"label": "# Big\n\n<script>alert(1)</script> ![x](http://evil.test/p.png) **b**"}
    TargetModel.objects.update(options=bad)
    text = say(as_alice, **HTMX).text
    assert "<strong>b</strong>" in text
    assert "<script>alert" not in text
    assert "<img" not in text


def test_a_vote_is_cast_once(task, voter):
    battle = fight(task, voter, "left")
    for winner in ("right", "left"):
        with pytest.raises(NotAllowed):
            services.cast_vote(battle=battle, winner=winner, turns=1)
    assert Comparison.objects.get().winner == "left"


def test_a_vote_on_what_was_not_seen_is_refused(task, voter):
    battle = send(task, voter).battle
    battle.task = task
    send(task, voter)
    with pytest.raises(StaleForm):
        services.cast_vote(battle=battle, winner="left", turns=1)
    assert not Comparison.objects.exists()


@pytest.mark.parametrize("data", [{"winner": "me"}, {"turns": "x"}, {"battle": "x"}])
def test_bad_votes_are_refused(as_alice, task, voter, agreed, data):
    battle = send(task, voter).battle
    form = {"battle": battle.uuid, "turns": 1, "winner": "left", **data}
    assert as_alice.post(f"{URL}vote/", form).status_code == 422
    assert not Comparison.objects.exists()


def test_nobody_votes_for_another(client, task, voter, bob):
    battle = send(task, voter).battle
    client.force_login(bob)
    form = {"battle": battle.uuid, "turns": 1, "winner": "left"}
    assert client.post(f"{URL}vote/", form).status_code == 404
    assert client.get(f"{URL}{battle.uuid}/").status_code == 404
    assert client.post(f"{URL}{battle.uuid}/leave/").status_code == 404
    assert not Comparison.objects.exists()


def test_a_model_that_names_itself_is_kept_apart(task, voter):
    TargetModel.objects.filter(name="m1").update(options={"label": "Hi, I am Claude."})
    battle = fight(task, voter, "left")
    assert (battle.winner, battle.names_itself) == ("left", True)
    assert not Comparison.objects.exists()
    assert list_voters(task)[0].unblinded_votes == 1


def test_members_who_know_the_models_do_not_vote(client, task, bob):
    TaskMember.objects.create(task=task, user=bob, role="viewer")
    client.force_login(bob)
    assert 'id="reader"' in client.get(URL).text


def test_one_model_makes_no_battle(as_alice, task):
    task.contestants.filter(name="m2").update(is_live=False)
    assert 'id="no-battle"' in as_alice.get(URL).text


def test_lists_of_tasks_lead_to_battles_of_live_models(as_alice, task):
    assert f'href="{URL}"' in as_alice.get("/").text
    task.contestants.filter(name="m2").update(is_live=False)
    cache.clear()
    assert f'href="{URL}"' not in as_alice.get("/").text


def test_leaving_ends_a_battle_without_a_vote(as_alice, task, voter, agreed):
    battle = send(task, voter).battle
    as_alice.post(f"{URL}{battle.uuid}/leave/")
    assert as_alice.get(URL).context["battle"] is None
    text = as_alice.get(f"{URL}{battle.uuid}/").text
    assert "m1" not in text
    assert "m2" not in text


def test_a_sensitive_arena_has_a_gate(as_alice, task):
    task.config_text += "content_warning:\n  text: Rude.\n"
    task.save()
    response = as_alice.get(URL)
    assert response["Location"].endswith("/gate/?for=battle")
    assert as_alice.post(response["Location"])["Location"] == URL
    assert as_alice.get(URL).status_code == 200
    GatePass.objects.update(own_items=0, at=timezone.now())
    assert 'data-rest="break"' in as_alice.get(URL).text
    as_alice.post(f"{URL}consent/", {"agrees": "yes"})
    message = {"prompt": "Hello", "number": 1, "key": uuid4()}
    refused = as_alice.post(URL, message, **HTMX)
    assert (refused.status_code, Turn.objects.count()) == (429, 0)
    assert "Hello" in refused.text


@pytest.fixture
def gold(task):
    task.config_text = task.config_text.replace("gold: 0", "gold: 0.5")
    task.save()
    made = [
        GoldPair.objects.create(task=task, prompt=f"P{n}", good=f"Good {n}.", broken=f"Bad {n}.")
        for n in range(6)
    ]
    return made


def test_gold_pairs_come_among_others_and_count_for_the_voter_alone(
    as_alice, task, voter, agreed, gold
):
    for _ in range(40):
        battle = as_alice.get(URL).context["battle"]
        if battle is None:
            fight(task, voter)
            continue
        assert as_alice.get(URL).context["battle"].pk == battle.pk  # the same one again
        winner = battle.good if battle.gold.prompt != "P0" else "tie"
        services.cast_vote(battle=battle, winner=winner, turns=1)
    (found,) = list_voters(task)
    assert (found.gold_answers, found.correct_gold_answers, found.has_failed_gold) == (6, 5, False)
    golds = Battle.objects.filter(gold__isnull=False)
    assert len(set(golds.values_list("gold"))) == golds.count() == 6  # each once
    assert set(golds.values_list("good", flat=True)) == {"left", "right"}
    assert Comparison.objects.count() == Battle.objects.filter(gold__isnull=True).count()


def test_a_gold_battle_takes_no_message_and_tells_nothing(as_alice, task, voter, agreed, gold):
    fight(task, voter)
    while (battle := as_alice.get(URL).context["battle"]) is None:
        fight(task, voter)
    assert as_alice.get(URL).context["form"] is None
    with pytest.raises(StaleForm):
        send(task, voter, number=2)
    text = as_alice.get(choose(as_alice, battle.good)["Location"]).text
    assert "gold" not in text.lower().replace("golden", "")


def test_every_pair_is_drawn_and_the_unknown_one_most(task, voter):
    battle_arena("trio", models={"t1": {"label": "1"}, "t2": {"label": "2"}, "t3": {"label": "3"}})
    trio = Battle._meta.get_field("task").related_model.objects.get(code="trio")
    names = {one.pk: one.name for one in trio.contestants.all()}
    by_name = {name: pk for pk, name in names.items()}
    Comparison.objects.bulk_create(
        Comparison(task=trio, uid=str(n), voter=voter,
                   left_id=by_name["t1"], right_id=by_name["t2"],
                   winner=("left", "right")[n % 2])
        for n in range(200)
    )  # fmt: skip
    chances = {
        frozenset(names[pk] for pk in pair): chance
        for pair, chance in selectors._find_chances(trio, [*names]).items()
    }
    known = chances[frozenset(("t1", "t2"))]
    assert 0.1 / 3 <= known < 0.05
    assert sum(chances.values()) == pytest.approx(1)
    sides = {selectors.draw_pair(trio)[:2] for _ in range(60)}
    assert {(b, a) for a, b in sides} & sides


@pytest.mark.parametrize("url", [URL, "/own/duel/arena/"])
def test_query_count(client, task, bob, url):
    voter = get_annotator(bob)
    services.give_consent(voter=voter, task=task, agrees=True)
    client.force_login(bob if url == URL else UserFactory(is_superuser=True))
    client.get("/help/")  # the session is settled
    counts = []
    for _ in range(2):
        send(task, voter)
        if url != URL:
            for prompt in ("a@b.org", "c@d.org"):
                services.leave_battle(battle=Battle.objects.get(ended_at=None))
                fight(task, voter, prompt=prompt)
                send(task, voter)
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
    check("battle" if url == URL else "own arena", counts[0])
