"""“Try to fool it”: one model, in practice; nothing is stored."""

import pytest
from django.template.loader import render_to_string
from django.test import Client

from annotation.models import Assignment, Attempt, Example, TargetOutput
from annotation.writing.result_panel import Probability, TargetAnswer, format_probability
from evaluation.models import Submission
from evaluation.runs.services import ensure_target_submissions
from tasks.models import RoundTarget, TargetFailure
from tests.support.evaluations import accepted_model
from tests.support.factories import scripted_target
from tests.support.submissions import url_of
from tests.support.writing import ok
from tests.web.conftest import HTMX

FORM = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "assignment": "0"}
FREE = """
version: 1
name: Free
goal: {text: Ask a question that the model answers wrongly}
examples: {good: [{context: {passage: The bus stops.}, input: {question: Where}, reason: Good.}]}
context: [{name: passage, type: text, label: Passage}]
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
verdict: {type: ask_user}
metrics: {main: squad_f1}
"""
SAID = "It stops at Lund Bridge."
KEPT = (Assignment, Attempt, Example, TargetOutput, TargetFailure)


@pytest.fixture
def model(nli):
    """A target of no round, which anybody may try."""
    target = scripted_target(nli, "alone", label="contradiction", prob={"contradiction": 1.0})
    scripted_target(nli, "other", label="neutral")
    RoundTarget.objects.filter(target=target).delete()
    return next(one for one in ensure_target_submissions(nli.task) if one.target == target)


def form(page, **fields):
    shown = page.context["form"]
    goal = shown.initial["goal"]
    return FORM | {"assignment": shown.initial["assignment"], "goal": goal} | fields


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_anybody_writes_against_one_model_and_nothing_is_stored(model, headers):
    client = Client()
    assert f'href="{url_of(model, "try/")}"' in ok(client.get(url_of(model))).text
    page = ok(client.get(url_of(model, "try/")))
    assert "alone" in page.text
    assert f'action="{url_of(model, "try/")}"' in page.text
    sent = form(page, hypothesis="The shop was open at ten.")
    said = ok(client.post(url_of(model, "try/"), sent, **headers))
    assert 'id="verdict"' in said.text
    assert [answer.name for answer in said.context["answers"]] == ["alone"]
    assert not any(kind.objects.exists() for kind in KEPT)


def test_a_bad_form_keeps_what_was_typed(model, as_alice):
    page = ok(as_alice.get(url_of(model, "try/")))
    refused = as_alice.post(url_of(model, "try/"), form(page, hypothesis=""))
    assert refused.status_code == 422
    assert f'action="{url_of(model, "try/")}"' in refused.text
    stale = form(page, hypothesis="Some text.") | {"assignment": "99"}
    assert as_alice.post(url_of(model, "try/"), stale).status_code == 404


def test_a_model_that_fails_is_told_and_nothing_is_noted(model, as_alice):
    model.target.options = {"fail": "down"}
    model.target.save()
    page = ok(as_alice.get(url_of(model, "try/")))
    failed = as_alice.post(url_of(model, "try/"), form(page, hypothesis="It was open."), **HTMX)
    assert failed.status_code == 503
    assert 'id="failed"' in failed.text
    assert not any(kind.objects.exists() for kind in KEPT)


def test_free_answers_are_seen(nli, as_alice):
    nli.task.config_text = FREE
    nli.task.save()
    scripted_target(nli, "writer", output={"reply": SAID})
    (model,) = ensure_target_submissions(nli.task)
    page = ok(as_alice.get(url_of(model, "try/")))
    said = as_alice.post(url_of(model, "try/"), form(page, question="Where does it go?"), **HTMX)
    assert SAID in said.text


@pytest.mark.parametrize("state", ["imported", "withdrawn", "closed", "predictions", "hidden"])
def test_what_cannot_be_asked_has_no_such_page(model, state, as_alice):
    if state == "imported":
        model.target.adapter = "imported"
        model.target.save()
    elif state == "withdrawn":
        Submission.objects.filter(pk=model.pk).update(withdrawn_at="2026-01-01T00:00Z")
    elif state == "predictions":
        model = accepted_model(model.task, kind="predictions", is_published=True)
    elif state == "hidden":
        Submission.objects.filter(pk=model.pk).update(is_published=False)
    else:
        model.task.allow_try_out = False
        model.task.save()
    assert as_alice.get(url_of(model, "try/")).status_code == 404
    if state != "hidden":
        assert 'id="try-to-fool"' not in ok(as_alice.get(url_of(model))).text


def test_the_five_likeliest_labels_are_shown_and_the_rest_folded():
    rows = [Probability(f"label {n}", "1%", 1.0, False, ()) for n in range(21)]
    for shown in (rows, rows[:5]):
        answer = TargetAnswer("alone", "", "", None, None, shown, ())
        page = render_to_string("annotation/result/_answer.html", {"answer": answer})
        first, _, folded = page.partition("<details>")
        assert (first.count('scope="row"'), folded.count('scope="row"')) == (5, len(shown) - 5)


def test_an_endpoint_of_somebody_is_asked(nli, as_alice, monkeypatch):
    model = accepted_model(
        nli.task, kind="endpoint", adapter="jsonl", source="http://127.0.0.1:1/", is_published=True
    )
    page = ok(as_alice.get(url_of(model, "try/")))
    assert "mine" in page.text
    sent = form(page, hypothesis="It was open.")
    assert as_alice.post(url_of(model, "try/"), sent).status_code in (500, 502, 503)


@pytest.mark.parametrize(
    ("chance", "words"),
    [(1.0, ">99%"), (0.9951, ">99%"), (0.99, "99%"), (0.5, "50%"), (0.01, "1%"), (0.0, "<1%")],
)
def test_no_model_is_said_to_be_certain(chance, words):
    assert format_probability(chance, "full") == words
    assert format_probability(chance, "hidden") == ""
