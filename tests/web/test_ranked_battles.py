"""Battles with more than two answers: drawn, ranked, compared by pairs, published, exported."""

import json
import re
from uuid import uuid4

import pytest
from django.core.cache import cache

from core.accounts.services import get_annotator
from leaderboard.arena.battles import services
from leaderboard.arena.battles.release import iter_own_battles
from leaderboard.arena.battles.selectors import draw_pair
from leaderboard.arena.battles.voters import list_voters
from leaderboard.arena.report import compute_report
from leaderboard.models import Battle, Comparison, Contestant
from tests.support.battles import battle_arena, send
from tests.support.factories import UserFactory
from tests.support.writing import ok, signed_in

URL, EXPORT = "/t/duel/battle/", "/t/duel/conversations.jsonl"
ANSWERS = {"m1": "One.", "m2": "Two.", "m3": "Three.", "m4": "Four."}
pytestmark = pytest.mark.django_db


@pytest.fixture
def task():
    return battle_arena(models={name: {"label": text} for name, text in ANSWERS.items()}, answers=3)


@pytest.fixture
def voter(task, alice):
    voter = get_annotator(alice)
    services.give_consent(voter=voter, task=task, agrees=True)
    return voter


def by_model(battle):
    return {battle.get_contestant(side).name: side for side in battle.sides}


def rank(task, voter, order=None, prompt="Hello"):
    """A battle of one message with its ranking. order: a place for the index of a model's name."""
    battle = send(task, voter, prompt).battle
    battle.task = task
    names = sorted(by_model(battle))
    places = order or {name: place for place, name in enumerate(names, 1)}
    ranking = {side: places[name] for name, side in by_model(battle).items()}
    return services.cast_vote(battle=battle, winner="ranked", ranking=ranking, turns=1)


def test_three_of_the_models_answer_and_each_pair_is_compared(task, voter):
    battle = rank(task, voter)
    assert len(set(by_model(battle))) == 3
    replies = {reply.side: reply.text for reply in battle.turns.get().replies.all()}
    assert replies == {side: ANSWERS[name] for name, side in by_model(battle).items()}
    comparisons = Comparison.objects.all()
    assert len(comparisons) == 3
    assert {one.weight for one in comparisons} == {2 / 3}
    for one in comparisons:
        better = min(one.left.name, one.right.name)
        assert one.winner == ("left" if one.left.name == better else "right")
        assert set(one.style) == {"length", "headings", "lists", "bold"}
    report = compute_report(task)
    assert next(line.name for line in report.lines) == min(by_model(battle))
    assert report.battles == 3


def test_fewer_live_models_than_answers_are_all_shown(task, voter):
    Contestant.objects.exclude(name__in=("m1", "m2")).update(is_live=False)
    drawn = draw_pair(task)
    assert drawn.others == ()
    Contestant.objects.filter(name="m3").update(is_live=True)
    cache.clear()
    drawn = draw_pair(task)
    assert len({drawn.left, drawn.right, *drawn.others}) == 3


def test_every_model_stands_on_every_side(task):
    seen = set()
    for _ in range(200):
        drawn = draw_pair(task)
        seen |= set(enumerate((drawn.left, drawn.right, *drawn.others)))
    assert len(seen) == 12


def test_the_page_asks_for_a_place_of_each_answer(task, voter, alice):
    client = signed_in(alice)
    form = {"battle": "", "number": 1, "key": uuid4(), "prompt": "Hello"}
    page = ok(client.post(URL, form, follow=True)).text
    assert page.count('type="radio"') == 9
    assert 'name="winner"' not in page
    assert not any(f">{name}<" in page for name in ANSWERS)
    assert len(set(re.findall(r' id="([^"]+)"', page))) == len(re.findall(r' id="[^"]+"', page))
    battle = Battle.objects.get()
    sent = {"battle": battle.uuid, "turns": 1, "place_left": 2, "place_right": 1}
    missing = client.post(f"{URL}vote/", sent)
    assert missing.status_code == 422
    assert 'href="#rank-place_s3' in missing.text
    assert client.post(f"{URL}vote/", sent | {"place_s3": 4}).status_code == 422
    assert client.post(f"{URL}vote/", {**sent, "winner": "left"}).status_code == 409
    assert client.post(f"{URL}vote/", {**sent, "turns": 2, "place_s3": 2}).status_code == 409
    assert not Comparison.objects.exists()
    over = ok(client.post(f"{URL}vote/", sent | {"place_s3": 2}, follow=True)).text
    assert 'id="names"' in over
    assert all(name in over for name in by_model(battle))
    battle.refresh_from_db()
    assert battle.ranking == {"left": 2, "right": 1, "s3": 2}
    winners = {(one.left_id, one.right_id): one.winner for one in Comparison.objects.all()}
    third = battle.extra_sides.get().contestant_id
    assert winners == {
        (battle.left_id, battle.right_id): "right",
        (battle.left_id, third): "tie",
        (battle.right_id, third): "left",
    }
    again = client.post(f"{URL}vote/", sent | {"place_s3": 2})
    assert again.status_code in (403, 409)
    assert Comparison.objects.count() == 3


