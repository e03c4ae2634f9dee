"""The deletion of the demo: its task with all rows and files, and its people."""

import shutil
from collections.abc import Iterator

from django.core.files.storage import default_storage
from django.db import transaction

from annotation.models import Attempt, Example, TargetOutput
from core.accounts.counting import tidy_counted_people
from core.accounts.models import Annotator, LogEntry, User
from core.errors import Refused
from dynabench.operations.demo.community import EMAIL_DOMAIN, find_model_folder
from evaluation.models import (
    Dataset,
    DatasetFile,
    EvaluationRun,
    EvaluationSetVersion,
    Submission,
    UploadPiece,
)
from leaderboard.models import Snapshot
from tasks.models import SIMULATED_TASK_CODE, Round, Task
from tasks.questions import find_deletion_problem
from validation.models import Validation


def count_real_people() -> int:
    """Return how many real people wrote or judged in the demo.

    If the demo is deleted, their rows in it are deleted, too.
    """
    demo_votes = {"example__round__task__code": SIMULATED_TASK_CODE}
    real_annotators = Annotator.objects.exclude(user__email__endswith=f"@{EMAIL_DOMAIN}")
    real_writers = real_annotators.filter(examples__round__task__code=SIMULATED_TASK_CODE)
    real_judges = real_annotators.filter(
        pk__in=Validation.objects.filter(**demo_votes).values("validator")
    )
    return (real_writers | real_judges).distinct().count()


def delete_demo_task() -> int:
    """Delete the demo; return how many examples it had.

    Real people's examples and votes in the task are deleted, too, but nothing else of theirs. Jobs
    of the demo that are running lose their lease. Raises Refused while something else needs it.
    """
    task = Task.objects.filter(code=SIMULATED_TASK_CODE).first()
    # An administrator may have planned a study of it.
    if task and (problem := find_deletion_problem(task)):
        raise Refused(problem, code="used")
    files: list[str] = []
    example_count = 0
    if task:  # the names first: rows that are gone name no files
        files = list(_find_files(task))
    with transaction.atomic():
        if task:
            example_count = _delete_task(task)
        LogEntry.objects.filter(task=SIMULATED_TASK_CODE).delete()
        people = User.objects.filter(email__endswith=f"@{EMAIL_DOMAIN}")
        Annotator.objects.filter(user__in=people).delete()
        person_count = people.count()
        people.delete()
        tidy_counted_people(person_count)  # nothing counts for made-up addresses
    # After the transaction: one that fails has kept its files.
    for name in files:
        default_storage.delete(name)
    # Its trained targets, of which the rows are gone.
    shutil.rmtree(find_model_folder(), ignore_errors=True)
    return example_count


def _find_files(task: Task) -> Iterator[str]:
    """Yield the names of all stored files that the task's rows refer to."""
    columns = (
        (DatasetFile.objects.filter(dataset__round__task=task), "file"),
        (EvaluationSetVersion.objects.filter(evaluation_set__task=task), "inputs"),
        (EvaluationSetVersion.objects.filter(evaluation_set__task=task), "gold"),
        (EvaluationRun.objects.filter(submission__task=task), "predictions"),
        (Submission.objects.filter(task=task), "file"),
        (UploadPiece.objects.filter(upload__submission__task=task), "file"),
    )
    for rows, column in columns:
        yield from rows.exclude(**{column: ""}).values_list(column, flat=True)


def _delete_task(task: Task) -> int:
    """Delete the task's rows in the order that protected foreign keys require.

    Return how many examples it had.
    """
    examples = Example.objects.filter(round__task=task)
    example_count = examples.count()
    Snapshot.objects.filter(task=task).delete()
    EvaluationRun.objects.filter(submission__task=task).delete()
    Submission.objects.filter(task=task).delete()
    EvaluationSetVersion.objects.filter(evaluation_set__task=task).delete()
    Dataset.objects.filter(round__task=task).delete()
    Validation.objects.filter(example__in=examples).delete()
    TargetOutput.objects.filter(example__in=examples).delete()
    Attempt.objects.filter(assignment__round__task=task).delete()
    examples.delete()
    # As if they had never been opened: the database keeps the targets of those that were.
    task.rounds.update(state=Round.State.DRAFT, opened_at=None)
    task.rounds.all().delete()
    task.delete()
    return example_count
