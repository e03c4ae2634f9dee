"""The properties of a round's examples before the round is a test set."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Example
from evaluation.models import ItemFit, ItemProperty
from evaluation.runs.item_services import describe_votes, find_right_choices
from evaluation.scoring.ruler.people import estimate_ambiguity, estimate_error
from tasks.models import TaskMember, parse_config
from tests.support.evaluations import set_version
from tests.support.factories import UserFactory
from tests.support.gold_items import voted
from tests.support.judging import answered, write
from tests.support.talks import CONFIG
from validation.consensus.consensus import Vote

API = "/api/v1/tasks/nli/rounds/1/items/"


@pytest.fixture
def reviewer(nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    return nli


def read(client):
    return {one["example"]: one for one in client.get(API).json()["results"]}


def test_votes_say_how_hard_and_ambiguous_an_example_is(reviewer, as_alice, bob):
    example = write(reviewer, bob)
    choices = [Vote("neutral"), Vote("neutral"), Vote("entailment"), Vote("neutral")]
    voted(example, *choices, by=[UserFactory() for _ in choices])
    found = read(as_alice)[str(example.uuid)]
    wrong, ambiguity = estimate_error(1, 4), estimate_ambiguity([3, 1], 3)
    assert found["votes"] == 4
    assert found["people_wrong"] == pytest.approx(wrong.value)
    assert (found["people_wrong_low"], found["people_wrong_high"]) == (wrong.low, wrong.high)
    assert found["ambiguity"] == pytest.approx(ambiguity.value)
    assert found["ambiguity_low"] < found["ambiguity"] < found["ambiguity_high"]
    # Too few models answered to say more.
    assert found["difficulty"] is found["discrimination"] is found["label_may_be_wrong"] is None
    page = as_alice.get(f"/own/nli/review/{example.uuid}/")
    assert page.context["item"].people_wrong == pytest.approx(wrong.value)


def test_with_too_few_votes_nothing_is_said(reviewer, as_alice, bob):
    example, other = write(reviewer, bob), write(reviewer, bob, 1)
    voted(example, Vote("neutral"), Vote("neutral"), by=[UserFactory(), UserFactory()])
    items = read(as_alice)
    assert (items[str(example.uuid)]["votes"], items[str(other.uuid)]["votes"]) == (2, 0)
    assert items[str(example.uuid)]["people_wrong"] is items[str(example.uuid)]["ambiguity"] is None
    assert as_alice.get(f"/own/nli/review/{other.uuid}/").context["item"] is None


def test_votes_of_programs_and_withdrawn_examples_do_not_count(reviewer, as_alice, bob):
    example, withdrawn = write(reviewer, bob), write(reviewer, bob, 1)
    voted(example, *[Vote("neutral")] * 3, by=[UserFactory() for _ in range(3)])
    example.validations.update(by_program=True)
    Example.objects.filter(pk=withdrawn.pk).update(retracted_at="2026-01-01T00:00Z")
    items = read(as_alice)
    assert list(items) == [str(example.uuid)]
    assert items[str(example.uuid)]["votes"] == 0


def test_answers_of_the_models_that_were_asked_are_counted(reviewer, as_alice, bob):
    example = write(reviewer, bob)
    answered(example)
    example.target_outputs.update(fooled=False)
    found = read(as_alice)[str(example.uuid)]
    assert (found["models"], found["models_right"]) == (1, 1)
    example.target_outputs.update(fooled=None)
    assert read(as_alice)[str(example.uuid)]["models"] == 0


def test_what_the_last_test_set_says_comes_with_it(reviewer, as_alice, bob):
    example = write(reviewer, bob)
    voted(example, *[Vote("neutral")] * 3, by=[UserFactory() for _ in range(3)])
    fit = ItemFit.objects.create(version=set_version(reviewer.task), model_count=30)
    ItemProperty.objects.create(
        fit=fit, position=0, uid=str(example.uuid), example=example, right_share=0.4,
        discrimination=-1.2, discrimination_error=0.3, label_may_be_wrong=True,
    )  # fmt: skip
    found = read(as_alice)[str(example.uuid)]
    assert (found["discrimination"], found["label_may_be_wrong"]) == (-1.2, True)
    assert as_alice.get(f"/own/nli/review/{example.uuid}/").context["item"].label_may_be_wrong


def test_only_reviewers_read_it(nli, client):
    assert client.get(API).status_code in (401, 403)
    client.force_login(UserFactory())
    assert client.get(API).status_code in (403, 404)


def test_many_examples_need_as_many_queries_as_few(reviewer, as_alice, bob):
    def count_queries():
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(API).status_code == 200
        return len(queries)

    write(reviewer, bob)
    read(as_alice)
    few = count_queries()
    for number in range(1, 9):
        example = write(reviewer, bob, number)
        voted(example, *[Vote("neutral")] * 3, by=[UserFactory() for _ in range(3)])
    assert count_queries() == few


@pytest.mark.parametrize(
    ("outcome", "right_choices"),
    [("fooled", {"incorrect"}), ("not_fooled", {"correct"}), ("undecided", set())],
)
def test_people_who_confirm_that_the_model_was_wrong_agree_with_the_author(outcome, right_choices):
    config = parse_config(json.dumps(CONFIG))
    assert find_right_choices(config, outcome, ["a free answer"]) == right_choices
    votes = [("", "incorrect")] * 3
    wrong = describe_votes(votes, right_choices, None).get("people_wrong")
    expected = {"fooled": estimate_error(0, 3).value, "not_fooled": estimate_error(3, 3).value}
    assert wrong == expected.get(outcome)
