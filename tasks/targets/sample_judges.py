"""Which models of a task can judge a sample of a round, and which one its configuration names."""

from django.db.models import QuerySet

from tasks.config.judging_checks import has_comparable_labels
from tasks.config.schema import TaskConfig
from tasks.models import Round, TargetModel, Task

INSTRUCTED_ADAPTER = "openai_chat"
"""The adapter of models that can judge by an instruction."""


def list_possible_judges(round: Round) -> list[TargetModel]:
    """Return the task's models that can judge the round, by name.

    Models to fool are left out: they answered every possible catch wrongly, so they tell nothing.
    """
    targets = round.task.targets.exclude(rounds=round).order_by("name")
    if not has_comparable_labels(round.task.config):
        targets = targets.filter(adapter=INSTRUCTED_ADAPTER)
    return list(targets)


def find_sample_judge(round: Round) -> TargetModel | None:
    """Return the judge model that the task's configuration names; None if the round can't have it.

    None also without a sample in the configuration. One query, or none.
    """
    config = round.task.config
    sample = config.validation.sample
    if sample is None:
        return None
    return select_configured_judges(round.task, config, round).filter(name=sample.judge).first()


def select_configured_judges(
    task: Task, config: TaskConfig, round: Round | None
) -> QuerySet[TargetModel]:
    """Select the task's models that can judge in the way that a configuration with a sample says.

    round: authors may not try to fool them in this one; None leaves this open.
    """
    targets = TargetModel.objects.filter(task=task)
    if round is not None:
        targets = targets.exclude(rounds=round)
    sample = config.validation.sample
    is_instructed = sample is not None and sample.by_instruction
    # Others give only their own label.
    if is_instructed or not has_comparable_labels(config):
        targets = targets.filter(adapter=INSTRUCTED_ADAPTER)
    return targets
