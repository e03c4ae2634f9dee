"""Limits on harmful texts on the pages: offered, then required, also without scripts."""

import re
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from annotation.models import Assignment, Example, GatePass
from core.accounts.services import get_annotator
from tests.support.factories import scripted_target
from tests.support.judging import judge, write
from tests.support.writing import goal_is, open_form
from tests.web.conftest import HTMX
from validation.models import Validation

CARE = "/t/hate-speech/care/"
JUDGE = "/t/hate-speech/judge/"
WRITE = "/t/hate-speech/write/"


@pytest.fixture
def row(hate, alice):
    return GatePass.objects.create(annotator=get_annotator(alice), task=hate.task, own_items=2)


@pytest.fixture
def clock():
    with time_machine.travel(timezone.now().replace(hour=12), tick=False) as travelled:
        yield travelled


@pytest.mark.parametrize("kind", [{}, HTMX], ids=["page", "htmx"])
def test_a_break_is_required_between_judgements_and_ends(as_alice, hate, bob, row, clock, kind):
    for number in range(4):
        write(hate, bob, number, text=f"They are here {number}.", label="hate")
    uuid = re.search(r'name="example" value="([^"]+)"', as_alice.get(JUDGE).text)[1]
    clock.shift(30)
    as_alice.post(JUDGE, {"example": uuid, "answer": "label:hate"}, **kind)
    row.refresh_from_db()
    assert row.seconds == 30
    GatePass.objects.update(seconds=50 * 60)
    assert 'id="care" class="notice"' in as_alice.get(JUDGE).text  # offered
    judge(as_alice, "label:hate", JUDGE, **kind)
    row.refresh_from_db()
    assert (row.seconds, row.in_a_row) == (50 * 60, 2)
    page = as_alice.get(JUDGE, **kind).text
    assert 'data-rest="break"' in page
    assert "They are here" not in page
    late = as_alice.post(JUDGE, {"example": Example.objects.last().uuid, "answer": "label:hate"})
    assert (late.status_code, Validation.objects.count()) == (429, 2)
    clock.shift(timedelta(minutes=5))
    assert "They are here" in as_alice.get(JUDGE).text


def test_what_was_written_stays_in_the_form_when_the_day_is_over(as_alice, hate, row, clock):
    scripted_target(hate, label="not-hate", prob={"hate": 0.2, "not-hate": 0.8})
    goal_is(as_alice, "not-hate", WRITE)
    form = open_form(as_alice, WRITE) | {"text": "Zorbians make good bread."}
    GatePass.objects.update(own_items=None, own_minutes=1, day=timezone.now().date(), seconds=400)
    refused = as_alice.post(WRITE, form, **HTMX)
    assert refused.status_code == 429
    assert 'data-code="day"' in refused.text
    assert not Example.objects.exists()
    assert 'data-rest="day"' in as_alice.get(WRITE).text
    clock.shift(timedelta(days=1))
    assert 'id="write-form"' in as_alice.get(WRITE).text


def test_each_written_text_counts_once_and_one_passed_by_too(as_alice, hate, row, clock):
    GatePass.objects.update(own_items=None)
    scripted_target(hate, label="not-hate", prob={"hate": 0.2, "not-hate": 0.8})
    as_alice.get(WRITE)
    for count in (1, 2, 3):
        Assignment.objects.update(goal="not-hate")
        form = open_form(as_alice, WRITE) | {"text": f"Zorbians make good bread {count}."}
        assert as_alice.post(WRITE, form, **HTMX).status_code == 200
        as_alice.post(f"{WRITE}next/", {"want": "context"}, **HTMX)
        row.refresh_from_db()
        assert row.in_a_row == count
    as_alice.post(f"{WRITE}next/", {"want": "context"}, **HTMX)
    row.refresh_from_db()
    assert row.in_a_row == 4


def test_the_browser_s_seconds_are_bounded_and_count_in_all_tasks(as_alice, hate, row, clock):
    as_alice.get(WRITE)
    clock.shift(7)
    for said in ("15", "-3", "x", "9" * 40):
        assert as_alice.post(f"{CARE}seen/", {"seconds": said}).status_code == 204
    row.refresh_from_db()
    assert row.seconds == 7


def test_people_set_limits_up_to_the_owner_s_and_find_help(as_alice, hate, row):
    page = as_alice.get(CARE).text
    assert hate.task.config.content_warning.support[0].region in page
    cap = hate.task.config.content_warning.minutes_per_day
    assert as_alice.post(CARE, {"minutes": cap + 1, "items": ""}).status_code == 422
    assert as_alice.post(CARE, {"minutes": "5", "items": "7"}).status_code == 302
    row.refresh_from_db()
    assert (row.own_minutes, row.own_items) == (5, 7)


def test_a_task_without_a_warning_counts_nothing(as_alice, nli):
    as_alice.get("/t/nli/write/")
    assert as_alice.post("/t/nli/care/seen/", {"seconds": "5"}).status_code == 204
    assert as_alice.get("/t/nli/care/").status_code == 200
    assert not GatePass.objects.exists()
