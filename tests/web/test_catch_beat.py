"""The first beat of a catch on the page of its verdict, near misses, and first discoveries."""

import pytest
from django.core.cache import cache

from annotation.models import Assignment, Example
from core.accounts.services import get_annotator
from tests.support.factories import scripted_target
from tests.support.writing import NLI_PROB, URL, goal_is, open_form
from tests.web.conftest import HTMX
from validation.models import Validation


def set_limits(round, **limits):
    task = round.task
    for name, value in limits.items():
        task.config_text = task.config_text.replace(f"{name}: full", f"{name}: {value}")
    task.save()


def submit(client, round, goal="neutral", **fields):
    if not round.targets.exists():
        scripted_target(round, output={"label": "entailment"}, prob=NLI_PROB)
    goal_is(client, goal)
    return client.post(URL, open_form(client, **fields), **HTMX)


def test_a_possible_catch_names_the_answer_and_what_it_means(as_alice, nli):
    response = submit(as_alice, nli)
    assert 'data-beat="possible"' in response.text
    catch = response.context["possible_catch"]
    assert (catch.answer, catch.confidence) == ("definitely true", "91%")
    assert 'id="meaning"' in response.text
    assert catch.answer in response.context["heading"]


def test_only_the_first_on_a_text_is_its_first(as_alice, nli):
    submit(as_alice, nli)
    assert 'id="meaning"' in as_alice.get(last_attempt()).text
    again = as_alice.post(URL, open_form(as_alice, text="The shop was shut at noon."), **HTMX)
    assert 'data-beat="possible"' in again.text
    assert 'id="meaning"' not in again.text


def last_attempt():
    return f"/attempt/{Example.objects.latest('pk').uuid}/"


def test_who_comes_back_to_votes_reads_them_first(as_alice, nli, bob):
    submit(as_alice, nli)
    page = as_alice.get(last_attempt()).text
    assert page.index('class="votes"') < page.index('id="meaning"')
    assert "autofocus" in page
    example = Example.objects.get()
    Validation.objects.create(
        example=example, validator=get_annotator(bob), author=example.annotator, label="neutral"
    )
    # Otherwise the page would jump to a button.
    assert "autofocus" not in as_alice.get(last_attempt()).text


def test_a_hidden_confidence_stays_hidden(as_alice, nli):
    set_limits(nli, show_confidence="hidden")
    response = submit(as_alice, nli)
    assert response.context["possible_catch"].confidence == ""
    assert "91%" not in response.text
    again = submit(as_alice, nli, "entailment", text="Another one about the shop.")
    assert again.context["near_miss"] is None


def test_a_near_miss_offers_what_the_round_lacks(as_alice, nli):
    response = submit(as_alice, nli, "entailment")
    miss = response.context["near_miss"]
    assert (miss.kind, miss.chance) == ("sure", "91%")
    challenges = nli.task.config.challenges
    names = ("counting", "negation", "several_steps")
    assert miss.ideas == [challenges[name] for name in names]
    assert 'id="near-ideas" data-kind="sure"' in response.text
    assert 'id="near-miss"' not in response.text  # the answer says how sure the model was


def test_sensitive_tasks_stay_plain(as_alice, hate):
    url = "/t/hate-speech/write/"
    as_alice.post("/t/hate-speech/gate/")
    scripted_target(hate, output={"label": "hate"}, prob={"hate": 0.9, "not-hate": 0.1})
    goal_is(as_alice, "not-hate", url)
    form = open_form(as_alice, url) | {"text": "They brought us soup on Sunday."}
    response = as_alice.post(url, form, **HTMX)
    assert 'class="verdict fooled"' in response.text
    assert "data-beat" not in response.text
    assert response.context["possible_catch"] is None
    assert 'id="meaning"' not in response.text


def test_a_withdrawn_one_is_no_catch(as_alice, nli):
    submit(as_alice, nli)
    Example.objects.update(retracted_at="2026-11-01T00:00:00Z")
    page = as_alice.get(last_attempt())
    assert page.context["possible_catch"] is None
    assert page.context["heading"] == page.context["plain_heading"]


@pytest.mark.parametrize("is_fooled", [False, True])
def test_a_challenge_that_fooled_nobody_yet_is_a_discovery(as_alice, nli, is_fooled):
    as_alice.get(URL)
    Assignment.objects.update(challenge="several_steps")
    if is_fooled:
        submit(as_alice, nli)
        Example.objects.update(challenge="several_steps")
        Assignment.objects.update(challenge="several_steps")
        cache.clear()
    page = as_alice.get(URL)
    assert page.context["discovery"] == ("" if is_fooled else "several steps")
    assert ('id="discovery"' in page.text) != is_fooled
