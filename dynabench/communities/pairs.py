"""The board by language pair, of tasks whose examples say their pair in a field `pair`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING
from uuid import UUID

from dynabench.communities.models import CommunityTask
from dynabench.communities.rules import Entrant, Line, Measured, across
from evaluation.models import EvaluationRun, Score
from evaluation.runs.selectors import counting
from tasks.models import Task

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.board.matrix import Matrix

PAIR = "pair"


@dataclass(frozen=True)
class PairBoard:
    """Models by pair. sources, targets: what the filters offer; metrics: what may be shown."""

    task: Task
    pairs: Sequence[str]
    lines: Sequence[Line]
    metrics: Sequence[str]
    metric: str
    sources: Sequence[str]
    targets: Sequence[str]
    source: str
    target: str

    @property
    def rows(self) -> list[tuple[Line, list[Measured]]]:
        """Each line with the points of each pair."""
        none = Measured(None)
        return [(line, [line.points.get(pair, none) for pair in self.pairs]) for line in self.lines]


def tasks_with_pairs(entries: Collection[CommunityTask]) -> list[Task]:
    """The tasks whose examples are scored apart by pair."""
    return [entry.task for entry in entries if PAIR in entry.task.config.slices]


def pair_board(task: Task, query: Mapping[str, str]) -> PairBoard:
    """The public models of a task by pair, as the query filters: source, target, metric.

    Sets whose answers are secret are left out, as their scores by part are. The score is the plain
    mean of the pairs shown; whoever lacks one has none. It has no interval: the pairs hold the same
    sentences, so their errors go together.
    """
    from leaderboard.board.matrix import score_matrix  # loads numpy

    matrix = score_matrix(task)
    metrics = [name for name in matrix.metrics if name in matrix.drawn]
    metric = query.get("metric", "")
    metric = metric if metric in metrics else matrix.main
    found = _values(matrix, metric)
    pairs = sorted({pair for one in found.values() for pair in one})
    sources, targets = ({pair.partition("-")[side] for pair in pairs} for side in (0, 2))
    source, target = query.get("source", ""), query.get("target", "")
    shown = [
        pair
        for pair in pairs
        if source in ("", pair.partition("-")[0]) and target in ("", pair.partition("-")[2])
    ]
    entrants = [
        Entrant(str(one.id), one.name, one.team or one.owner, "", found[one.id], {})
        for one in matrix.models
        if one.id in found
    ]
    lines = across(entrants, dict.fromkeys(shown, 1.0), dict.fromkeys(pairs, 0.0))
    return PairBoard(
        task, shown, lines, metrics, metric, sorted(sources), sorted(targets), source, target
    )


def _values(matrix: "Matrix", metric: str) -> dict[UUID, dict[str, Measured]]:
    """By the model's id and the pair, in percent: the mean of the open sets that count."""
    models = {pk: model.id for model in matrix.models for pk in model.files}
    open_sets = [one.version_id for one in matrix.sets if one.counts and not one.is_sealed]
    runs = counting(EvaluationRun.objects.filter(version__in=open_sets, submission__in=models))
    scores = Score.objects.filter(
        run__in=runs.filter(suite=EvaluationRun.Suite.PLAIN).values("pk"),
        metric=metric,
        slice__startswith=f"{PAIR}=",
        kind="",
        value__isnull=False,
    )
    found: dict[UUID, dict[str, list[float]]] = {}
    for pk, part, value in scores.values_list("run__submission", "slice", "value"):
        of_model = found.setdefault(models[pk], {})
        of_model.setdefault(part.removeprefix(f"{PAIR}="), []).append(100 * (value or 0.0))
    return {
        pk: {pair: Measured(fmean(values)) for pair, values in of_model.items()}
        for pk, of_model in found.items()
    }
