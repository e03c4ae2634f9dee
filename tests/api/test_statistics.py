"""The numbers in the API are those of the report."""

import json
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tasks.models import Round
from tests.support.factories import RoundFactory
from tests.support.task_pages import Later, large, one_more, rounds  # noqa: F401
from tests.support.task_reports import load, mood, report, row  # noqa: F401
from validation.api.statistics import NumbersSerializer

URL = "/api/v1/tasks/mood/statistics/"


def test_the_numbers_are_those_of_the_report(anybody, mood):  # noqa: F811
    assert anybody.get(URL).json() == report(mood)
    one = anybody.get("/api/v1/tasks/mood/rounds/2/statistics/").json()
    assert one == report(mood, "--round", 2)
    names = list(NumbersSerializer().fields)
    assert list(one["all"]) == [name for name in names if name in one["all"]]
    # Only tasks that judge steps or criteria, and rounds with a sample, have their numbers.
    left_out = [name for name in names if name not in one["all"]]
    assert all(name.startswith(("step", "criteria_", "sample_")) for name in left_out)


def test_what_is_planned_is_not_counted(anybody, mood):  # noqa: F811
    RoundFactory(task=Round.objects.first().task, number=3, state="draft")
    assert [one["round"] for one in anybody.get(URL).json()["rounds"]] == [1, 2]
    for number in (3, 4, 10**30):
        url = f"/api/v1/tasks/mood/rounds/{number}/statistics/"
        assert anybody.get(url).status_code == 404


def test_a_task_without_rounds_has_no_numbers(anybody, mood):  # noqa: F811
    Round.objects.update(state="draft")
    told = anybody.get(URL).json()
    assert (told["rounds"], told["all"]["collected"], told["all"]["vmer"]) == ([], 0, None)


def test_a_hidden_task_has_none(anybody, api, mood):  # noqa: F811
    task = Round.objects.first().task
    task.is_visible = False
    task.save()
    assert anybody.get(URL).status_code == api.get(URL).status_code == 404


def test_what_is_known_already_is_not_sent_again(anybody, mood, django_assert_num_queries):  # noqa: F811
    with time_machine.travel(timezone.now(), tick=False) as clock:
        first = anybody.get(URL)
        with django_assert_num_queries(2):  # the task and its rounds
            again = anybody.get(URL, HTTP_IF_NONE_MATCH=first["ETag"])
        assert (again.status_code, again.content) == (304, b"")
        assert again["Last-Modified"] == first["Last-Modified"]
        one_more(Round.objects.first())
        clock.shift(timedelta(minutes=2))
        later = anybody.get(URL, HTTP_IF_NONE_MATCH=first["ETag"])
    assert later.json()["all"]["collected"] == first.json()["all"]["collected"] + 1
    assert later["ETag"] != first["ETag"]


def test_a_large_task_is_counted_beside_the_request(anybody, large):  # noqa: F811
    url = "/api/v1/tasks/nli/statistics/"
    for _ in range(2):  # the second one begins nothing
        answer = anybody.get(url)
        assert (answer.status_code, answer["Retry-After"]) == (503, "60")
        assert answer.json()["error"]["code"] == "counting"
    assert len(Later.waiting) == 1
    Later.run()
    assert anybody.get(url).json() == report("nli")


@pytest.mark.parametrize("rows", [1, 5])
def test_counting_takes_as_many_queries_for_many_rounds(
    anybody, db, tmp_path, rows, django_assert_max_num_queries
):
    file = tmp_path / "mood.jsonl"
    file.write_text("\n".join(json.dumps(row(f"a{n}", [], round=n)) for n in range(1, rows + 1)))
    load(file, "--create")
    with django_assert_max_num_queries(7):
        anybody.get(URL)
