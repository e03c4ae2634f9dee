"""The judge page: blind, once, never one's own, whatever the browser sends."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.attempts.services import retract_example
from annotation.models import Example, GatePass
from core.accounts.services import get_annotator
from tasks.models import Context
from tests.support.factories import UserFactory
from tests.support.judging import (
    URL,
    answered,
    example,  # noqa: F401
    headers,  # noqa: F401
    judge,
    with_reveal,
    write,
)
from tests.web.conftest import HTMX
from validation.models import Consensus, JudgeLease, QueueItem, Skip, Validation


def test_a_blind_label_is_stored_and_the_next_example_comes(as_alice, alice, nli, bob, headers):
    for number in range(2):
        write(nli, bob, number)
    response = judge(as_alice, "label:neutral", **headers)
    assert response.status_code == 200
    assert "Saved. 1 judged." in response.text
    assert 'id="judge-title"' in response.text
    assert ("<html" in response.text) == (not headers)
    vote = Validation.objects.get()
    assert (vote.label, vote.verdict, vote.validator) == ("neutral", "", get_annotator(alice))
    assert vote.author == get_annotator(bob)
    assert vote.seconds >= 0
    left = Example.objects.exclude(pk=vote.example_id).get()
    assert left.inputs["hypothesis"] in response.text
    consensus = Consensus.objects.get()
    assert (consensus.state, consensus.votes, consensus.still_needed) == ("undecided", 1, 2)


@pytest.mark.parametrize("reveal", [False, True], ids=["blind", "reveal"])
def test_nothing_of_the_author_or_the_model_is_in_the_page(as_alice, example, reveal):
    """Check 25: not in the page, its parts and its errors, nor in an attribute, before the vote."""
    if reveal:
        with_reveal(example.round.task)
    answered(example)
    example.metadata = {"why_right": ["negation"], "why_right_text": "Because of a secret."}
    example.save()
    wrong = {"example": example.uuid}
    answers = [
        as_alice.get(URL),
        as_alice.get(URL, **HTMX),
        *(
            as_alice.post(URL + path, wrong, **kind)
            for path in ("", "flag/")
            for kind in ({}, HTMX)
        ),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 422, 422, 422, 422]
    hidden = ("secret", "0.9", "90%", "target-", str(example.annotator), "data-outcome", "checked")
    for text in (answer.text for answer in answers):
        assert "Statement 0." in text
        assert "Person" in text  # the passage
        assert not [words for words in hidden if words in text]
    said = judge(as_alice, "label:neutral", **HTMX).text
    assert ('id="author-said"' in said) == reveal  # what the reveal step shows, and only it


def page_about(client, round, author, url, outcome="fooled", **inputs):
    """The judge page of an example with these inputs, without what differs anyway."""
    example = write(round, author, outcome=outcome, **inputs)
    answered(example, outcome)
    text = client.get(url).text
    assert str(example.uuid) in text
    client.post(url + "skip/", {"example": example.uuid}, **HTMX)
    return re.sub(r'value="\w{64}"', "", text.replace(str(example.uuid), ""))


def test_the_page_is_the_same_whatever_the_author_said(as_alice, nli, bob):
    """Check 25: no label and no outcome can be read from the page, in whatever form."""
    said = [
        (label, outcome)
        for label in ("entailment", "neutral", "contradiction")
        for outcome in ("fooled", "no_model")
    ]
    pages = {
        page_about(as_alice, nli, bob, URL, outcome, number=n, hypothesis="It is.", label=label)
        for n, (label, outcome) in enumerate(said)
    }
    assert len(pages) == 1


def test_what_only_one_label_asks_for_is_hidden_too(as_alice, alice, hate, bob):
    GatePass.objects.create(annotator=get_annotator(alice), task=hate.task)
    url = "/t/hate-speech/judge/"
    more = {"label": "hate", "hate_type": "derogation", "hate_target": "none"}
    pages = {
        page_about(as_alice, hate, bob, url, number=n, text="They are here.", **inputs)
        for n, inputs in enumerate([{"label": "not-hate"}, more])
    }
    assert len(pages) == 1


def test_nobody_judges_their_own(as_alice, alice, nli, bob):
    mine = write(nli, alice)
    assert 'id="nothing-to-judge"' in as_alice.get(URL).text
    response = as_alice.post(URL, {"example": mine.uuid, "answer": "label:neutral"}, **HTMX)
    assert response.status_code == 403
    assert not Validation.objects.exists()
    me = get_annotator(alice)
    with pytest.raises(IntegrityError, match="validation_not_own"), transaction.atomic():
        Validation.objects.create(example=mine, validator=me, author=me, label="neutral")


def test_nobody_judges_twice(as_alice, alice, example, headers):
    judge(as_alice, "label:neutral")
    assert 'id="nothing-to-judge"' in as_alice.get(URL).text
    same = {"example": example.uuid, "answer": "label:neutral"}  # its answer may have been lost
    assert as_alice.post(URL, same, **headers).status_code < 400
    again = {"example": example.uuid, "answer": "label:entailment"}
    response = as_alice.post(URL, again, **headers)
    assert response.status_code == 409
    assert Validation.objects.get().label == "neutral"
    with pytest.raises(IntegrityError), transaction.atomic():
        Validation.objects.create(
            example=example, validator=get_annotator(alice), label="entailment"
        )


def test_nobody_votes_on_what_they_were_not_given(as_alice, nli, bob):
    write(nli, bob)
    other = write(nli, bob, 1, outcome="not_fooled")
    as_alice.get(URL)
    JudgeLease.objects.filter(example=other).delete()
    response = as_alice.post(URL, {"example": other.uuid, "answer": "label:neutral"}, **HTMX)
    assert response.status_code == 403
    assert not Validation.objects.exists()


@pytest.mark.parametrize("answer", ["", "label:nonsense", "verdict:correct", "neutral"])
def test_an_answer_that_does_not_exist_is_a_problem(as_alice, example, answer, headers):
    as_alice.get(URL)
    response = as_alice.post(URL, {"example": example.uuid, "answer": answer}, **headers)
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text
    assert "<title>Error: " in response.text
    assert not Validation.objects.exists()


def test_cannot_tell_is_a_vote(as_alice, example):
    judge(as_alice, "verdict:cannot_tell", **HTMX)
    assert Validation.objects.get().verdict == "cannot_tell"


def test_three_equal_labels_verify(client, nli, bob):
    write(nli, bob)
    for _ in range(3):
        client.force_login(UserFactory())
        judge(client, "label:neutral", **HTMX)
    consensus = Consensus.objects.get()
    assert (consensus.state, consensus.label, consensus.decided_by) == (
        "decided",
        "neutral",
        "votes",
    )
    assert consensus.is_verified
    assert consensus.is_validated_error
    client.force_login(UserFactory())
    assert 'id="nothing-to-judge"' in client.get(URL).text


def test_skipping_is_free_and_for_good(as_alice, alice, example, headers):
    as_alice.get(URL)
    response = as_alice.post(
        URL + "skip/", {"example": example.uuid}, follow=not headers, **headers
    )
    assert 'id="nothing-to-judge"' in response.text
    assert Skip.objects.get().validator == get_annotator(alice)
    assert QueueItem.objects.get().free == 3
    assert 'id="nothing-to-judge"' in as_alice.get(URL).text


def test_undo_brings_the_example_back(as_alice, example, headers):
    judge(as_alice, "label:neutral")
    undo = f"/judge/{example.uuid}/undo/"
    assert undo in as_alice.get(URL).text
    response = as_alice.post(undo, follow=not headers, **headers)
    assert "Statement 0." in response.text
    assert not Validation.objects.exists()
    assert not Consensus.objects.exists()
    assert QueueItem.objects.get().free == 2
    judge(as_alice, "label:entailment")
    assert Validation.objects.get().label == "entailment"


def test_a_vote_keeps_how_many_words_were_shown(as_alice, example):
    """With its seconds this tells owners who cannot have read them."""
    Context.objects.update(fields={"premise": "The ferry leaves at nine."})
    judge(as_alice, "label:neutral")
    vote = Validation.objects.get()
    assert (vote.words, vote.seconds < 60) == (5 + 2, True)  # and "Statement 0."


@pytest.mark.parametrize(
    ("path", "said"), [("", {"answer": "label:neutral"}), ("flag/", {"flag_reason": "personal"})]
)
def test_the_next_page_names_the_last_answer_and_takes_it_back(
    as_alice, example, headers, path, said
):
    as_alice.get(URL)
    page = as_alice.post(URL + path, {"example": example.uuid, **said}, follow=True, **headers)
    form = page.text.partition(f'action="/judge/{example.uuid}/undo/"')[2].partition("</form>")[0]
    assert f"<em>{page.context['you_said']}</em>" in form
    assert page.context["you_said"] == (
        "Flagged" if path else "neither definitely true nor definitely false"
    )
    assert 'id="undo"' in form
    as_alice.post(f"/judge/{example.uuid}/undo/", **headers)
    assert not Validation.objects.exists()


def test_undo_shows_the_example_even_if_others_took_its_places(client, as_alice, alice, nli, bob):
    example = write(nli, bob)
    for label in ("neutral", "neutral", "entailment"):  # two of three are enough for one more
        client.force_login(UserFactory())
        judge(client, f"label:{label}", **HTMX)
    client.force_login(alice)
    judge(client, "label:entailment", **HTMX)
    client.force_login(UserFactory())
    assert "Statement 0." in client.get(URL).text
    client.force_login(alice)
    response = client.post(f"/judge/{example.uuid}/undo/", **HTMX)
    assert "Statement 0." in response.text
    item = QueueItem.objects.get()
    taken = JudgeLease.objects.filter(takes_place=True).count()
    assert (item.still_needed, item.free, taken) == (1, 0, 1)
    judge(client, "label:neutral", **HTMX)
    assert Consensus.objects.get().label == "neutral"
    assert 'id="nothing-to-judge"' in client.get(URL).text


def test_undo_ends_after_ten_minutes(as_alice, example):
    judge(as_alice, "label:neutral")
    Validation.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    assert "/undo/" not in as_alice.get(URL).text
    assert as_alice.post(f"/judge/{example.uuid}/undo/", **HTMX).status_code == 409
    assert Validation.objects.exists()


def test_others_votes_cannot_be_undone(as_alice, client, example):
    judge(as_alice, "label:neutral")
    client.force_login(UserFactory())
    assert client.post(f"/judge/{example.uuid}/undo/").status_code == 404
    assert client.get(f"/judge/{example.uuid}/after/").status_code == 404
    assert Validation.objects.exists()


def test_a_flag_is_a_vote_with_a_reason(as_alice, example, headers):
    as_alice.get(URL)
    data = {"example": example.uuid, "flag_reason": "personal", "why_flagged": "A real name."}
    response = as_alice.post(URL + "flag/", data, follow=not headers, **headers)
    assert "Thank you" in response.text
    vote = Validation.objects.get()
    assert (vote.verdict, vote.flag_reason) == ("flagged", "personal")
    assert vote.metadata == {"why_flagged": "A real name."}


@pytest.mark.parametrize("data", [{}, {"flag_reason": "boring"}, {"flag_reason": "other"}])
def test_a_flag_needs_a_reason(as_alice, example, data, headers):
    as_alice.get(URL)
    response = as_alice.post(URL + "flag/", {"example": example.uuid, **data}, **headers)
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text
    assert not Validation.objects.exists()


def test_a_retracted_example_leaves_the_queue(as_alice, example):
    as_alice.get(URL)
    retract_example(example=example)
    data = {"example": example.uuid, "answer": "label:neutral"}
    response = as_alice.post(URL, data, **HTMX)
    assert response.status_code == 409
    assert 'id="nothing-to-judge"' in response.text
    assert not Validation.objects.exists()


def test_the_reveal_comes_after_and_changes_nothing(as_alice, example, headers):
    with_reveal(example.round.task)
    answered(example)
    page = judge(as_alice, "label:entailment", **headers)
    assert 'id="after-title"' in page.text
    assert "<em>neither" in page.text
    url = f"/judge/{example.uuid}/after/"
    wrong = as_alice.post(url, {"reveal": "change"}, **headers)
    assert wrong.status_code == 422
    data = {"reveal": "change", "reveal_choice": "label:neutral", "reveal_comment": "I see."}
    done = as_alice.post(url, data, follow=not headers, **headers)
    assert "Saved. 1 judged." in done.text
    vote = Validation.objects.get()
    assert (vote.label, vote.reveal, vote.reveal_choice) == (
        "entailment",
        "change",
        "label:neutral",
    )
    assert Consensus.objects.get().votes == 1


def test_no_reveal_before_the_vote(as_alice, example):
    with_reveal(example.round.task)
    as_alice.get(URL)
    assert as_alice.get(f"/judge/{example.uuid}/after/").status_code == 404


def test_answers_in_words_get_a_verdict(as_alice, qa, bob):
    answer = {"text": "1840", "start": 22, "end": 26}
    example = write(qa, bob, question="When was the mill built?", answer=answer)
    answered(example, answer="1850", start=67, end=71)
    url = "/t/qa/judge/"
    text = as_alice.get(url).text
    assert "When was the mill built?" in text
    assert ">1840</p>" in text
    assert "0.9" not in text
    judge(as_alice, "verdict:correct", url, **HTMX)
    assert Validation.objects.get().verdict == "correct"


def test_the_warning_comes_first(as_alice, alice, hate, bob):
    url = "/t/hate-speech/judge/"
    example = write(hate, bob, text="They are here.", label="not-hate")
    response = as_alice.get(url)
    assert response.url == "/t/hate-speech/gate/?for=judge"
    for path in ("", "skip/", "flag/"):
        assert "/gate/" in as_alice.post(url + path, {"example": example.uuid}).url
    assert as_alice.post(response.url).url == url
    assert "They are here." in as_alice.get(url).text


def test_a_break_is_offered(as_alice, nli, bob, monkeypatch):
    minutes = 45
    write(nli, bob)
    now = [1_000_000]
    monkeypatch.setattr("validation.judging.views.time.time", lambda: now[0])
    offered = []
    for minute in (0, minutes - 1, minutes, minutes + 1, 2 * minutes):
        now[0] = 1_000_000 + 60 * minute
        offered.append("A short pause" in as_alice.get(URL).text)
    assert offered == [False, False, True, False, True]


def test_signed_out_people_sign_in_first(client, example):
    assert "/accounts/login/" in client.get(URL).url
    assert client.post(URL, {}, **HTMX).status_code == 401


def test_hidden_tasks_are_not_judged_by_strangers(as_alice, example):
    task = example.round.task
    task.is_visible = False
    task.save()
    for path in ("", "skip/", "flag/"):
        assert as_alice.post(URL + path, {"example": example.uuid}).status_code == 404
    assert as_alice.get(URL).status_code == 404


def test_closed_rounds_are_judged_released_ones_are_not(as_alice, example):
    for state, there in (("paused", True), ("closed", True), ("released", False)):
        example.round.state = state
        example.round.save()
        assert ("Statement 0." in as_alice.get(URL).text) == there
    vote = {"example": example.uuid, "answer": "label:neutral"}
    assert as_alice.post(URL, vote, **HTMX).status_code == 409
    assert not Validation.objects.exists()


def test_nothing_to_judge_is_a_friendly_page(as_alice, nli):
    response = as_alice.get(URL)
    assert response.status_code == 200
    assert 'id="nothing-to-judge"' in response.text
    assert "/t/nli/write/" in response.text


def test_keys_for_keyboard_mode(as_alice, example):
    text = as_alice.get(URL).text
    for key in ("1", "2", "3", "4", "s", "f"):
        assert f'data-key="{key}"' in text


def test_members_read_votes_in_the_admin(client, alice, bob, example):
    from tasks.models import TaskMember

    client.force_login(alice)
    judge(client, "label:neutral", **HTMX)
    client.force_login(bob)
    pages = [f"/admin/validation/{name}/" for name in ("validation", "consensus", "ownerdecision")]
    vote = Validation.objects.get()
    pages += [f"{pages[0]}{vote.pk}/change/", f"{pages[1]}{example.pk}/change/"]
    assert "Statement 0." not in "".join(client.get(page).text for page in pages)
    TaskMember.objects.create(task=example.round.task, user=bob, role="owner")
    assert all(client.get(page).status_code == 200 for page in pages)
    assert all("Statement 0." in client.get(pages[n]).text for n in (0, 1, 3, 4))
    assert client.post(pages[0] + "add/", {}).status_code == 403
