"""Hard texts where people and models speak: conversations, battles, gold; each is stored alike."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from annotation.models import Conversation
from core.text.words import compose
from leaderboard.arena.battles.owner_services import add_gold_pair
from tests.support.battles import agreed, battle_arena, send, voter  # noqa: F401
from tests.support.hard_texts import HARD
from tests.support.talks import opened, say
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX

TEXT = "\n".join(HARD)
STORED = compose(TEXT)


@pytest.fixture
def task(db):
    return battle_arena(models={"m1": {"label": TEXT}, "m2": {"label": f" {TEXT}\r\n"}})


def test_turns_of_a_conversation(alice, db):
    opened(output={"reply": TEXT})
    ok(say(signed_in(alice), TEXT, **HTMX))
    said, answered = Conversation.objects.get().turns[-2:]
    assert (said["text"], answered["text"]) == (STORED, STORED)


def test_messages_and_answers_of_a_battle(task, voter, agreed, alice):
    turn = send(task, voter, TEXT)
    turn.refresh_from_db()
    assert turn.prompt == STORED
    assert {reply.text for reply in turn.replies.all()} == {STORED}
    pair = add_gold_pair(task=task, actor=alice, prompt=TEXT, good=TEXT, broken=f"{TEXT}!")
    pair.refresh_from_db()
    assert (pair.prompt, pair.good, pair.broken) == (STORED, STORED, f"{STORED}!")
