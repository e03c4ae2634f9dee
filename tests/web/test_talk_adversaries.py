"""Adversaries in tasks of conversations: what they say, what is said again, and what counts."""

import pytest
from django.core.cache import cache

from annotation.attempts import conversation_services, live_targets
from annotation.models import Conversation, Example, TargetOutput
from core.errors import Refused
from dynabench.adversaries import talk_services
from dynabench.adversaries.board import build_board
from dynabench.adversaries.fit import (
    check_fits,
    find_unfit_reason,
    list_fitting_kinds,
    list_lacking_kinds,
)
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.kinds.base import KINDS
from dynabench.adversaries.models import AdversaryRun, AdversaryTry
from dynabench.adversaries.services import create_adversary, start_run
from dynabench.adversaries.transfer_services import request_transfer_check
from tasks.models import TargetModel
from tests.support.adversaries import run_to_its_end, work_on
from tests.support.chat_server import chat_server
from tests.support.judged_answers import chat_target
from tests.support.talks import CONFIG, SECRET, opened
from validation.judging.queue_services import fill_queue
from validation.models import Consensus, QueueItem

pytestmark = pytest.mark.django_db
End, State = AdversaryRun.End, AdversaryTry.State
FEW = {"strategies": "questions\nroles", "topics": "", "proposals": 1, "turns": 3}


