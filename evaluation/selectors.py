"""Reads about datasets and trainings."""

from collections.abc import Iterable, Mapping

from evaluation.models import Dataset, TrainingRun
from tasks.models import Round, RoundTarget, TargetModel, Task

NOT_OPENED = (Round.State.DRAFT, Round.State.READY)


def latest_datasets(rounds: Iterable[Round]) -> Mapping[int, Dataset]:
    """The newest finished dataset of each round, by round id; one query."""
    rows = Dataset.objects.select_related("round__task")
    done = rows.filter(round__in=rounds, state=Dataset.State.DONE)
    return {dataset.round_id: dataset for dataset in done.order_by("version")}


def current_target(task: Task) -> TargetModel | None:
    """The first target of the newest round that was opened; what a next target is compared with."""
    asked = RoundTarget.objects.filter(round__task=task).exclude(round__state__in=NOT_OPENED)
    newest = asked.select_related("target__task").order_by("-round__number", "position").first()
    return newest.target if newest else None


def in_the_loop_rounds(target: TargetModel) -> list[int]:
    """Numbers of the rounds that the target helped to create: people wrote against it."""
    asked = RoundTarget.objects.filter(target=target).exclude(round__state__in=NOT_OPENED)
    return sorted(asked.values_list("round__number", flat=True))


def trained_on_rounds(target: TargetModel) -> list[int]:
    """Numbers of the rounds whose data the target was trained on, as far as we trained it."""
    runs = TrainingRun.objects.filter(target=target).values_list("options__weights", flat=True)
    names = {name for weights in runs for name in weights} - {"seed"}
    return sorted(int(name.removeprefix("round")) for name in names)
