"""Reads about datasets and trainings."""

from collections.abc import Iterable, Mapping

from evaluation.models import Dataset
from tasks.models import Round


def latest_datasets(rounds: Iterable[Round]) -> Mapping[int, Dataset]:
    """The newest finished dataset of each round, by round id; one query."""
    done = Dataset.objects.filter(round__in=rounds, state=Dataset.State.DONE)
    return {dataset.round_id: dataset for dataset in done.order_by("version")}
