"""Snapshots and renewals of a board at the same instant."""

import numpy as np
import pytest

from core.accounts.models import LogEntry
from core.errors import Refused
from leaderboard.board.forks.services import save_weights
from leaderboard.board.services import freeze_rates
from leaderboard.jobs import renew_boards
from leaderboard.models import Board, Resample, Snapshot, Weights
from leaderboard.ranking.weights import Weighting
from leaderboard.snapshots.services import take_snapshot
from tests.support.boards import fill_board
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 8


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task():
    task = TaskFactory(code="nli")
    fill_board(task)
    return task


def test_snapshots_at_once_have_numbers_without_gaps_or_doubles(task, at_once):
    made = at_once(lambda _: take_snapshot(task=task, actor=None), range(THREADS))
    assert sorted(snapshot.number for snapshot in made) == list(range(1, THREADS + 1))
    taken = LogEntry.objects.filter(action="snapshot.taken")
    assert Snapshot.objects.count() == taken.count() == THREADS


def test_two_workers_renew_a_board_once(task, at_once, monkeypatch):
    from leaderboard import jobs

    monkeypatch.setattr(
        jobs, "_iter_values", lambda run: [("accuracy", np.ones(200, "<f4").tobytes())]
    )
    at_once(lambda _: renew_boards(), range(4))
    assert Resample.objects.count() == Resample.objects.values("run").distinct().count() == 18
    assert Snapshot.objects.count() == Board.objects.count() == 1
    assert LogEntry.objects.filter(action="board.frozen").count() == 1


def test_rates_are_frozen_once(task, at_once):
    made = at_once(lambda _: freeze_rates(task=task), range(THREADS))
    assert len(list(filter(None, made))) == 1
    assert LogEntry.objects.filter(action="board.frozen").count() == 1


def test_a_name_for_weights_is_given_once(task, at_once):
    people = UserFactory.create_batch(THREADS)

    def save(person):
        try:
            weighting = Weighting({"accuracy": 1.0}, {})
            return save_weights(task=task, owner=person, name="mine", weighting=weighting)
        except Refused:
            return None

    made = at_once(save, people)
    assert len(list(filter(None, made))) == Weights.objects.count() == 1
