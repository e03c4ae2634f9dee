"""Accuracy before and after the day until which a model was trained."""

from datetime import date, timedelta

import pytest
from django.utils import timezone

from evaluation.models import EvaluationSetVersion, Submission
from leaderboard.board.cells import Cell
from leaderboard.rounds.matrix import subtract_cells
from tests.support.factories import TaskFactory
from tests.support.training_dates import model_of, round_set
from validation.rates.rates import compute_wilson_interval

URL = "/t/nli/leaderboard/training-dates/"
DAY = date(2026, 3, 1)


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def sets(task):
    week = timedelta(days=7)
    return [
        round_set(task, 1, DAY - 9 * week, DAY - 8 * week, 20),
        round_set(task, 2, DAY - 7 * week, DAY, 30),  # over on that very day
        round_set(task, 3, DAY - week, DAY + week, 40),  # the day fell into it
        round_set(task, 4, DAY + week, DAY + 2 * week, 50),
        round_set(task, 5, DAY + 3 * week, DAY + 4 * week, 60),
    ]


def lines_of(client):
    return client.get(URL).context["lines"]


def test_rounds_are_parted_by_the_day_and_joined_by_their_examples(task, alice, sets, client):
    right = (18, 27, 4, 25, 30)
    told = [(one, n, False) for one, n in zip(sets, right, strict=True)]
    model_of(task, alice, "dated", DAY, *told)
    model_of(task, alice, "other", None, *told[:2], *((one, 40, False) for one in sets[3:]))
    (line,) = lines_of(client)
    assert (line.before.rounds, line.before.n) == ((1, 2), 50)
    assert (line.after.rounds, line.after.n) == ((4, 5), 110)
    (low, high), (low_after, high_after) = (
        compute_wilson_interval(45, 50),
        compute_wilson_interval(55, 110),
    )
    before = Cell(90.0, 100 * low, 100 * high)
    assert line.before.cell == pytest.approx(before)
    after = Cell(50.0, 100 * low_after, 100 * high_after)
    assert line.difference == pytest.approx(subtract_cells(before, after))
    assert line.others == pytest.approx(90 - 100 * 80 / 110)


def test_what_people_wrote_against_it_counts_on_neither_side(task, alice, sets, client):
    model_of(task, alice, "dated", DAY, (sets[0], 10, False), (sets[3], 5, True))
    (line,) = lines_of(client)
    assert (line.after.n, line.difference.value, line.others) == (0, None, None)


def test_models_without_a_day_have_no_line_and_unpublished_ones_neither(
    task, alice, sets, client, as_alice
):
    model_of(task, alice, "undated", None, (sets[0], 10, False))
    model = model_of(task, alice, "draft", DAY, (sets[0], 10, False))
    Submission.objects.filter(pk=model.pk).update(is_published=False)
    assert lines_of(client) == lines_of(as_alice) == []


def test_the_card_takes_the_day_and_programs_read_the_comparison(task, alice, sets, as_alice):
    model = model_of(task, alice, "dated", None, (sets[0], 10, False), (sets[4], 30, False))
    as_alice.post(f"/m/{model.pk}/card/", {"trained_until": DAY.isoformat()})
    page = as_alice.get(URL).text
    assert "dated" in page
    found = as_alice.get("/api/v1/tasks/nli/leaderboard/training-dates/").json()
    assert found == as_alice.get(f"{URL}?format=json").json()
    (one,) = found["models"]
    assert one["trained_until"] == DAY.isoformat()
    assert (one["before"]["value"], one["after"]["value"]) == (50.0, 50.0)
    assert one["before"]["is_provisional"]
    assert "provisional" in page
    EvaluationSetVersion.objects.update(settled_at=timezone.now())
    (one,) = as_alice.get(f"{URL}?format=json").json()["models"]
    assert not one["before"]["is_provisional"]
