"""A text that is nearly the same: refused, chained or noted; and what typing looked like."""

import pytest

from annotation.attempts.services import begin_attempt, retract_example
from annotation.models import Assignment, Attempt, Example, TextKey
from core.accounts.services import get_annotator
from tests.support.factories import UserFactory
from tests.support.writing import URL, open_form
from tests.web.conftest import HTMX
from validation.statistics.people import list_author_statistics

TEXT = "The old shop by the river was open at ten on every day of the year."
NEARLY = "The old shop by the river was OPEN at ten, on every day of the year!"
OTHER = "Nobody has ever seen the keeper of the lighthouse without his brown hat."


def send(client, text, **more):
    """Submit a text to the context that is open now."""
    return client.post(URL, open_form(client, text=text, **more), **HTMX)


def another_passage(client):
    client.post("/t/nli/write/next/", {"want": "passage"}, **HTMX)


@pytest.fixture
def sent(as_alice, nli):
    assert send(as_alice, TEXT).status_code == 200
    return Example.objects.get()


def test_an_own_text_on_another_passage_is_refused(as_alice, sent):
    another_passage(as_alice)
    response = send(as_alice, NEARLY)
    assert response.status_code == 422
    day = f"{sent.created_at.day} {sent.created_at:%b}"
    assert 'data-code="duplicate"' in response.text
    assert day in response.text
    assert str(sent.uuid) in response.text
    assert Example.objects.count() == Attempt.objects.count() == 1
    assert send(as_alice, OTHER).status_code == 200


def test_on_the_same_passage_it_is_an_edit(as_alice, sent):
    assert send(as_alice, NEARLY + " Yes").status_code == 200
    assert Example.objects.latest("pk").parent == sent


def test_a_retracted_text_may_be_written_again(as_alice, sent):
    retract_example(example=sent)
    another_passage(as_alice)
    assert send(as_alice, TEXT).status_code == 200


def test_somebody_elses_text_is_noted_and_never_shown(client, sent):
    client.force_login(UserFactory())
    response = send(client, NEARLY)
    assert response.status_code == 200
    assert str(sent.uuid) not in response.text
    assert 'id="error-summary"' not in response.text
    assert Example.objects.latest("pk").resembles == sent
    first, second = sorted(list_author_statistics([sent.round]), key=lambda one: one.annotator.pk)
    assert (first.duplicates, second.duplicates) == (0, 1)


def test_short_and_different_texts_are_free(as_alice, nli):
    for text in ("Who is he?", OTHER):
        assert send(as_alice, text).status_code == 200
        another_passage(as_alice)
    assert send(as_alice, "Who is he?").status_code == 200
    assert TextKey.objects.count() == 8


def test_a_text_that_is_being_sent_elsewhere_is_refused(as_alice, alice, nli):
    form = open_form(as_alice, text=TEXT)
    begin_attempt(
        annotator=get_annotator(alice),
        assignment=Assignment.objects.get(),
        key=form["attempt_key"],
        inputs={"hypothesis": TEXT},
    )
    another_passage(as_alice)
    response = send(as_alice, NEARLY)
    assert response.status_code == 422
    assert 'data-code="duplicate"' in response.text


def test_one_win_counts_for_a_chain(as_alice, sent, nli):
    send(as_alice, NEARLY + " Yes")
    another_passage(as_alice)
    send(as_alice, OTHER)
    Example.objects.update(outcome="fooled")
    found = list_author_statistics([nli])[0]
    assert (found.fooled, found.wins) == (3, 2)


def test_what_typing_looked_like_is_kept_as_evidence(as_alice, nli):
    told = {"pasted": "9999", "first_input": "2.5", "active": "31.0"}
    send(as_alice, TEXT, **told)
    kept = Example.objects.get().typing
    assert kept == {
        "pasted": len(TEXT),
        "characters": len(TEXT),
        "first_input": 2.5,
        "active": 31.0,
    }
    another_passage(as_alice)
    send(as_alice, OTHER, pasted="many")
    assert Example.objects.latest("pk").typing is None
    found = list_author_statistics([nli])[0]
    assert (found.paste_share.value, found.paste_share.n) == (1, 1)
    assert found.median_active_seconds == 31


def test_what_looks_personal_is_told(as_alice, nli):
    response = send(as_alice, "Write to ada@mill.example.org about it, she knows.")
    assert response.status_code == 200
    assert 'id="looks-personal"' in response.text
    assert 'id="looks-personal"' not in send(as_alice, OTHER).text