@pytest.fixture
def server(settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    with chat_server({}) as found:
        yield found


def read_field(messages, name):
    """A field of the request to the writing model."""
    text = messages[-1]["content"]
    if f"<{name}>" not in text:
        return None
    return text.split(f"<{name}>\n")[1].split(f"\n</{name}>")[0]


class Writer:
    """A writing model that says its turns in order, and judges as told.

    wrong: an answer with this in it is wrong. talks: how many conversations it has begun.
    """

    def __init__(self, *turns, wrong="1941", choice="rude"):
        self.turns, self.wrong, self.choice, self.talks = turns, wrong, choice, 0

    def __call__(self, messages):
        if read_field(messages, "question") is None:
            said = (read_field(messages, "conversation") or "").count("You: ")
            self.talks += not said
            # Each conversation begins in another way, and else it would be a copy.
            return self.turns[said] + (f" {WORDS[self.talks]}?" if not said else "")
        if "rude" in read_field(messages, "choices"):
            return self.choice
        last_answer = read_field(messages, "conversation").split("Model: ")[-1]
        return "wrong" if self.wrong in last_answer else "right"


WORDS = [f"{first}{second}" for first in "bdfg" for second in ("arn", "oat", "ull", "ent", "ick")]
TURNS = ("When", "Are you sure?", "Really?")


@pytest.fixture
def scene(server):
    """A round of conversations, and an adversary whose model writes so.

    asked: what the model to fool was asked, each time the last turn.
    """
    asked = []

    def open_scene(write=None, config=CONFIG, reply=None, values=FEW, **columns):
        round, client = opened(config)
        server.behaviours["m"] = write or Writer(*TURNS)
        writer = chat_target(round.task, server.url, model="m", price_in=2, price_out=2)
        if reply:

            def note(messages):
                asked.append(messages[-1]["content"])
                return reply(messages)

            server.behaviours["r"] = note
            model = TargetModel.objects.create(
                task=round.task, name="talker", adapter="openai_chat", url=server.url,
                options={"model": "r"},
            )  # fmt: skip
            round.round_targets.update(target=model)
        settings = KINDS["language_model"].list_settings(is_talk=True)
        adversary = create_adversary(
            task=round.task,
            actor=None,
            kind="language_model",
            name="Talker",
            options={one.name: one.default for one in settings} | values | {"model": writer.name},
            **columns,
        )
        return round, client, adversary

    open_scene.asked = asked
    return open_scene


def list_tries():
    return list(AdversaryTry.objects.order_by("pk"))


def requeue():
    """Do what the sweep does with the run of a dead worker."""
    AdversaryRun.objects.update(state="queued", lease_token=None)


def tell_secret(messages):
    """Tell the secret word at the second turn."""
    turns = sum(one["role"] == "user" for one in messages)
    secret = messages[0]["content"].split("word is ")[1].split(".")[0]
    return f"It is {secret}." if turns == 2 else "I tell nobody."


def doubt(messages):
    """Give another year at the second turn."""
    return "No: in 1941." if "sure" in messages[-1]["content"] else "It closed in 1931."


# What counts


@pytest.mark.parametrize("rule", [{}, {"marked_is_wrong": True}])
def test_what_the_adversary_calls_wrong_becomes_an_example(scene, rule):
    """The author decides there, so the adversary says that an answer is wrong, and how."""
    round, _client, adversary = scene(config=CONFIG | {"verdict": {"type": "ask_user"} | rule})
    run = run_to_its_end(adversary)
    assert (run.state, run.ended_by, run.examples) == ("done", End.FINISHED, 1)
    first, second = list_tries()
    assert (first.previous, second.previous) == (None, first)
    assert (first.state, first.is_fooled, first.reply) == ("answered", False, "It closed in 1931.")
    assert (second.state, second.is_fooled, second.reply) == ("stored", True, "No: in 1941.")
    example = Example.objects.get()
    assert second.example == example
    talk = [turn["text"] for turn in example.inputs["talk"]]
    assert talk == [first.text, first.reply, second.text]
    assert (example.outcome, example.decided_by) == ("fooled", "author")
    assert example.inputs["how"] == "rude"
    assert example.by_program
    assert TargetOutput.objects.get().output == {"reply": "No: in 1941."}
    assert not Conversation.objects.exists()
    fill_queue(round=round)
    assert QueueItem.objects.get().example == example


def test_a_secret_that_is_told_counts_by_the_rule(scene):
    """Said again, the conversation has another secret, which the example keeps."""
    _round, _client, adversary = scene(config=SECRET, reply=tell_secret)
    run = run_to_its_end(adversary)
    assert run.examples == 1
    example = Example.objects.get()
    assert example.outcome == "fooled"
    found = AdversaryTry.objects.get(example=example)
    secret = example.inputs["talk"][0]["secret"]
    assert secret in TargetOutput.objects.get().output["reply"]
    assert secret not in found.reply
    # No judgement was asked for: two turns were written, and nothing else.
    assert run.writer_calls.count() == 2


@pytest.mark.parametrize("config", [CONFIG, SECRET])
def test_what_cannot_be_repeated_is_nothing(scene, config):
    said = []

    def reply(messages):
        said.append(messages[-1]["content"])
        if len(said) > 3:
            return "I tell nobody."
        return tell_secret(messages) if config is SECRET else doubt(messages)

    _round, _client, adversary = scene(config=config, reply=reply)
    run = run_to_its_end(adversary)
    assert not Example.objects.exists()
    refused = AdversaryTry.objects.get(state=State.REFUSED)
    assert (refused.reason, refused.is_fooled) == (talk_services.NOT_REPEATED, True)
    # Two turns, the same two again, and a last turn after the remark about it.
    assert len(said) == 5
    assert run.ended_by == End.FINISHED


def test_every_call_is_counted_once(scene):
    _round, _client, adversary = scene(reply=doubt, values=FEW | {"proposals": 3})
    run = run_to_its_end(adversary)
    assert run.calls == run.writer_calls.count() + len(scene.asked)
    assert run.examples == 3
    assert len(scene.asked) == 3 * 2 + 3 * 2
    assert run.tokens >= sum(call.tokens for call in run.writer_calls.all())
    assert run.cost > 0


def test_a_wrong_field_value_is_no_claim(scene):
    _round, _client, adversary = scene(Writer(*TURNS, choice="neither of these"))
    run = run_to_its_end(adversary)
    assert run.examples == 0
    assert not AdversaryTry.objects.filter(is_fooled=True).exists()


# Interruptions


def test_a_run_killed_at_a_turn_asks_nothing_twice(scene, monkeypatch):
    _round, _client, adversary = scene(reply=doubt, values=FEW | {"proposals": 2})
    run = start_run(adversary=adversary, actor=None)
    answer, calls = live_targets.request_answers_in_time, []

    def die_at_the_second(targets, inputs, payers, seconds):
        calls.append(inputs["talk"][-1]["text"])
        if len(calls) == 2:
            raise SystemExit
        return answer(targets, inputs, payers, seconds)

    monkeypatch.setattr(live_targets, "request_answers_in_time", die_at_the_second)
    with pytest.raises(SystemExit):
        attack(run.pk)
    requeue()
    run = work_on(run)
    assert run.ended_by == End.FINISHED
    lost = AdversaryTry.objects.get(state=State.LOST)
    assert (lost.text, lost.previous) == (calls[1], list_tries()[0])
    # The first conversation can't go on with the lost turn, and the second one is a find.
    assert run.examples == 1
    digests = [one.digest for one in list_tries()]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_repetition_that_is_killed_between_turns_goes_on(scene, monkeypatch, dies):
    _round, _client, adversary = scene(reply=doubt)
    run = start_run(adversary=adversary, actor=None)
    say, turns = talk_services.say_turn, []

    def die_at_the_second(**values):
        turns.append(values["text"])
        if len(turns) == 2 and dies == "before":
            raise SystemExit
        conversation = say(**values)
        if len(turns) == 1 and dies == "after":
            raise SystemExit
        return conversation

    monkeypatch.setattr(talk_services, "say_turn", die_at_the_second)
    with pytest.raises(SystemExit):
        attack(run.pk)
    requeue()
    run = work_on(run)
    assert run.examples == 1
    # Each turn was asked about once in the search, and once in the repetition.
    assert sorted(scene.asked) == sorted(2 * [one.text for one in list_tries()])


def test_a_repetition_that_dies_while_the_model_answers_is_lost(scene, monkeypatch):
    _round, _client, adversary = scene(reply=doubt)
    run = start_run(adversary=adversary, actor=None)
    ask = conversation_services.ask_live_targets

    def die(*arguments):
        ask(*arguments).result(timeout=10)
        raise SystemExit

    monkeypatch.setattr(conversation_services, "ask_live_targets", die)
    with pytest.raises(SystemExit):
        attack(run.pk)
    monkeypatch.setattr(conversation_services, "ask_live_targets", ask)
    requeue()
    run = work_on(run)
    assert (run.examples, list_tries()[1].state) == (0, State.LOST)
    assert len(scene.asked) == 3 + 1  # the turns of the search, of which the last one is a new try


def test_a_run_that_reaches_its_calls_leaves_its_find_to_the_next(scene):
    """Two turns, each with a call of the writing model and a judgement, and what is wrong."""
    _round, _client, adversary = scene(reply=doubt, max_calls=8)
    run = run_to_its_end(adversary)
    assert (run.ended_by, run.calls, run.examples) == (End.CALLS, 8, 0)
    found = list_tries()[1]
    assert (found.state, found.reason) == (State.ANSWERED, talk_services.INTERRUPTED)


def test_a_model_that_is_away_is_asked_again_later(scene, monkeypatch):
    away = [True]

    def reply(messages):
        return 503 if away[0] and len(scene.asked) == 4 else doubt(messages)

    _round, _client, adversary = scene(reply=reply)
    run = start_run(adversary=adversary, actor=None)
    attack(run.pk)
    run.refresh_from_db()
    assert run.state == "queued"
    assert list_tries()[1].state == State.ANSWERED
    away[0] = False
    cache.clear()  # the breaker’s pause
    AdversaryRun.objects.update(not_before=None)
    assert work_on(run).examples == 1


# How bad ones end


def test_a_model_that_writes_nothing_ends_the_run(scene):
    _round, _client, adversary = scene(lambda messages: "", values=FEW | {"proposals": 50})
    assert run_to_its_end(adversary).ended_by == End.UNUSABLE
    assert not list_tries()


def test_a_flood_is_never_sent(scene):
    flood = "word " * 900
    _round, _client, adversary = scene(
        lambda messages: flood, reply=doubt, values=FEW | {"proposals": 50}
    )
    assert run_to_its_end(adversary).ended_by == End.REPEATS
    assert scene.asked == []


def test_a_closed_round_ends_the_run(scene, monkeypatch):
    round, _client, adversary = scene(reply=doubt)
    say = talk_services.say_turn

    def close(**values):
        type(round).objects.update(state="closed")
        return say(**values)

    monkeypatch.setattr(talk_services, "say_turn", close)
    assert run_to_its_end(adversary).ended_by == End.CLOSED
    assert not Example.objects.exists()


# Who can work where


def test_kinds_that_cannot_talk_say_why(scene):
    round, client, _adversary = scene()
    assert [kind.name for kind in list_fitting_kinds(round.task)] == ["language_model"]
    reasons = {kind.name: reason for kind, reason in list_lacking_kinds(round.task)}
    assert {"rules", "search", "program"} <= set(reasons)
    assert len(set(reasons.values())) == len(reasons)
    page = client.get("/own/talks/adversaries/")
    assert dict(page.context["lacking_kinds"]) == {KINDS[name]: reasons[name] for name in reasons}


SLIDER = {"name": "sure", "type": "slider", "minimum": 0, "maximum": 9}
DECISION = {"type": "decide", "fields": ["how"]}


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": DECISION, "limits": {"tries_per_context": 1}},
        {"input": [CONFIG["input"][0], SLIDER]},
    ],
)
def test_tasks_that_ask_for_more_are_refused(changes):
    round, _client = opened(CONFIG | changes)
    with pytest.raises(Refused) as refusal:
        check_fits(round.task, KINDS["language_model"])
    assert refusal.value.code == "unfit"
    assert find_unfit_reason(round.task)
    assert list_fitting_kinds(round.task) == list_lacking_kinds(round.task) == []


