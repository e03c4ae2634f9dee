"""What is large stays in the database where a list doesn't show it."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluation.models import EvaluationRun
from evaluation.submissions.selectors import list_runs
from tests.support.board_of_two import board  # noqa: F401

pytestmark = pytest.mark.django_db
LARGE_COLUMNS = (
    '"evaluation_evaluationrun"."measurements"',
    '"leaderboard_snapshot"."config_text"',
)


@pytest.mark.parametrize(
    "address",
    [
        "/t/nli/leaderboard/?model={first}",
        "/t/nli/leaderboard/compare/?a={first}&b={second}",
        "/t/nli/leaderboard/snapshots/",
        "/api/v1/tasks/nli/leaderboard/snapshots/",
        "/api/v1/models/{first}/runs/",
        "/api/v1/models/{first}/scores/",
        "/m/{first}/",
    ],
)
def test_lists_leave_large_columns_out(board, client, address):
    first, second = (run.submission for run in EvaluationRun.objects.filter(version=board))
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address.format(first=first.pk, second=second.pk))
    assert answer.status_code == 200
    statements = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert not [one for one in statements if any(name in one for name in LARGE_COLUMNS)]


def test_runs_of_a_model_come_without_measurements(board):
    run = EvaluationRun.objects.filter(version=board).first()
    assert {"log", "measurements"} <= list_runs(run.submission)[0].get_deferred_fields()