def test_a_battle_of_two_takes_no_ranking(task, voter, alice):
    Contestant.objects.exclude(name__in=("m1", "m2")).update(is_live=False)
    battle = send(task, voter).battle
    client = signed_in(alice)
    sent = {"battle": battle.uuid, "turns": 1, "place_left": 2, "place_right": 1}
    assert client.post(f"{URL}vote/", sent).status_code == 409
    ok(client.post(f"{URL}vote/", sent | {"winner": "tie"}, follow=True))
    comparison = Comparison.objects.get()
    assert (comparison.uid, comparison.weight) == (str(battle.uuid), 1)


def test_each_model_reads_its_own_conversation(task, voter):
    first = send(task, voter, "First")
    second = send(task, voter, "Second")
    assert second.battle.sides == first.battle.sides == ["left", "right", "s3"]
    for turn in (first, second):
        assert turn.replies.count() == 3
    battle = second.battle
    battle.task = task
    ranking = {"left": 1, "right": 2, "s3": 3}
    services.cast_vote(battle=battle, winner="ranked", ranking=ranking, turns=2)
    (row,) = published(iter_rows(task))
    assert [len(turn["answers"]) for turn in row["turns"]] == [3, 3]


def iter_rows(task):
    from leaderboard.arena.battles.release import iter_released_rows

    return iter_released_rows(task, with_setup=False)


def published(rows):
    return json.loads(json.dumps(list(rows), default=str))


def test_a_model_that_names_itself_ends_the_blindness_of_all(task, voter):
    third = task.targets.get(name="m3")
    type(third).objects.filter(pk=third.pk).update(options={"label": "I am m3."})
    Contestant.objects.filter(name="m4").update(is_live=False)
    battle = rank(task, voter)
    assert battle.names_itself
    assert not Comparison.objects.exists()


def test_conversations_and_preferences_include_rankings(task, voter, client, tmp_path):
    order = {"m1": 2, "m2": 1, "m3": 2, "m4": 3}
    Contestant.objects.filter(name="m4").update(is_live=False)
    battle = rank(task, voter, order)
    (row,) = [json.loads(line) for line in ok(client.get(EXPORT)).getvalue().splitlines()]
    assert row["id"] == str(battle.uuid)
    assert dict(zip(row["models"], row["ranking"], strict=True)) == {
        name: order[name] for name in ("m1", "m2", "m3")
    }
    texts = [answer["text"] for answer in row["turns"][0]["answers"]]
    assert texts == [ANSWERS[name] for name in row["models"]]
    assert "winner" not in row
    dpo = ok(client.get(EXPORT, {"format": "dpo"})).getvalue().splitlines()
    pairs = [json.loads(line) for line in dpo]
    assert {(one["chosen_model"], one["rejected_model"]) for one in pairs} == {
        ("m2", "m1"), ("m2", "m3"),
    }  # fmt: skip
    for one in pairs:
        assert one["chosen"][-1]["content"] == ANSWERS[one["chosen_model"]]
        assert one["rejected"][-1]["content"] == ANSWERS[one["rejected_model"]]
    assert len({one["id"] for one in pairs}) == 2
    assert ok(client.get(EXPORT, {"format": "kto"})).getvalue() == b""
    ties = ok(client.get(EXPORT, {"format": "ties"})).getvalue().splitlines()
    (tie,) = [json.loads(line) for line in ties]
    assert (set(tie["models"]), tie["winner"]) == ({"m1", "m3"}, "tie")
    said = [completion[-1]["content"] for completion in tie["completions"]]
    assert said == [ANSWERS[name] for name in tie["models"]]
    check_with_trl(dpo, tmp_path)


def check_with_trl(lines, folder):
    """Assert that TRL reads the pairs of rankings as it reads those of two answers."""
    from datasets import load_dataset
    from trl.data_utils import is_conversational, unpair_preference_dataset

    file = folder / "dpo.jsonl"
    file.write_bytes(b"\n".join(lines))
    loaded = load_dataset("json", data_files=str(file), cache_dir=str(folder / "cache"))["train"]
    assert all(is_conversational(row) for row in loaded)
    unpaired = unpair_preference_dataset(loaded.select_columns(["prompt", "chosen", "rejected"]))
    assert unpaired.column_names == ["prompt", "completion", "label"]
    said = {row["completion"][-1]["content"]: row["label"] for row in unpaired}
    # The winner's answer is wanted in each of its pairs, the others' in none.
    assert said == {ANSWERS["m2"]: True, ANSWERS["m1"]: False, ANSWERS["m3"]: False}


def test_a_person_gets_their_rankings(task, voter):
    battle = rank(task, voter)
    (row,) = iter_own_battles(voter.pk)
    assert row["models"] == [battle.get_contestant(side).name for side in battle.sides]
    assert sorted(row["ranking"]) == [1, 2, 3]
    assert len(row["turns"][0]["answers"]) == 3


def test_voters_count_rankings(task, voter):
    rank(task, voter)
    rank(task, voter)
    (row,) = list_voters(task)
    assert (row.votes, row.choices["ranked"]) == (2, 2)
    assert not row.is_one_sided


def test_rankings_of_many_people_rank_the_models(task):
    for _ in range(4):
        person = get_annotator(UserFactory())
        for _ in range(3):
            rank(task, person)
    assert next(line.name for line in compute_report(task).lines) == "m1"
    strengths = {line.name: line.strength.value for line in compute_report(task).lines}
    assert sorted(strengths, key=strengths.get, reverse=True) == ["m1", "m2", "m3", "m4"]
