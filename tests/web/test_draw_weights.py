"""The chance of a battle is stored before the answers, given out, and weighted back in rankings."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from uuid import uuid4

import pytest
from django.core.cache import cache

from leaderboard.arena.battles import selectors, services
from leaderboard.arena.report import compute_report
from leaderboard.models import Battle, Comparison, Contestant
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError, dump_yaml
from tasks.models import TargetModel
from tasks.targets.circuit_breaker.breaker import FAILURES_TO_OPEN, Breaker
from tasks.targets.endpoints.base import EndpointError
from tests.support.arenas import compare, make_arena
from tests.support.battles import (
    agreed,  # noqa: F401
    battle_arena,
    fight,
    send,
    task,  # noqa: F401
    voter,  # noqa: F401
)

pytestmark = pytest.mark.django_db
MODELS = {f"m{n}": {"label": f"{n}."} for n in range(4)}
THREE = {name: MODELS[name] for name in ("m0", "m1", "m2")}


def fix_chances(monkeypatch, arena, sizes):
    """Make the chances of the pairs proportional to these sizes, by the names of the models."""
    ids = dict(arena.contestants.values_list("name", "pk"))
    total = sum(sizes.values())
    chances = {frozenset(ids[name] for name in pair): size / total for pair, size in sizes.items()}
    monkeypatch.setattr(selectors, "_find_chances", lambda task, live_ids: chances)


def test_a_battle_keeps_the_chance_with_which_it_was_drawn(monkeypatch, voter, task):
    arena = battle_arena("trio", models=THREE)
    fix_chances(monkeypatch, arena, {("m0", "m1"): 8, ("m0", "m2"): 1, ("m1", "m2"): 1})
    battle = send(arena, voter).battle
    names = {battle.left.name, battle.right.name}
    chance = 0.8 if names == {"m0", "m1"} else 0.1
    assert (battle.chance, battle.pair_count) == (pytest.approx(chance), 3)
    # What is likely later changes nothing, nor does the end of a model.
    Contestant.objects.filter(name="m2").update(is_live=False)
    fix_chances(monkeypatch, arena, {("m0", "m1"): 1})
    battle.task = arena
    services.cast_vote(battle=battle, winner="left", turns=1)
    assert Comparison.objects.get().draw_weight == pytest.approx(1 / 3 / chance)


def test_what_a_browser_sends_changes_no_chance(as_alice, task, agreed):
    form = {"battle": "", "number": 1, "key": uuid4(), "prompt": "Hello"}
    form |= {"chance": "0.001", "pair_count": 900, "drawn_pair": "1,2,0.001"}
    assert as_alice.post("/t/duel/battle/", form).status_code == 302
    assert Battle.objects.values_list("chance", "pair_count").get() == (1, 1)


def test_of_a_ranking_all_pairs_share_the_mean_chance(monkeypatch, voter, task):
    arena = battle_arena("three", models=THREE, answers=3)
    fix_chances(monkeypatch, arena, {("m0", "m1"): 8, ("m0", "m2"): 1, ("m1", "m2"): 1})
    drawn = selectors.draw_pair(arena)
    # All three models answer in any case, so there is nothing to weight.
    assert (drawn.chance, drawn.pair_count) == (pytest.approx(1 / 3), 3)


def test_with_equal_chances_nothing_is_computed(monkeypatch, voter, task):
    arena = battle_arena("equal", models=MODELS, pairs="uniform")
    monkeypatch.setattr(selectors, "_compute_chances", lambda *args: pytest.fail("computed"))
    drawn = selectors.draw_pair(arena)
    assert (drawn.chance, drawn.pair_count) == (pytest.approx(1 / 6), 6)
    fight(arena, voter)
    assert Comparison.objects.get().draw_weight == pytest.approx(1)
    assert compute_report(arena).weighted_battles == 0


def test_models_that_keep_failing_are_left_out_while_two_work(task):
    arena = battle_arena("four", models=MODELS)
    targets = list(TargetModel.objects.filter(task=arena).order_by("pk"))
    for target in targets[:2]:
        for _ in range(FAILURES_TO_OPEN):
            Breaker(cache, str(target.pk)).note_failed_call(EndpointError("", reason="down"))
    drawn = selectors.draw_pair(arena)
    assert {drawn.left, drawn.right} == {target.contestant.pk for target in targets[2:]}
    assert (drawn.chance, drawn.pair_count) == (1, 1)
    Contestant.objects.filter(target=targets[2]).update(is_live=False)
    assert selectors.draw_pair(arena).pair_count == 3


def test_weights_keep_the_shares_and_strengths_of_equal_chances(task):
    """Each vote twice with half the weight is the same ranking; plain counts are twice as many."""
    once, twice = make_arena("once"), make_arena("twice")
    rows = ("v1 a b left", "v2 b a left", "v3 a b left", "v4 b c tie", "v5 c a right")
    compare(once, *rows)
    compare(twice, *rows, *rows)
    Comparison.objects.filter(task=twice).update(draw_weight=0.5)
    first, second = compute_report(once, draws=2), compute_report(twice, draws=2)
    assert [line.strength.value for line in second.lines] == pytest.approx(
        [line.strength.value for line in first.lines], abs=1e-6
    )
    assert second.wins == pytest.approx(first.wins, nan_ok=True)
    assert second.pair_battles.tolist() == (2 * first.pair_battles).tolist()
    assert (first.weighted_battles, second.weighted_battles) == (0, 10)


def test_shares_of_wins_are_weighted(task):
    arena = make_arena("pair")
    compare(arena, "v1 a b left", "v2 a b right")
    Comparison.objects.filter(task=arena, winner="left").update(draw_weight=3)
    report = compute_report(arena, draws=2)
    assert [line.name for line in report.lines] == ["a", "b"]
    assert report.wins[0, 1] == pytest.approx(0.75)


def test_published_conversations_say_the_chance(client, task, voter, agreed):
    battle = fight(task, voter)
    Battle.objects.filter(pk=battle.pk).update(chance=0.25, pair_count=2)
    old = fight(task, voter)
    Battle.objects.filter(pk=old.pk).update(pair_count=None)
    lines = b"".join(client.get("/t/duel/conversations.jsonl").streaming_content).splitlines()
    first, second = map(json.loads, lines)
    assert (first["chance"], first["pair_count"], first["draw_weight"]) == (0.25, 2, 2)
    assert (second["pair_count"], second["draw_weight"]) == (None, 1)


def test_pages_say_how_pairs_are_drawn(client, task, voter, admin_client):
    compare(task, "v1 m1 m2 left", "v2 m1 m2 right", "v3 m2 m1 left")
    assert 'id="draws"' not in client.get("/t/duel/arena/").text
    assert admin_client.get("/own/duel/arena/").context["vote_plan"].rows
    Comparison.objects.filter(task=task).update(draw_weight=0.5)
    cache.clear()
    assert 'id="draws"' in client.get("/t/duel/arena/").text
    assert client.get("/api/v1/tasks/duel/arena/").json()["weighted_battles"] == 3


def test_the_rule_is_one_of_two(task):
    text = {"version": 1, "kind": "arena", "name": "Duel"}
    assert load_config(dump_yaml(text)).battles.pairs == "informative"
    with pytest.raises(ConfigError):
        load_config(dump_yaml({**text, "battles": {"pairs": "best"}}))
