"""Suggestions: a generator's text, used, edited or ignored; one that fails loses nothing."""

import re
from threading import Event

import pytest
from django.db import connection

from annotation.aids import suggestions
from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt, Example, Suggestion
from core.accounts.services import get_annotator
from tasks.models import Round
from tasks.targets.circuit_breaker import breaker
from tasks.targets.connect import get_generator_endpoint
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.scripted import ScriptedEndpoint
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.writing import open_form
from tests.support.writing_aids import MUSE, allow, generator
from tests.web.conftest import HTMX

URL = "/t/nli/write/support/"


@pytest.fixture
def muse(nli):
    allow(nli.task)
    scripted_target(nli, label="entailment", prob=None)
    return generator(nli.task)


def want(client, what, text="Half a text", **headers):
    form = open_form(client, text=text) | {"want": what}
    return client.post(URL, form, follow=not headers, **headers)


@pytest.fixture(params=[{}, HTMX], ids=["page", "htmx"])
def headers(request):
    return request.param


def test_a_suggestion_is_shown_with_its_source_and_three_answers(as_alice, muse, headers):
    assert 'value="suggestion"' in as_alice.get("/t/nli/write/").text
    response = want(as_alice, "suggestion", **headers)
    assert response.status_code == 200
    assert 'id="suggestion"' in response.text
    assert MUSE in response.text
    assert "model muse" in response.text
    for name in ("use", "edit", "ignore"):
        assert f'name="want" value="{name}"' in response.text
    assert "Half a text</textarea>" in as_alice.get("/t/nli/write/").text
    kept = Suggestion.objects.get()
    assert (kept.text, kept.source, kept.action) == (MUSE, "muse", "")
    assert kept.fingerprint == {"digest": "scripted"}


@pytest.mark.parametrize("action", ["use", "edit"])
def test_a_text_that_is_taken_stands_in_the_form(as_alice, muse, headers, action):
    want(as_alice, "suggestion", **headers)
    response = want(as_alice, action, **headers)
    assert f">\n{MUSE}</textarea>" in response.text
    assert 'id="suggestion"' not in response.text
    box = re.search(r"<textarea[^>]*>", response.text)[0]
    assert ("autofocus" in box) == (action == "edit")
    button = re.search(r'<button id="submit"[^>]*>', response.text)[0]
    assert ("autofocus" in button) == (action == "use")
    assert Suggestion.objects.get().action == action


def test_a_text_that_is_ignored_changes_nothing(as_alice, muse, headers):
    want(as_alice, "suggestion", **headers)
    response = want(as_alice, "ignore", text="My very own text", **headers)
    assert 'id="suggestion-ignored"' in response.text
    assert MUSE not in response.text
    assert "My very own text</textarea>" in as_alice.get("/t/nli/write/").text
    assert Suggestion.objects.get().action == "ignore"


SENT = {
    "used": ("use", MUSE, "use"),
    "used and changed": ("use", "A muse had written this, once.", "edit"),
    "edited": ("edit", "A muse has written that.", "edit"),
    "edited, not at all": ("edit", f" {MUSE}", "use"),
    "ignored": ("ignore", "I wrote this myself.", "ignore"),
    "no answer": (None, "I wrote this myself.", "ignore"),
    "copied by hand": (None, MUSE, "use"),
}


@pytest.mark.parametrize("case", SENT)
def test_what_became_of_it_is_kept_with_what_was_sent(as_alice, muse, case):
    pressed, text, action = SENT[case]
    want(as_alice, "suggestion")
    if pressed:
        want(as_alice, pressed)
    Assignment.objects.update(challenge=None)
    as_alice.post("/t/nli/write/", open_form(as_alice, text=text), **HTMX)
    support = {"suggestion": action, "suggested_by": "muse"}
    assert Example.objects.get().support == Attempt.objects.get().support == support


def test_without_a_suggestion_nothing_is_kept(as_alice, muse):
    Assignment.objects.update(challenge=None)
    form = open_form(as_alice)
    Assignment.objects.update(challenge=None)
    as_alice.post("/t/nli/write/", form, **HTMX)
    assert Example.objects.get().support is None
    assert want(as_alice, "use").status_code == 200  # there is none to use


@pytest.mark.parametrize(
    "options",
    [
        {"fail": "down"},
        {"fail": "refused"},
        {"fail": "slow"},
        {"fail": "busy"},
        {"output": {"hypothesis": 7}},
        {"output": {"hypothesis": " "}},
        {"output": {"hypothesis": "x" * 5000}},
        {"output": {"other": "x"}},
    ],
    ids=str,
)
def test_a_generator_that_fails_loses_nothing(as_alice, muse, headers, options):
    muse.options = options
    muse.save()
    response = want(as_alice, "suggestion", **headers)
    assert response.status_code == 503
    assert "autofocus>No suggestion<" in response.text
    assert not Suggestion.objects.exists()
    assert "Half a text</textarea>" in as_alice.get("/t/nli/write/").text
    response = as_alice.post("/t/nli/write/", open_form(as_alice), **HTMX)
    assert response.status_code == 200
    assert Example.objects.count() == 1


