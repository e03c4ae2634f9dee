"""The weights that a board opens with: the owner's, or those of a fork."""

from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import get_object_or_404

from leaderboard.ranking.weights import Weighting, build_opening_weights, restore_saved_weights
from tasks.models import Task

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix


def choose_opening_weights(task: Task, matrix: "Matrix") -> Weighting:
    """Return the weights that the task's owner chose."""
    sets = [each.name for each in matrix.counting_sets]
    return build_opening_weights(matrix.weighable_metrics, task.config.weights, sets)


def find_start_weights(task: Task, matrix: "Matrix", fork: str | None) -> Weighting:
    """Return the owner's weights, or those of a fork. Raises Http404 for an unknown fork."""
    start = choose_opening_weights(task, matrix)
    if not fork:
        return start
    if not fork.isprintable():  # PostgreSQL refuses NUL
        raise Http404
    saved = get_object_or_404(task.forks, name=fork)
    return restore_saved_weights(saved.metrics, saved.evaluation_sets, start)
