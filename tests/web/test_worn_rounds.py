"""How worn out each round is: on the page of rounds, the owners' page, in files and by the API."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest

from evaluation.models import EvaluationRun, EvaluationSet, ItemFit, ItemProperty, Submission
from tasks.models import TaskMember
from tests.support.boards import measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import RoundFactory, TaskFactory

URL, API = "/t/nli/leaderboard/rounds/", "/api/v1/tasks/nli/leaderboard/rounds/"
CLOSED = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def version(db, settings, tmp_path):
    """The set of a closed round with 120 examples."""
    settings.MEDIA_ROOT = tmp_path / "media"
    task = TaskFactory(code="nli", name="Natural language inference")
    round = RoundFactory(task=task, number=1, state="closed", closed_at=CLOSED)
    return set_version(task, "round-1", size=120, round=round)


def arrive(version, values, in_the_loop=False):
    """A model every ten days, from ten days after the round was closed."""
    for place, value in enumerate(values, 1):
        name = f"{in_the_loop} {place}"
        model = accepted_model(version.evaluation_set.task, name=name, is_published=True)
        moment = CLOSED + timedelta(days=10 * place)
        Submission.objects.filter(pk=model.pk).update(queued_at=moment)
        measured(model, version, value)
        EvaluationRun.objects.filter(submission=model).update(in_the_loop=in_the_loop)


def tell(version, votes=True, count=60):
    """Properties of items: people are right on 0.9, models on 0.5, and a third tell them apart."""
    fit = ItemFit.objects.create(version=version, model_count=20)
    asked = {"votes": 5, "people_wrong": 0.1, "ambiguity": 0.1} if votes else {}
    for place in range(count):
        ItemProperty.objects.create(
            fit=fit,
            position=place,
            uid=f"u{place}",
            right_share=0.5 if place % 3 else 0.95,
            discrimination=1.5 if place % 3 == 1 else 0.2,
            discrimination_error=0.3,
            **asked,
        )


def meter(client):
    (found,) = client.get(API).json()["worn"]
    return found


def test_saturation_is_dated(client, version):
    arrive(version, [0.2, 0.4, 0.6, 0.8] + [0.9] * 6)
    found = meter(client)["worn_out"]
    assert (found["state"], found["models"]) == ("worn", 6)
    day = (CLOSED + timedelta(days=50)).date().isoformat()
    assert found["low"] <= found["day"] == day <= found["high"]


def test_models_in_the_loop_say_nothing_of_it(client, version):
    arrive(version, [0.2, 0.4, 0.6, 0.8] + [0.9] * 6)
    before = meter(client)["worn_out"]
    arrive(version, [0.0] * 6, in_the_loop=True)
    assert meter(client)["worn_out"] == before


def test_rising_models_are_told_apart_and_few_say_nothing(client, version):
    arrive(version, [0.05, 0.15, 0.25, 0.4])
    assert meter(client)["worn_out"]["state"] == "too_few"
    Submission.objects.all().delete()
    arrive(version, [0.05, 0.15, 0.25, 0.4, 0.55, 0.7, 0.85, 0.97])
    assert meter(client)["worn_out"]["state"] == "not_yet"


def test_items_say_how_far_people_lead_and_which_examples_tell(client, version):
    tell(version)
    found = meter(client)
    # Each item's author is unknown, so all are one cluster.
    assert (found["margin_n"], found["margin"]["value"]) == (60, None)
    assert (found["item_n"], found["telling"]["value"]) == (60, pytest.approx(100 / 3))


def test_too_few_items_say_nothing(client, version):
    tell(version, votes=False, count=29)
    found = meter(client)
    assert (found["margin_n"], found["margin"]["value"], found["telling"]["value"]) == (
        0,
        None,
        None,
    )


def test_pages_and_file_show_it(client, version, alice, as_alice):
    arrive(version, [0.2, 0.4, 0.6, 0.8] + [0.9] * 6)
    tell(version)
    assert 'id="worn-out"' in client.get(URL).text
    TaskMember.objects.create(user=alice, task=version.evaluation_set.task, role="owner")
    assert 'id="worn-out"' in as_alice.get("/own/nli/rounds/").text
    rows = {
        row["kind"]: row
        for row in csv.DictReader(io.StringIO(client.get(f"{URL}?format=csv").text))
    }
    assert rows["worn_out_since"]["value"] == meter(client)["worn_out"]["day"]
    assert float(rows["examples_that_tell"]["value"]) == pytest.approx(100 / 3)
    assert client.get(f"{URL}?format=json").json()["worn"] == [meter(client)]


def test_on_a_sealed_set_rounding_counts_as_chance(client, version):
    EvaluationSet.objects.update(answers_public=False)
    arrive(version, [0.2, 0.4, 0.6, 0.8] + [0.9, 0.93] * 3)
    assert meter(client)["worn_out"]["state"] == "worn"