@pytest.mark.parametrize(("reason", "stored"), [("misconfigured", True), ("busy", False)])
def test_what_only_its_owners_can_mend_is_stored_with_the_generator(as_alice, muse, reason, stored):
    muse.options = {"fail": reason}
    muse.save()
    assert want(as_alice, "suggestion", **HTMX).status_code == 503
    muse.refresh_from_db()
    assert muse.contact_reason == (reason if stored else "")
    assert bool(muse.contact_detail) is stored


def test_a_task_whose_generator_is_not_set_up_says_so_calmly(as_alice, muse):
    muse.delete()
    assert want(as_alice, "suggestion", **HTMX).status_code == 503


def test_a_slow_generator_is_not_waited_for(as_alice, muse, monkeypatch):
    counted, count = Event(), breaker.Breaker.note_failed_call

    def failed(self, error):
        count(self, error)
        counted.set()

    monkeypatch.setattr(breaker.Breaker, "note_failed_call", failed)
    monkeypatch.setattr(suggestions, "SUGGEST_SECONDS", 0.05)
    muse.options = {**muse.options, "delay": 30}
    muse.save()
    response = want(as_alice, "suggestion", **HTMX)
    assert response.status_code == 503
    assert counted.wait(60)  # or it counts for the generator of the next test


def test_after_three_failures_a_generator_is_left_alone(as_alice, muse, monkeypatch):
    asked = []
    ask = ScriptedEndpoint.predict

    def counted(self, batch, *, deadline_seconds):
        asked.append(batch)
        return ask(self, batch, deadline_seconds=deadline_seconds)

    monkeypatch.setattr(ScriptedEndpoint, "predict", counted)
    monkeypatch.setattr(breaker, "FIRST_PAUSE_SECONDS", 60)
    muse.options = {"fail": "down"}
    muse.save()
    answers = [want(as_alice, "suggestion", **HTMX).status_code for _ in range(5)]
    assert answers == [503] * 5
    assert len(asked) == 3


def test_it_is_asked_outside_of_any_transaction_for_context_and_goal_alone(
    client, transactional_db, monkeypatch
):
    round = RoundFactory(task=TaskFactory(code="sentiment"))
    ContextFactory(round=round, fields={"prompt": "The soup was warm.", "other": "x"})
    allow(round.task)
    asked = generator(round.task)
    seen = []

    def generate(one, inputs):
        seen.append((one, inputs, connection.in_atomic_block))
        raise EndpointError("no", reason="down")

    monkeypatch.setattr(suggestions, "request_generated_text", generate)
    client.force_login(UserFactory())
    form = open_form(client, "/t/sentiment/write/") | {"want": "suggestion"}
    Assignment.objects.update(goal="negative")
    client.post("/t/sentiment/write/support/", form)
    ((one, inputs, in_transaction),) = seen
    assert (one, in_transaction) == (asked, False)
    endpoint = get_generator_endpoint(one)
    sent = endpoint._config.select_fields(inputs)
    goal = round.task.config.goal.text.replace("{label}", "negative")
    assert sent == {"prompt": "The soup was warm.", "goal": goal}


def test_three_for_a_passage_and_as_many_a_day_as_tries(as_alice, alice, nli, muse):
    answers = [want(as_alice, "suggestion", **HTMX) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429]
    assert "your 3 suggestions" in answers[-1].text
    as_alice.post("/t/nli/write/next/", {"want": "passage"})
    assert want(as_alice, "suggestion", **HTMX).status_code == 200
    nli.task.config_text += "\n"
    nli.task.config_text = nli.task.config_text.replace("tries_per_day: 50", "tries_per_day: 4")
    nli.task.save()
    assert "today's suggestions" in want(as_alice, "suggestion", **HTMX).text.replace("&#x27;", "'")


def test_a_closed_round_asks_nobody(as_alice, alice, nli, muse):
    form = open_form(as_alice)
    Round.objects.update(state="closed")
    response = as_alice.post(URL, form | {"want": "suggestion"}, **HTMX)
    assert response.status_code == 410
    assert not Suggestion.objects.exists()


def test_nothing_of_it_where_the_task_does_not_allow_it(as_alice, nli):
    generator(nli.task)
    scripted_target(nli, label="entailment", prob=None)
    assert 'value="suggestion"' not in as_alice.get("/t/nli/write/").text
    for what in ("suggestion", "use", "edit", "ignore"):
        assert want(as_alice, what, **HTMX).status_code == 404


def test_in_a_sensitive_task_it_is_shielded(as_alice, hate):
    allow(hate.task)
    generator(hate.task)
    as_alice.post("/t/hate-speech/gate/")
    form = open_form(as_alice, "/t/hate-speech/write/") | {"want": "suggestion"}
    found = as_alice.post("/t/hate-speech/write/support/", form, **HTMX).text
    assert MUSE in found
    assert MUSE not in re.sub(r'<details class="shield">.*?</details>', "", found, flags=re.S)


def test_the_limits_hold_for_the_task_alone(alice, nli, muse):
    assignment = assign(annotator=get_annotator(alice), round=nli)
    for _ in range(suggestions.MAX_PER_PASSAGE):
        suggestions.create_suggestion(assignment)
    assert {one.text for one in assignment.suggestions.all()} == {MUSE}
