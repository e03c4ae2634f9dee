"""The page and the API of weak spots, and the challenges that come from them."""

import json

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils import translation

from annotation.models import Example
from dynabench.failures.selectors import list_tries
from tasks.config.parsing import read_yaml
from tasks.models import Task
from tests.support.adversaries import sentiment_round
from tests.support.factories import scripted_target
from tests.support.weak_spots import write_against_target
from tests.support.written_tries import SUBJECTS
from validation.models import Consensus

pytestmark = pytest.mark.django_db
PAGE = "/own/sentiment/weak-spots/"
SENTENCE = "Write about soup."
API = "/api/v1/tasks/sentiment/weak-spots/"


@pytest.fixture
def round(client):
    round, owner = sentiment_round()
    client.force_login(owner)
    return round


def test_the_page_shows_the_weak_subject_with_errors_of_it(round, client):
    write_against_target(round)
    shown = client.get(PAGE, {"model": "weak"}).context["found"].slices[0]
    assert shown.slice.is_clear
    assert set(shown.slice.words) & set(SUBJECTS["food"])
    stored_ids = Example.objects.filter(outcome="fooled").values_list("uuid", flat=True)
    assert {error.uuid for error in shown.errors} <= set(stored_ids)
    assert len(shown.errors) == 3


def test_the_filter_shows_the_model_that_is_searched(round, client):
    write_against_target(round)
    page = client.get(PAGE)
    values = [value for value, _words in page.context["filters"].fields["model"].choices]
    assert len(values) == len(page.context["models"]) > 0
    assert values[0] == page.context["model"].name
    assert client.get(PAGE, {"model": "nobody"}).status_code == 404


def test_a_challenge_is_in_the_language_of_the_task(round, client):
    write_against_target(round)
    found = client.get(PAGE, headers={"accept-language": "de"}).context["found"].slices[0]
    with translation.override("en"):
        sentence = translation.gettext("Try one about: %(words)s.")
    assert found.challenge == sentence % {"words": ", ".join(found.slice.words)}


def test_the_api_says_the_same(round, client):
    write_against_target(round)
    found = client.get(PAGE).context["found"]
    body = client.get(API).json()
    assert (body["model"], body["models"], body["reason"]) == ("weak", ["weak"], "")
    assert (body["tries"], body["error_count"]) == (found.search.tries, found.search.errors)
    assert [one["words"] for one in body["slices"]] == [
        list(shown.slice.words) for shown in found.slices
    ]
    clearest, rate = body["slices"][0], found.slices[0].slice.error_rate
    assert clearest["error_rate"]["value"] == rate.value
    assert clearest["examples"][0]["text"] == found.slices[0].errors[0].text
    assert client.get(API, {"model": "nobody"}).status_code == 404
    assert client.get(PAGE, {"model": "nobody"}).status_code == 404


def test_erased_and_withdrawn_texts_are_not_shown(round, client):
    write_against_target(round)
    errors = client.get(PAGE).context["found"].slices[0].errors
    Example.objects.filter(uuid=errors[0].uuid).update(digest="", inputs={})
    Example.objects.filter(uuid=errors[1].uuid).update(retracted_at="2026-11-30T00:00Z")
    left = client.get(PAGE).context["found"].slices[0].errors
    assert left == errors[2:]


def test_what_people_have_not_confirmed_is_no_error(round):
    target = write_against_target(round, authors=6, per_author=10, error_rate=0.5)
    all_tries = list_tries(round.task, target)
    errors = [one.key for one in all_tries if one.is_error]
    waiting, refuted, confirmed = errors[0], errors[1], errors[2]
    Consensus.objects.filter(example=waiting).delete()
    Consensus.objects.filter(example=refuted).update(is_verified=False)
    held = next(one.key for one in all_tries if not one.is_error)
    Consensus.objects.create(
        example_id=held, round=round, state="decided", votes=3, still_needed=0, is_verified=False
    )
    counted = {one.key for one in list_tries(round.task, target)}
    assert {one.key for one in all_tries} - counted == {waiting, refuted, held}
    assert confirmed in counted
    assert list_tries(round.task, scripted_target(round, name="other")) == []


def test_a_task_without_texts_says_so(round, client):
    assert client.get(PAGE).context["model"] is None
    write_against_target(round, authors=2, per_author=3)
    cache.clear()
    assert client.get(PAGE).context["found"].search.reason
    assert client.get(API).json()["reason"]


def test_the_number_of_queries_is_the_same_for_many_texts(
    round, client, django_assert_max_num_queries
):
    write_against_target(round)
    client.get(PAGE)
    with django_assert_max_num_queries(16):
        client.get(PAGE)


def test_an_owner_offers_a_challenge_to_writers(round, client):
    task = round.task
    address = reverse("own-failures:challenge", args=[task.code])
    filled = client.get(address, {"sentence": SENTENCE})
    assert filled.context["form"]["sentence"].value() == SENTENCE
    former_challenges = dict(task.config.challenges)
    made = client.post(address, {"name": "food", "sentence": SENTENCE})
    assert made.headers["Location"] == PAGE
    task = Task.objects.get(pk=task.pk)
    assert task.config.challenges == {"food": SENTENCE, **former_challenges}
    again = client.post(address, {"name": "food", "sentence": "Another one"})
    assert (again.status_code, {*again.context["form"].errors}) == (422, {"name"})
    refused = client.post(address, {"name": "No name", "sentence": ""})
    assert {*refused.context["form"].errors} == {"name", "sentence"}


def test_a_configuration_in_one_line_keeps_what_was_typed(round, client):
    task = round.task
    in_one_line = json.dumps(read_yaml(task.config_text).data)
    Task.objects.filter(pk=task.pk).update(config_text=in_one_line)
    address = reverse("own-failures:challenge", args=[task.code])
    refused = client.post(address, {"name": "food", "sentence": SENTENCE})
    assert refused.status_code == 422
    assert refused.context["form"]["sentence"].value() == SENTENCE
    assert refused.context["form"].non_field_errors()
