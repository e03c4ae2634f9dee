"""Find the models that this site serves and that fit another task."""

from typing import Any

from core.accounts.models import User
from tasks.config.parsing import ConfigError
from tasks.models import TargetModel, Task
from tasks.permissions import cache_roles
from tasks.targets.sources import can_copy

COPIED_FIELDS = ("adapter", "source", "revision", "options", "serving")
"""The settings that a target takes over from a served model."""


def find_served_models(task: Task, user: User) -> list[TargetModel]:
    """Return the models that this site serves for other tasks and that fit this task.

    Models that the user may not copy are left out.
    """
    # Served by this site: no address, no secret of somebody else's.
    rows = TargetModel.objects.filter(url="", secret_env="").exclude(source="").exclude(task=task)
    targets = list(rows.select_related("task"))
    cache_roles(user, [target.task for target in targets])  # one query for all tasks
    shape = _describe_shape(task)
    return [
        target
        for target in targets
        if can_copy(user, target) and shape and _describe_shape(target.task) == shape
    ]


def _describe_shape(task: Task) -> tuple[Any, ...]:
    """Return a model's inputs and outputs for the task, in a form that can be compared.

    Empty if the stored configuration cannot be read any more.
    """
    try:
        config = task.config
    except ConfigError:
        return ()
    answer = config.get_component(config.answer_field)
    # A set of labels: two tasks may list the same ones in another order.
    return config.model_fields, answer.name, answer.type, frozenset(answer.values)
