"""Ready adversaries: what official tasks bring with them, and the click that starts them."""

from random import Random

import pytest
from django.urls import reverse

from core.errors import Invalid, Refused
from dynabench.adversaries import ready_services
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.kinds.base import KINDS, ProbeAnswer
from dynabench.adversaries.models import Adversary, AdversaryRun, AdversaryTry
from dynabench.adversaries.ready_services import list_ready_adversaries, start_ready_adversaries
from dynabench.adversaries.services import retire_adversary
from tasks.config.loading import validate_inputs
from tests.support.adversaries import options_of, sentiment_round
from tests.support.factories import TaskFactory

pytestmark = pytest.mark.django_db
TASKS = {"sentiment": ["rules", "search"], "hate-speech": ["rules", "search"], "nli": ["rules"]}
RIGHT = ProbeAnswer(False, 0.9)


@pytest.fixture
def official():
    """An open round of the official sentiment task, and its owner."""
    round, owner = sentiment_round()
    round.task.is_official = True
    round.task.save()
    return round, owner


@pytest.mark.parametrize("code", TASKS)
def test_each_ready_text_is_one_that_people_could_write(code):
    task = TaskFactory(code=code, is_official=True)
    context = dict.fromkeys(("premise", "prompt"), "It rained on Monday.")
    ready = list_ready_adversaries(task)
    assert [one["kind"] for one in ready] == TASKS[code]
    for one in ready:
        options = options_of(one["kind"], **one["options"])
        for planned in KINDS[one["kind"]].plan_attacks(
            options, task.config.goal_choices, Random(0)
        ):
            search = planned.begin(context)
            text = next(search).text
            inputs = {task.config.text_field: text, "label": planned.label}
            assert not validate_inputs(task.config, context, inputs), text


def test_one_click_starts_them_all(official, client):
    _round, owner = official
    client.force_login(owner)
    address = reverse("own-adversaries:adversaries", args=["sentiment"])
    assert b'id="start-ready"' in client.get(address).content
    client.post(reverse("own-adversaries:ready", args=["sentiment"]))
    assert {one.kind for one in Adversary.objects.all()} == {"rules", "search"}
    for run in AdversaryRun.objects.all():
        assert run.state == "queued"
        attack(run.pk)
    assert {one.run.adversary.kind for one in AdversaryTry.objects.all()} == {"rules", "search"}


def test_a_second_click_makes_no_second_ones(official):
    round, owner = official
    assert len(start_ready_adversaries(task=round.task, actor=owner)) == 2
    with pytest.raises(Refused) as refusal:
        start_ready_adversaries(task=round.task, actor=owner)
    assert refusal.value.code == "running"
    AdversaryRun.objects.update(state="done")
    assert len(start_ready_adversaries(task=round.task, actor=owner)) == 2
    assert Adversary.objects.count() == 2


def test_what_owners_retired_is_left_out(official):
    round, owner = official
    start_ready_adversaries(task=round.task, actor=owner)
    retire_adversary(adversary=Adversary.objects.get(kind="rules"), actor=owner)
    assert [one["kind"] for one in list_ready_adversaries(round.task)] == ["search"]
    AdversaryRun.objects.update(state="done")
    assert len(start_ready_adversaries(task=round.task, actor=owner)) == 1


def test_a_click_that_was_too_late_is_refused(official, monkeypatch):
    round, owner = official

    def create_too_late(**values):
        raise Invalid("This name is taken.", field="name")

    monkeypatch.setattr(ready_services, "create_adversary", create_too_late)
    with pytest.raises(Refused):
        start_ready_adversaries(task=round.task, actor=owner)


def test_other_tasks_have_none(client):
    round, owner = sentiment_round()
    with pytest.raises(Refused) as refusal:
        start_ready_adversaries(task=round.task, actor=owner)
    assert refusal.value.code == "none_ready"
    client.force_login(owner)
    page = client.get(reverse("own-adversaries:adversaries", args=["sentiment"]))
    assert page.context["ready"] == []


def test_the_api_starts_them_too(official, client):
    _round, owner = official
    client.force_login(owner)
    started = client.post("/api/v1/tasks/sentiment/adversaries/ready/")
    assert started.status_code == 201
    assert [one["kind"] for one in started.json()] == ["rules", "search"]
