"""Published conversations as JSON lines. Their writers have agreed, and their ids are left out."""

import hmac
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.models import PseudonymKey
from leaderboard.arena.battles.weights import compute_draw_weight
from leaderboard.models import Battle, Reply, Turn
from tasks.models import Task

CHUNK_CONVERSATIONS = 200


def iter_released_rows(task: Task, *, with_setup: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each published conversation, reading CHUNK_CONVERSATIONS at a time.

    with_setup: include the models' adapters and options, with their prompts; for members only.
    Creates the task's key for pseudonyms if it is missing.
    """
    key, _created = PseudonymKey.objects.get_or_create(task=task)
    # Ordered and cut by id, so that each chunk is one lookup in an index.
    rows = Battle.objects.filter(task=task, release=Battle.Release.RELEASED).order_by("pk")
    rows = rows.select_related("left", "right").prefetch_related(
        "turns__replies__version", "extra_sides__contestant"
    )
    last_pk = 0
    while chunk := list(rows.filter(pk__gt=last_pk)[:CHUNK_CONVERSATIONS]):
        for battle in chunk:
            # Keyed, so that nobody can compute it from ids; one person has one hash per task.
            voter = f"voter:{battle.voter_id}".encode()
            pseudonym = hmac.digest(bytes.fromhex(key.key), voter, "sha256").hex()[:20]
            yield {**_build_row(battle, with_setup), "voter": pseudonym}
        last_pk = chunk[-1].pk


def _build_row(battle: Battle, with_setup: bool) -> Mapping[str, Any]:
    models: Mapping[str, Any] = {
        "left": battle.get_contestant("left").name,
        "right": battle.get_contestant("right").name,
        "winner": battle.winner,
    }
    # A ranking has lists instead of two sides, in the order of the page.
    if battle.ranking:
        models = {
            "models": [battle.get_contestant(side).name for side in battle.sides],
            "ranking": [battle.ranking[side] for side in battle.sides],
        }
    build_turn = _build_ranked_turn if battle.ranking else _build_turn
    return {
        "id": str(battle.uuid),
        "day": battle.began_at.date().isoformat(),
        **models,
        "names_itself": battle.names_itself,
        "chance": battle.chance,
        "pair_count": battle.pair_count,
        "draw_weight": compute_draw_weight(battle.chance, battle.pair_count),
        "consent_version": battle.consent_version,
        "turns": [build_turn(turn, with_setup) for turn in _select_finished_turns(battle)],
    }


def _select_finished_turns(battle: Battle) -> list[Turn]:
    return [turn for turn in battle.turns.all() if turn.state == Turn.State.DONE]


def _build_turn(turn: Turn, with_setup: bool) -> Mapping[str, Any]:
    row: dict[str, Any] = {"prompt": turn.prompt}
    for reply in turn.replies.all():  # left, then right
        row[reply.side] = _build_answer(reply, with_setup)
    return row


def _build_ranked_turn(turn: Turn, with_setup: bool) -> Mapping[str, Any]:
    answers = [_build_answer(reply, with_setup) for reply in turn.replies.all()]
    return {"prompt": turn.prompt, "answers": answers}


def _build_answer(reply: Reply, with_setup: bool) -> Mapping[str, Any]:
    version = reply.version.digest if reply.version else None
    answer = {"text": reply.text, "version": version}
    if with_setup:
        answer["setup"] = reply.setup
    return answer


def iter_own_battles(voter_id: int) -> Iterator[Mapping[str, Any]]:
    """Yield a person's battles for the export of their own data.

    Models are named only after the vote. Gold pairs are not marked, as in the battle itself.
    """
    rows = Battle.objects.filter(voter=voter_id).order_by("pk")
    rows = rows.select_related("task", "left", "right").prefetch_related(
        "turns__replies", "extra_sides__contestant"
    )
    last_pk = 0
    while chunk := list(rows.filter(pk__gt=last_pk)[:CHUNK_CONVERSATIONS]):
        yield from map(_build_own_battle, chunk)
        last_pk = chunk[-1].pk


def _build_own_battle(battle: Battle) -> Mapping[str, Any]:
    models = None
    if battle.winner and battle.gold_id is None:
        models = [battle.get_contestant(side).name for side in battle.sides]
    turns = []
    for turn in battle.turns.all():
        answers = [reply.text for reply in turn.replies.all()]
        turns.append({"prompt": turn.prompt, "answers": answers})
    return {
        "uuid": battle.uuid,
        "task_code": battle.task.code,
        "began_at": battle.began_at,
        "ended_at": battle.ended_at,
        "winner": battle.winner,
        "ranking": battle.ranking and [battle.ranking[side] for side in battle.sides],
        "models": models,
        "release": battle.release,
        "turns": turns,
    }
