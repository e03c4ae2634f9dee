"""Read what models would score on whole rounds of which people judged a sample."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from evaluation.models import EvaluationRun, WholeRoundScore
from evaluation.runs.selectors import filter_counting_runs


def find_shown_whole_rounds(
    runs: Iterable[EvaluationRun], *, is_exact: bool
) -> list[WholeRoundScore]:
    """Return the estimates of these runs that the reader may see, with their runs.

    runs: with their versions and sets. is_exact: whether the reader edits the task. On sealed sets
    nobody else sees an estimate: its weights tell of single examples, and no rounding limits that.
    One query, or none if people judged all of each round.
    """
    run_by_id: dict[Any, EvaluationRun] = {}
    for run in runs:
        if run.version.is_whole_round and (is_exact or not run.version.is_sealed):
            run_by_id[run.pk] = run
    if not run_by_id:
        return []
    scores = list(WholeRoundScore.objects.filter(run__in=run_by_id).order_by("pk"))
    for score in scores:
        score.run = run_by_id[score.run_id]
    return scores


def find_whole_round_scores(
    version_ids: Collection[int],
) -> Mapping[tuple[UUID, int], WholeRoundScore]:
    """Return the estimates on these versions by model and version. One query, or none."""
    if not version_ids:
        return {}
    runs = filter_counting_runs(EvaluationRun.objects.filter(version__in=version_ids))
    scores = WholeRoundScore.objects.filter(run__in=runs.order_by().values("pk"))
    return {
        (score.run.submission_id, score.run.version_id): score
        for score in scores.select_related("run").defer("run__log", "run__measurements")
    }
