"""Judging's answers to what annotation asks (`annotation.questions`)."""

from typing import Any

from annotation import questions
from core.accounts.models import Annotator
from tasks.models import Task
from tasks.permissions import can_enter_judging
from validation.judging import blind, queue
from validation.judging.confirmed import do_votes_count


@questions.count_examples_to_judge.answer
def count_examples_to_judge(annotator: Annotator, task: Task) -> int:
    """Return how many examples of the task the person can judge now.

    0 if the person may not judge in this task.
    """
    user: Any = annotator.user  # never None here: only people with an account write
    can_judge_task = can_enter_judging(user, task) and do_votes_count(annotator, task)
    if not can_judge_task or blind.can_read_labels(annotator, task):
        return 0
    return queue.count_places(annotator, [task.pk])[task.pk]
