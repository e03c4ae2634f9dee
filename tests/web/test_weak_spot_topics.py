"""Weak spots of the models to fool among the topics of a language model's runs."""

import pytest

from dynabench.adversaries import spot_services
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.models import AdversaryRun
from dynabench.adversaries.services import start_run
from dynabench.adversaries.spot_services import count_spot_uses
from tests.support.adversaries import make_adversary, run_to_its_end, sentiment_round, work_on
from tests.support.chat_server import chat_server
from tests.support.judged_answers import chat_target
from tests.support.weak_spots import write_against_target
from tests.support.written_tries import SUBJECTS

pytestmark = pytest.mark.django_db
FEW = {"strategies": "irony", "topics": "harbours", "proposals": 4, "turns": 1}


@pytest.fixture
def scene(settings):
    """A round whose models err about food, and an adversary that writes about something new."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    texts = (f"Everybody{number} pleased{number} evenings{number}." for number in range(99))
    with chat_server({"m": lambda messages: next(texts)}) as server:
        round, owner = sentiment_round()
        target = write_against_target(round)
        target.options = {"label": "negative"}
        target.save()
        model = chat_target(round.task, server.url, model="m").name
        yield lambda **values: make_adversary(
            round, owner, "language_model", model=model, **FEW | values
        )


def list_topics(run):
    """The topics of the run's tries."""
    steps = run.logged_tries.values_list("step", flat=True)
    return {step.removeprefix("irony").rsplit(", ", 1)[0].removeprefix(" · ") for step in steps}


@pytest.mark.parametrize("own_topic", ["harbours", ""])
def test_a_run_also_writes_about_weak_spots(scene, own_topic):
    run = run_to_its_end(scene(topics=own_topic))
    assert run.weak_spots
    assert set(run.weak_spots[0].split(", ")) & set(SUBJECTS["food"])
    assert list_topics(run) == {own_topic, *run.weak_spots}


def test_the_page_and_the_api_say_what_came_of_them(scene, client):
    adversary = scene()
    run = run_to_its_end(adversary)
    client.force_login(adversary.made_by)
    spots = client.get(f"/own/sentiment/adversaries/{adversary.pk}/").context["spots"]
    assert [spot.words for spot in spots] == run.weak_spots
    for spot in spots:
        own_tries = [one for one in run.logged_tries.all() if f"{spot.words}, " in one.step]
        assert spot.tries == len(own_tries) > 0
        assert spot.fooled == sum(bool(one.is_fooled) for one in own_tries)
    rows = client.get(f"/api/v1/tasks/sentiment/adversaries/{adversary.pk}/runs/").json()
    assert rows["results"][0]["weak_spots"] == run.weak_spots


def test_a_run_that_continues_keeps_its_weak_spots(scene, monkeypatch):
    """Else its search would differ from the logged one."""
    run = start_run(adversary=scene(), actor=None)
    find, calls = spot_services.find_weak_spots, []
    monkeypatch.setattr(
        spot_services, "find_weak_spots", lambda *given: calls.append(given) or find(*given)
    )
    monkeypatch.setattr("dynabench.adversaries.run_services.SLICE_SECONDS", 0)
    attack(run.pk)
    first_calls = len(calls)
    first_spots = AdversaryRun.objects.get().weak_spots
    run = work_on(run)
    assert first_calls == len(calls) > 0
    assert run.weak_spots == first_spots


def test_without_the_setting_none_are_looked_for(scene, monkeypatch):
    monkeypatch.setattr(spot_services, "find_weak_spots", None)
    off, older = scene(weak_spots=False, name="off"), scene(name="older")
    # Created before the setting existed.
    del older.options["weak_spots"]
    older.save()
    for adversary in (off, older):
        run = run_to_its_end(adversary)
        assert run.weak_spots is None
        assert list_topics(run) <= {"harbours"}
        assert count_spot_uses(run) == []
    assert count_spot_uses(None) == []


def test_there_are_at_most_a_few(scene, monkeypatch):
    monkeypatch.setattr(spot_services, "MAX_SPOTS", 0)
    assert run_to_its_end(scene()).weak_spots == []
