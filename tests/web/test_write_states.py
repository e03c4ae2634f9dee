"""What the write page offers where no round is open, and practice with an unchanged text."""

import pytest
from django.test import Client

from core.accounts.services import get_annotator
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import write
from tests.support.writing import ok
from tests.web.conftest import HTMX
from validation.judging.queue_services import fill_queue


@pytest.fixture
def closed(nli):
    nli.state = "closed"
    nli.save()
    return nli


def test_judging_is_offered_only_where_an_example_waits(closed, as_alice):
    judge = 'href="/t/nli/judge/"'
    page = ok(as_alice.get("/t/nli/write/"))
    offers = page.text.partition('id="work"')[2]
    assert judge not in offers
    assert 'id="follow"' in offers
    write(closed, UserFactory())
    fill_queue(round=closed)
    page = ok(as_alice.get("/t/nli/write/"))
    assert page.context["to_judge"] == 1
    assert judge in page.text.partition('id="work"')[2]


def test_writing_is_offered_only_while_a_round_is_open(nli, as_alice):
    def offers():
        return ok(as_alice.get("/t/nli/judge/")).text.partition('id="work"')[2]

    assert 'id="nothing-to-judge"' in offers()
    assert 'href="/t/nli/write/"' in offers()
    nli.state = "closed"
    nli.save()
    assert 'href="/t/nli/write/"' not in offers()


def test_other_queues_are_listed_with_their_counts(nli, qa, as_alice):
    span = {"text": "1850", "start": 0, "end": 4}
    for number in range(2):
        write(qa, UserFactory(), number, question=f"When {number}?", answer=span)
    fill_queue(round=qa)
    page = ok(as_alice.get("/t/nli/judge/"))
    assert page.context["other_queues"] == [(qa.task, 2)]
    assert 'href="/t/qa/judge/"' in page.text


def test_other_tasks_are_listed_before_their_examples_are_queued(nli, qa, as_alice, alice):
    span = {"text": "1850", "start": 0, "end": 4}
    write(qa, UserFactory(), question="When?", answer=span)
    page = ok(as_alice.get("/t/nli/judge/"))
    assert page.context["other_queues"] == [(qa.task, 1)]
    qa.examples.update(annotator=get_annotator(alice))
    assert ok(as_alice.get("/t/nli/judge/")).context["other_queues"] == []


def test_one_does_not_judge_ones_own(closed, as_alice, alice):
    write(closed, alice)
    fill_queue(round=closed)
    assert ok(as_alice.get("/t/nli/write/")).context["to_judge"] == 0


def test_a_try_out_is_filled_with_a_good_example_by_a_link(sentiment):
    scripted_target(sentiment, label="neutral", prob={"neutral": 1.0})
    client, config = Client(), sentiment.task.config
    fillers = ok(client.get("/t/sentiment/try/")).context["work"].fillers
    assert len(fillers) == 3
    for filler, example in zip(fillers, config.examples.good, strict=True):
        page = ok(client.get(filler.url))
        assert filler.label == example.tactic
        assert page.context["work"].goal == example.input["label"]
        assert page.context["work"].context.fields == example.context
        assert example.input["text"] in page.context["form"].as_p()
    for wrong in ("9", "-1", "x", ""):
        ok(client.get("/t/sentiment/try/", {"example": wrong}))


def test_texts_that_may_hurt_fill_no_form(hate):
    scripted_target(hate)
    client = Client()
    client.post("/t/hate-speech/gate/?for=try")
    page = ok(client.get("/t/hate-speech/try/", {"example": "0"}))
    assert page.context["work"].fillers == []
    assert page.context["work"].start_values == {}


def test_in_practice_the_model_answers_the_given_text_without_a_verdict(sentiment):
    scripted_target(sentiment, label="neutral", prob={"neutral": 1.0})
    client = Client()
    page = ok(client.get("/t/sentiment/try/"))
    form = page.context["form"]
    text_field = page.context["work"].text_field
    sent = {
        "attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10",
        "assignment": form.initial["assignment"],
        "goal": form.initial["goal"],
    }
    given = page.context["work"].text_to_change
    lesson = ok(client.post("/t/sentiment/try/", sent | {text_field: given}, **HTMX))
    assert 'id="unchanged"' in lesson.text
    assert lesson.context["kept"] == ""
    assert 'class="verdict "' in lesson.text
    changed = ok(client.post("/t/sentiment/try/", sent | {text_field: f"{given} Or not."}, **HTMX))
    assert 'id="unchanged"' not in changed.text
    assert 'class="verdict "' not in changed.text
