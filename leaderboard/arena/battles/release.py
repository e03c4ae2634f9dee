"""Published conversations as JSON lines: those whose writers agreed, without their ids."""

import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.models import PseudonymKey
from leaderboard.models import SIDES, Battle, Turn
from tasks.models import Task

CHUNK_CONVERSATIONS = 200


def iter_released_lines(task: Task, *, with_setup: bool) -> Iterator[str]:
    """Yield a JSON line per published conversation, reading CHUNK conversations at a time.

    with_setup: include adapter and options of the models, with their prompts; for members only.
    """
    key, _created = PseudonymKey.objects.get_or_create(task=task)
    # Ordered and cut by id, so that each chunk is one lookup in an index.
    rows = Battle.objects.filter(task=task, release=Battle.Release.RELEASED).order_by("pk")
    rows = rows.select_related("left", "right").prefetch_related("turns__replies__version")
    last_pk = 0
    while chunk := list(rows.filter(pk__gt=last_pk)[:CHUNK_CONVERSATIONS]):
        for battle in chunk:
            # Keyed, so that nobody can compute it from ids; the same person has one in a task.
            voter = f"voter:{battle.voter_id}".encode()
            pseudonym = hmac.digest(bytes.fromhex(key.key), voter, "sha256").hex()[:20]
            row = {**_build_row(battle, with_setup), "voter": pseudonym}
            yield json.dumps(row, ensure_ascii=False) + "\n"
        last_pk = chunk[-1].pk


def _build_row(battle: Battle, with_setup: bool) -> Mapping[str, Any]:
    return {
        "id": str(battle.uuid),
        "day": battle.began_at.date().isoformat(),
        "left": battle.contestant("left").name,
        "right": battle.contestant("right").name,
        "winner": battle.winner,
        "names_itself": battle.names_itself,
        "consent_version": battle.consent_version,
        "turns": [_build_turn(turn, with_setup) for turn in _select_finished_turns(battle)],
    }


def _select_finished_turns(battle: Battle) -> list[Turn]:
    return [turn for turn in battle.turns.all() if turn.state == Turn.State.DONE]


def _build_turn(turn: Turn, with_setup: bool) -> Mapping[str, Any]:
    row: dict[str, Any] = {"prompt": turn.prompt}
    for reply in turn.replies.all():  # left, then right
        version = reply.version.digest if reply.version else None
        row[reply.side] = {"text": reply.text, "version": version}
        if with_setup:
            row[reply.side]["setup"] = reply.setup
    return row


def iter_own_battles(voter_id: int) -> Iterator[Mapping[str, Any]]:
    """Yield a person's battles for the export of their own data.

    Models are named only after the vote. Gold pairs are not marked, as in the battle itself.
    """
    rows = Battle.objects.filter(voter=voter_id).order_by("pk")
    rows = rows.select_related("task", "left", "right").prefetch_related("turns__replies")
    last_pk = 0
    while chunk := list(rows.filter(pk__gt=last_pk)[:CHUNK_CONVERSATIONS]):
        yield from map(_build_own_battle, chunk)
        last_pk = chunk[-1].pk


def _build_own_battle(battle: Battle) -> Mapping[str, Any]:
    models = None
    if battle.winner and battle.gold_id is None:
        models = [battle.contestant(side).name for side in SIDES]
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
        "models": models,
        "release": battle.release,
        "turns": turns,
    }
