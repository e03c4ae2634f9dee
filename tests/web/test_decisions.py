"""Tasks in which people decide: a case, a conversation or none, the person's own final answers."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.attempts.conversation_services import take_back_turn
from annotation.models import Assignment, Conversation, Example
from annotation.refusals import NotAllowed
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tests.support.decisions import ALONE, CONFIG, open_decisions
from tests.support.writing import ok
from validation.judging.queue_services import fill_queue

pytestmark = pytest.mark.django_db
URL = "/t/triage/write/"


def read_hidden(client, name):
    page = ok(client.get(URL)).text
    return re.search(rf'name="{name}" value="([^"]*)"', page)[1]


def ask(client, text):
    sent = {"assignment": read_hidden(client, "assignment"), "say": text}
    return client.post(f"{URL}talk/", sent | {"at": read_hidden(client, "at")}, follow=True)


def decide(client, advice, **more):
    names = ("assignment", "attempt_key")
    sent = {name: read_hidden(client, name) for name in names} | {"goal": "", "advice": advice}
    return client.post(URL, sent | more, follow=True)


def test_a_person_decides_after_a_conversation():
    round, client = open_decisions()
    ask(client, "What is it?")
    ask(client, "Are you sure that this person should see somebody today?")
    page = decide(client, "doctor")
    assert 'id="verdict"' in page.text
    example = Example.objects.get()
    assert example.outcome == "no_model"
    assert example.inputs["advice"] == "doctor"
    # All turns but the model's last answer, which is its output.
    assert [turn["role"] for turn in example.inputs["talk"]] == ["user", "assistant", "user"]
    output = example.target_outputs.get()
    assert (output.output, output.fooled) == ({"reply": "Call an ambulance."}, None)
    # Neither the key nor the model's name is told, and nobody judges.
    for secret in ("scripted", 'class="votes"'):
        assert secret not in page.text
    assert fill_queue(round=round) == 0


def test_without_a_model_a_person_decides_at_once():
    round, client = open_decisions(ALONE)
    page = ok(client.get(URL)).text
    assert 'id="talk"' not in page
    decide(client, "rest")
    example = Example.objects.get()
    assert (example.outcome, example.inputs) == ("no_model", {"advice": "rest"})
    assert fill_queue(round=round) == 0


def test_nobody_decides_before_asking_or_twice():
    _round, client = open_decisions(cases=1)
    assignment = read_hidden(client, "assignment")
    sent = {"assignment": assignment, "attempt_key": "0" * 32, "goal": "", "advice": "doctor"}
    assert client.post(URL, sent).status_code == 422
    assert not Example.objects.exists()
    ask(client, "What is it?")
    decide(client, "doctor")
    sent["attempt_key"] = "1" * 32
    again = client.post(URL, sent | {"advice": "rest"})
    assert again.status_code in (409, 422, 429)
    assert Example.objects.get().inputs["advice"] == "doctor"


def test_a_decision_needs_an_answer():
    _round, client = open_decisions()
    ask(client, "What is it?")
    page = decide(client, "")
    assert page.status_code == 422
    assert not Example.objects.exists()


def test_the_same_question_may_be_asked_about_each_case():
    _round, client = open_decisions(cases=2)
    for _ in range(2):
        ask(client, "What would you recommend to somebody with these complaints today?")
        decide(client, "doctor")
        client.post("/t/triage/write/next/", {"want": "passage"})
    assert Example.objects.count() == 2


def test_what_the_model_said_stays_in_the_record():
    _round, client = open_decisions()
    page = ask(client, "What is it?").text
    assert 'name="take"' not in page
    assert 'name="want"' not in page
    with pytest.raises(NotAllowed):
        take_back_turn(assignment=Assignment.objects.get(), turn=0, keeps_text=False)
    sent = {"assignment": read_hidden(client, "assignment"), "take": "0"}
    assert client.post(f"{URL}talk/", sent).status_code == 403


def test_a_failing_model_keeps_the_turn():
    _round, client = open_decisions()
    page = ask(client, "Break").text
    assert 'id="unanswered"' in page
    ask(client, "Better now?")
    decide(client, "rest")
    assert Example.objects.count() == 1


def test_a_key_can_be_compared_with_what_is_asked():
    for config in (CONFIG, ALONE):
        load_config(json.dumps(config))
    mistakes = [
        ({"verdict": {"type": "decide", "fields": ["talk"]}}, "verdict.fields"),
        ({"verdict": {"type": "decide", "fields": ["advice", "advice"]}}, "verdict.fields"),
        ({"verdict": {"type": "decide", "fields": []}}, "verdict.fields"),
        ({"limits": {"tries_per_context": 2}}, "limits"),
        ({"goal": {"field": "advice", "text": "It is {advice}"}}, "goal.field"),
    ]
    for change, place in mistakes:
        with pytest.raises(ConfigError) as caught:
            load_config(json.dumps(CONFIG | change))
        assert place in str(caught.value)


def test_the_next_case_comes_after_a_decision_and_never_again():
    round, client = open_decisions(ALONE, cases=3)
    seen = []
    for _ in range(3):
        assignment = read_hidden(client, "assignment")
        # Neither a reload nor a request for another one skips the case.
        client.post(f"{URL}next/", {"want": "passage"})
        client.post(f"{URL}next/", {"want": "edit"})
        assert read_hidden(client, "assignment") == assignment
        decide(client, "doctor")
        seen.append(Assignment.objects.get(pk=assignment).context_id)
    assert sorted(seen) == sorted(round.contexts.values_list("pk", flat=True))
    page = ok(client.get(URL))
    assert 'name="attempt_key"' not in page.text
    assert Example.objects.count() == 3


def test_a_decision_cannot_be_withdrawn():
    _round, client = open_decisions(ALONE)
    page = decide(client, "doctor")
    assert 'id="retract"' not in page.text
    example = Example.objects.get()
    assert client.post(f"/attempt/{example.uuid}/retract/").status_code == 403
    example.refresh_from_db()
    assert example.retracted_at is None


def test_a_decision_sent_back_is_made_once_more():
    _round, client = open_decisions(ALONE, cases=1)
    decide(client, "doctor")
    example = Example.objects.get()
    first = Assignment.objects.get()
    first.left_at = timezone.now()
    first.save()
    again = Assignment.objects.create(
        annotator=first.annotator, round=first.round, context=first.context, mends=example
    )
    assert read_hidden(client, "assignment") == str(again.pk)


def test_nobody_decides_while_the_model_answers():
    _round, client = open_decisions()
    ask(client, "What is it?")
    names = ("assignment", "attempt_key")
    sent = {name: read_hidden(client, name) for name in names} | {"goal": "", "advice": "doctor"}
    # Another tab asks once more.
    conversation = Conversation.objects.get()
    conversation.said, conversation.asked_at = "And now?", timezone.now()
    conversation.save()
    assert client.post(URL, sent).status_code == 409
    assert not Example.objects.exists()
    # An answer that never came blocks nobody.
    conversation.asked_at -= timedelta(hours=1)
    conversation.save()
    decide(client, "doctor")
    assert Example.objects.count() == 1
