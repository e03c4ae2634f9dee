"""Look up objects that a command's arguments name. CommandError lists those that exist."""

from django.core.management.base import CommandError

from tasks.models import Round, Task


def get_task(code: str) -> Task:
    """Return the task with this code. Raises CommandError."""
    if task := Task.objects.filter(code=code).first():
        return task
    codes = ", ".join(Task.objects.values_list("code", flat=True))
    raise CommandError(f"There is no task {code!r}. Tasks: {codes or 'none'}.")


def build_missing_round_error(task: Task, description: str) -> CommandError:
    """Return the error for a missing round, which lists the task's rounds.

    description: a noun phrase for the missing round.
    """
    round_numbers = ", ".join(f"{round.number} ({round.state})" for round in task.rounds.all())
    return CommandError(f"{task.code} has no {description}. Rounds: {round_numbers or 'none'}.")


def get_round(task: Task, number: int) -> Round:
    """Return the task's round with this number. Raises CommandError."""
    if round := task.rounds.select_related("task").filter(number=number).first():
        return round
    raise build_missing_round_error(task, f"round {number}")