# What people see of it


def test_the_board_counts_conversations_as_tries(scene):
    round, _client, adversary = scene(reply=doubt, values=FEW | {"proposals": 10})
    run = run_to_its_end(adversary)
    for number, example in enumerate(Example.objects.order_by("pk")):
        Consensus.objects.create(
            example=example, round=round, state="decided", votes=1, still_needed=0,
            verdict="incorrect" if number % 2 else "correct",
            is_verified=bool(number % 2), is_validated_error=bool(number % 2),
        )  # fmt: skip
    row, people = build_board(round.task)
    assert (row.tries, row.catches, row.refuted) == (10, 5, 5)
    assert row.calls == run.calls
    assert row.validity.value == 0.5
    assert row.pass_chance.value == pytest.approx(1.0)
    assert row.cost_per_catch.value == pytest.approx(run.cost / 5)
    assert people.calls == 0
    # Of people each turn is a call, as of adversaries.
    Example.objects.update(by_program=False)
    assert build_board(round.task)[1].calls == 20


def test_no_other_model_is_asked_where_only_people_can_tell(scene):
    round, _client, adversary = scene()
    run_to_its_end(adversary)
    with pytest.raises(Refused) as refusal:
        request_transfer_check(task=round.task, actor=round.task.members.get().user)
    assert refusal.value.code == "unfit"


def test_the_page_and_the_api_show_each_turn(scene):
    _round, client, adversary = scene()
    run_to_its_end(adversary)
    page = client.get(f"/own/talks/adversaries/{adversary.pk}/")
    assert [one.reply for one in page.context["page"].rows] == [
        "No: in 1941.",
        "It closed in 1931.",
    ]
    rows = client.get(f"/api/v1/tasks/talks/adversaries/{adversary.pk}/tries/").json()["results"]
    assert [row["previous"] for row in rows] == [rows[1]["id"], None]


def test_the_form_has_words_and_defaults_for_conversations(scene):
    _round, client, adversary = scene()
    form = client.get("/own/talks/adversaries/new/language_model/").context["options_form"]
    goal = form["goal"].value()
    assert "{goal}" in goal
    shown = client.get(f"/own/talks/adversaries/{adversary.pk}/").context["options"]
    assert {setting.name: value for setting, value in shown}["goal"] == goal
