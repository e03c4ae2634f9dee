"""Conversations as gold items, as history that is imported, and as contexts of a file."""

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from tasks.models import Round, TaskMember
from tests.support.factories import UserFactory
from tests.support.gold_items import always  # noqa: F401
from tests.support.talks import hidden, opened, released, say
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.judging import gold
from validation.models import GoldAnswer

URL = "/t/talks/write/"


@pytest.fixture
def talks(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return opened()


def wrote(client, text):
    """An example whose answer its author calls wrong."""
    ok(say(client, text, **HTMX))
    sent = {name: hidden(client, name) for name in ("attempt_key", "assignment")}
    ok(client.post(URL, {**sent, "goal": "", "talk": 1, "how": "wrong"}, **HTMX))
    example = Example.objects.latest("pk")
    ok(client.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"}, **HTMX))
    return example


@pytest.mark.usefixtures("always")
def test_a_conversation_is_gold(talks, alice, bob):
    round, _ = talks
    owner = TaskMember.objects.get(task=round.task).user
    client, judge = signed_in(alice), signed_in(bob)
    known = wrote(signed_in(UserFactory()), "When did the old mill close its doors?")
    override_consensus(example=known, owner=owner, choice=Vote(verdict="incorrect"))
    item = gold.mark_gold(example=known, owner=owner, explanation="The passage says 1931.")
    wrote(client, "Who was the last miller there, and what became of her?")
    wrote(client, "Which river drove the wheel before the war came?")
    for is_gold in (False, True):
        page = ok(judge.get("/t/talks/judge/")).text
        shown = Example.objects.get(uuid=re.search(r'name="example" value="([^"]*)"', page)[1])
        assert (shown == known) is is_gold
        assert f"User: {shown.inputs['talk'][0]['text']}" in page
        sent = {"example": shown.uuid, "answer": "verdict:incorrect"}
        ok(judge.post("/t/talks/judge/", sent, **HTMX))
    answer = GoldAnswer.objects.get()
    assert (answer.gold, answer.verdict, answer.is_correct) == (item, "incorrect", True)


def row(**changes):
    turns = [
        {"role": "user", "text": "When did it close?"},
        {"role": "assistant", "text": "In 1931."},
        {"role": "user", "text": "Are you sure?"},
    ]
    return {
        "task": "talks", "round": 0, "uid": "u1", "context": {"passage": "It closed in 1931."},
        "input": {"talk": turns, "how": "wrong"}, "author": "w0", "author_label": None,
        "model_prediction": {"model": "m0", "label": "No: in 1941.", "probs": None},
        "model_wrong": None, "metadata": {},
        "validations": [{"worker": w, "verdict": "incorrect"} for w in ("w1", "w2", "w3")],
        **changes,
    }  # fmt: skip


def imported(path, *rows):
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    err = StringIO()
    try:
        call_command("import_examples", str(path), "--task", "talks", stdout=StringIO(), stderr=err)
    finally:
        print(err.getvalue())


def test_history_with_conversations_comes_in_and_is_released(talks, tmp_path):
    imported(tmp_path / "rows.jsonl", row())
    example = Example.objects.get()
    assert example.inputs["talk"] == row()["input"]["talk"]
    assert example.target_outputs.get().output == {"reply": "No: in 1941."}
    found, _card = released(Round.objects.get(number=0))
    assert json.loads(found["input_json"])["talk"] == row()["input"]["talk"]


@pytest.mark.parametrize(
    "talk",
    [
        "When?",
        [{"role": "owl", "text": "Hoo"}],
        [{"role": "user"}],
        [{"role": "user", "text": "When?"}] * 400,
    ],
    ids=["no list", "no role", "no text", "400 turns"],
)
def test_history_that_is_no_conversation_is_refused_by_line(talks, tmp_path, talk, capsys):
    with pytest.raises(CommandError):
        imported(
            tmp_path / "rows.jsonl", row(), row(uid="u2", input={"talk": talk, "how": "wrong"})
        )
    assert "rows.jsonl:2: input.talk" in capsys.readouterr().out
    assert not Example.objects.exists()
