"""The board by language pair, for tasks with the language pair as a slice."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING
from uuid import UUID

from dynabench.communities.models import CommunityTask
from dynabench.communities.rules import (
    NO_MEASUREMENT,
    BoardLine,
    Entrant,
    MeasuredScore,
    rank_entrants,
)
from evaluation.models import EvaluationRun, Score
from evaluation.runs.selectors import filter_counting_runs
from tasks.models import Task

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.board.matrix import Matrix

PAIR_SLICE = "pair"


@dataclass(frozen=True)
class PairBoard:
    """The leaderboard of a task by language pair.

    pairs: the displayed pairs. sources, targets, metrics: the options of the filters. source,
    target, metric: the selected options; an empty source or target selects all.
    """

    task: Task
    pairs: Sequence[str]
    lines: Sequence[BoardLine]
    metrics: Sequence[str]
    metric: str
    sources: Sequence[str]
    targets: Sequence[str]
    source: str
    target: str

    @property
    def rows(self) -> list[tuple[BoardLine, list[MeasuredScore]]]:
        """Return each line with its points for each displayed pair."""
        rows = []
        for line in self.lines:
            rows.append((line, [line.points.get(pair, NO_MEASUREMENT) for pair in self.pairs]))
        return rows


def filter_tasks_with_pairs(entries: Collection[CommunityTask]) -> list[Task]:
    """Return the tasks whose results are split by language pair."""
    return [entry.task for entry in entries if PAIR_SLICE in entry.task.config.slices]


def build_pair_board(task: Task, query: Mapping[str, str]) -> PairBoard:
    """Return the public models of a task by language pair.

    query: the URL's parameters, with `source`, `target` and `metric`.

    Sets with secret answers are left out, because their scores by slice are secret, too.
    A model's score is the unweighted mean over the displayed pairs; a model that lacks one has no
    score. The score has no interval: the pairs share sentences, so their errors are not
    independent.
    """
    from leaderboard.board.matrix import read_matrix  # loads numpy

    matrix = read_matrix(task)
    # Those computed from examples: speed or memory has no value of a pair.
    metrics = [name for name in matrix.metrics if name in matrix.drawn_metrics]
    metric = query.get("metric", "")
    if metric not in metrics:
        metric = matrix.main
    values_by_model = _average_values(matrix, metric)
    pairs = sorted(set().union(*values_by_model.values()))
    source, target = query.get("source", ""), query.get("target", "")
    sources, targets, shown_pairs = set(), set(), []
    for pair in pairs:
        pair_source, _, pair_target = pair.partition("-")  # such as de-en
        sources.add(pair_source)
        targets.add(pair_target)
        if source in ("", pair_source) and target in ("", pair_target):
            shown_pairs.append(pair)
    entrants = [
        Entrant(
            str(model.id), model.name, model.team or model.owner, "", values_by_model[model.id], {}
        )
        for model in matrix.models
        if model.id in values_by_model
    ]
    # Each pair counts the same, and its points are the metric itself: the floor is 0.
    lines = rank_entrants(entrants, dict.fromkeys(shown_pairs, 1.0), dict.fromkeys(pairs, 0.0))
    return PairBoard(
        task=task,
        pairs=shown_pairs,
        lines=lines,
        metrics=metrics,
        metric=metric,
        sources=sorted(sources),
        targets=sorted(targets),
        source=source,
        target=target,
    )


def _average_values(matrix: "Matrix", metric: str) -> dict[UUID, dict[str, MeasuredScore]]:
    """Return a metric's mean over the open sets that count, in percent, by model id and pair."""
    model_ids: dict[UUID, UUID] = {}
    for model in matrix.models:
        # One model may have a file of predictions for each set.
        model_ids.update(dict.fromkeys(model.files, model.id))
    open_sets = [
        evaluation_set.version_id
        for evaluation_set in matrix.sets
        if evaluation_set.counts and not evaluation_set.is_sealed
    ]
    runs = filter_counting_runs(
        EvaluationRun.objects.filter(version__in=open_sets, submission__in=model_ids)
    )
    scores = Score.objects.filter(
        run__in=runs.filter(suite=EvaluationRun.Suite.PLAIN).values("pk"),
        metric=metric,
        slice__startswith=f"{PAIR_SLICE}=",
        kind="",
        value__isnull=False,
    )
    percents: dict[UUID, dict[str, list[float]]] = {}
    for submission, slice_name, value in scores.values_list("run__submission", "slice", "value"):
        percents_by_pair = percents.setdefault(model_ids[submission], {})
        pair = slice_name.removeprefix(f"{PAIR_SLICE}=")
        percents_by_pair.setdefault(pair, []).append(100 * (value or 0.0))
    means = {}
    for model_id, percents_by_pair in percents.items():
        means[model_id] = {
            pair: MeasuredScore(fmean(values)) for pair, values in percents_by_pair.items()
        }
    return means
