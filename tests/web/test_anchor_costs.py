"""Speed and memory of the reference models, measured on this site."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from core.accounts.models import LogEntry
from evaluation.training.reference import ABOUT_MODEL
from leaderboard.board.matrix import read_matrix
from leaderboard.board.ranked import rank_board
from leaderboard.board.services import store_anchor_costs
from leaderboard.board.tables import build_board_table
from leaderboard.management.commands import measure_anchors
from leaderboard.models import Board
from leaderboard.ranking.weights import Weighting
from tests.support.boards import fill_board
from tests.support.factories import TaskFactory

SPEED = Weighting(
    {"throughput": 4.0, "memory": 1.0, "accuracy": 1.0}, {"round-1": 8.0, "round-2": 0.0}
)


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


HERE = {"bag-of-words": {"throughput": 200.0, "memory": 1.0},
        "starter": {"throughput": 2.0, "memory": 4.0}}  # fmt: skip


def test_costs_measured_here_are_versions_and_change_the_scale(task):
    fill_board(task)
    shipped_scale = build_board_table(
        task, read_matrix(task), rank_board(read_matrix(task), SPEED)
    )["anchors"]
    assert shipped_scale["costs"] == 0
    for version in (1, 2):
        store_anchor_costs(task=task, runner="process", rows=HERE)
        matrix = read_matrix(task)
        found = build_board_table(task, matrix, rank_board(matrix, SPEED))["anchors"]
        assert (found["version"], found["costs"]) == (shipped_scale["version"], version)
        assert found["scales"]["throughput"] == {"low": 0.2, "high": 200.0}
        assert found["scales"]["memory"] == {"low": 40.0, "high": 1.0}
        assert found["scales"]["accuracy"] == shipped_scale["scales"]["accuracy"]
    assert LogEntry.objects.filter(action="board.anchors_measured").count() == 2


def test_a_reader_hears_where_speed_and_memory_were_measured(task):
    fill_board(task)

    def told():
        matrix = read_matrix(task)
        return [one for one in rank_board(matrix, SPEED).notices if "measure_anchors" in one]

    assert len(told()) == 1
    store_anchor_costs(task=task, runner="docker", rows=HERE)
    assert len(told()) == 1  # the models here were run as processes
    store_anchor_costs(task=task, runner="process", rows=HERE)
    assert told() == []


def test_the_command_measures_each_reference_model(task, monkeypatch, capsys):
    """What it asks for and keeps; running them takes a minute."""
    asked = []

    def report(self, task, name, folder, wanted):
        asked.append((name, wanted))
        return {
            "outcome": "ok", "sentence": "", "perturbations": {}, "runner": wanted,
            "throughput": {"examples_per_second": 50.0}, "memory": {"peak_bytes": 2**30},
        }  # fmt: skip

    monkeypatch.setattr(measure_anchors.Command, "_run_reference_model", report)
    call_command("measure_anchors", "nli", "--runner", "process")
    assert asked == [(name, "process") for name in ABOUT_MODEL]
    kept = Board.objects.get(task=task).anchor_costs
    assert (kept["version"], kept["runner"]) == (1, "process")
    assert kept["rows"] == {name: {"throughput": 50.0, "memory": 1.0} for name in ABOUT_MODEL}
    with pytest.raises(CommandError):
        call_command("measure_anchors", "vqa")
    monkeypatch.setattr(
        measure_anchors.Command,
        "_run_reference_model",
        lambda *_: {"outcome": "oom", "sentence": "Too big.", "perturbations": {}},
    )
    with pytest.raises(CommandError, match="oom"):
        call_command("measure_anchors", "nli")
    assert Board.objects.get(task=task).anchor_costs == kept
