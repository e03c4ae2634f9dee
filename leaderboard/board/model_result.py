"""The result of one model for programs that wait for it: rank and numbers, or why there are none.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.scoring.worst import COLUMN_BY_SUITE as COLUMNS
from evaluation.submissions.progress import Progress, add_queue_position, describe_progress
from evaluation.submissions.selectors import keep_latest_runs, list_runs
from evaluation.submissions.visibility import (
    Viewer,
    find_shown_name,
    hide_model_output,
    may_see_scores,
)
from evaluation.test_sets.shown_scores import list_scores
from leaderboard.board.cells import BoardScore, Cell
from leaderboard.board.columns import COST_METRICS, DETAIL_METRICS, RUN_COLUMNS
from leaderboard.board.exports import describe_early_set
from leaderboard.board.matrix import Matrix, read_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.ranked import RankedBoard, RankedModel, rank_board
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import read_cell
from tasks.config.schema import LLM_JUDGE
from tasks.models import Round
from tasks.permissions import Person
from tasks.selectors import find_opened_rounds

AXES = (*COST_METRICS, "fairness", "robustness")
OTHER_METRICS = (*AXES, *sorted(DETAIL_METRICS))
"""Metrics that are given separately, as means over the sets with a weight."""
CORRECTNESS_METRICS = ("accuracy", "exact_match", "vqa_accuracy")
"""Metrics that are shares of right answers: `roundN_acc` is the first of them that a task has."""
DIGITS = 6
EMPTY_CELL = Cell(None)
RoundResult = tuple[float | None, str]
"""A model's result on a round (0-1), and a note on it or the reason why it is missing."""


class _Lookup(NamedTuple):
    """A board and one model's row on it; row is None for a model that is not listed."""

    matrix: Matrix
    board: RankedBoard
    row: RankedModel | None


def build_model_results(submission: Submission, viewer: Viewer, user: Person) -> dict[str, Any]:
    """Return a model's results on its board, with the board's opening weights.

    Unknown values are None, and `notes` gives the reasons. An unpublished model is ranked among the
    published ones, as its owner sees it. Rates are 0-1, the Dynascore is as on the board.
    """
    task, runs = submission.task, list_runs(submission)
    lookup = _find_on_board(submission, user)
    matrix, row = lookup.matrix, lookup.row
    # The evaluation may end before a worker has renewed the board.
    progress = _add_board_wait(
        add_queue_position(describe_progress(submission, runs), runs), runs, matrix, row
    )
    rounds = _build_round_results(matrix, row, find_opened_rounds([task]))
    score = row.dynascore if row else BoardScore(None)
    return {
        "model": str(submission.pk),
        "name": find_shown_name(submission, viewer),
        "task": task.code,
        "phase": progress.phase,
        "sentence": progress.sentence,
        "is_over": progress.is_over,
        "dynascore": score.value,
        "dynascore_low": score.low,
        "dynascore_high": score.high,
        "dynascore_least": score.least,
        "dynascore_most": score.most,
        "rank": row.rank if row and row.rank else None,
        **{f"round{number}_acc": value for number, (value, _) in rounds.items()},
        "scores": _build_scores(matrix, row),
        **_build_other_means(row),
        "notes": list(_iter_notes(lookup, progress, rounds)),
        "error": _build_error(submission, runs, viewer) if _has_failed(progress, row) else None,
    }


def _find_on_board(submission: Submission, user: Person) -> _Lookup:
    """Find a model's row on its board, ranked with the board's opening weights."""
    task = submission.task
    matrix = read_matrix(task, None if submission.is_published else user)
    board = rank_board(matrix, choose_opening_weights(task, matrix))
    for row in board.rows:
        if submission.pk in row.model.files:
            return _Lookup(matrix, board, row)
    return _Lookup(matrix, board, None)


def _add_board_wait(
    progress: Progress, runs: Sequence[EvaluationRun], matrix: Matrix, row: RankedModel | None
) -> Progress:
    """Return the progress, which is not over until the board has every result of the model.

    Results of evaluations that end at once may reach the board only when it is renewed.
    """
    if not progress.is_over or row is None:
        return progress
    finished_versions = {
        run.version_id for run in runs if run.suite == "plain" and run.outcome == Outcome.OK
    }
    numbers = matrix.numbers
    for set_index, board_set in enumerate(matrix.sets):
        is_read = (
            numbers.runners[row.model_index, set_index]
            or numbers.kept_back[row.model_index, set_index]
        )
        if board_set.version_id in finished_versions and not is_read:
            sentence = "The leaderboard is being updated."
            return replace(progress, phase="renewing", sentence=sentence, is_over=False)
    return progress


def _build_round_results(
    matrix: Matrix, row: RankedModel | None, rounds: Sequence[Round]
) -> dict[int, RoundResult]:
    """Return the result on the first round and on each round that has opened, or why it is missing.

    The result is the accuracy on the round's newest set, whatever the main metric is.
    """
    metric = next((name for name in CORRECTNESS_METRICS if name in matrix.metrics), None)
    states = {round.number: round.state for round in rounds}
    set_index_by_round = {
        each.round: set_index for set_index, each in enumerate(matrix.sets) if each.round
    }
    results = {}
    for number in sorted({1, *states}):
        if number in set_index_by_round:
            results[number] = _build_round_result(matrix, row, set_index_by_round[number], metric)
        else:
            results[number] = None, _explain_missing_set(number, states.get(number))
    return results


def _build_round_result(
    matrix: Matrix, row: RankedModel | None, set_index: int, metric: str | None
) -> RoundResult:
    """Return a model's result on a round's set, or the reason why it has none."""
    board_set, numbers = matrix.sets[set_index], matrix.numbers
    if metric is None:
        return None, f"this task has no accuracy metric; see scores[{board_set.name!r}]."
    if row is None:
        return None, f"not run on {board_set.title}."
    cell = read_cell(matrix, row.model_index, set_index, metric)
    if cell.value is not None:
        return round(cell.value / 100, DIGITS), " ".join(_iter_warnings(board_set))
    if numbers.kept_back[row.model_index, set_index]:
        return None, f"hidden, because {board_set.title} is sealed."
    older = " (only on an older version)" if numbers.outdated[row.model_index, set_index] else ""
    return None, f"not run on {board_set.title}{older}."


def _iter_warnings(board_set: BoardSet) -> Iterator[str]:
    """Yield warnings for readers of the result on a round's set."""
    if words := describe_early_set(asdict(board_set)):
        yield f"{words}: {board_set.title} was taken before judging of its round ended."
    if board_set.is_small:
        yield (
            f"{board_set.title} has {board_set.size} examples; a set counts for the "
            f"ranking from {board_set.min_examples}."
        )
    if board_set.is_sealed:
        yield f"{board_set.title} is sealed, so the number is rounded."


def _explain_missing_set(number: int, state: str | None) -> str:
    """Explain why a round has no set."""
    if state is None:
        return f"round {number} hasn't opened yet."
    if state in (Round.State.OPEN, Round.State.PAUSED):
        return (
            f"round {number} is still running. When it closes, its confirmed examples "
            "become a test set for models."
        )
    if state == Round.State.CLOSED:
        return (
            f"round {number} is closed but has no test set yet. It gets one when all "
            "examples are decided, or when its owners create it earlier."
        )
    return f"round {number} has no test set with visible results."


def _build_scores(matrix: Matrix, row: RankedModel | None) -> dict[str, Any]:
    """Return values by set and metric, each with its interval and its number of examples."""
    if row is None:
        return {}
    scores_by_set: dict[str, Any] = {}
    sizes = _read_worst_part_sizes(matrix, row)
    for set_index, board_set in enumerate(matrix.sets):
        for column, name in enumerate(matrix.metrics):
            if name == LLM_JUDGE:  # never without the agreement: /models/<id>/llm-scores/
                continue
            cell = _convert_to_share(name, read_cell(matrix, row.model_index, set_index, name))
            if cell.value is None:
                continue
            # Means over all examples have a count; costs have none, so they are of the whole set.
            example_count = (
                int(matrix.numbers.n[row.model_index, set_index, column]) or board_set.size
            )
            n = sizes.get((board_set.version_id, name), example_count)
            is_rounded = board_set.is_sealed and name not in RUN_COLUMNS
            score = {**cell._asdict(), "n": n, "is_rounded": is_rounded}
            scores_by_set.setdefault(board_set.name, {})[name] = score
    return scores_by_set


def _read_worst_part_sizes(matrix: Matrix, row: RankedModel) -> dict[tuple[int, str], int]:
    """Return the sizes of worst groups and kinds, by version and column. Two queries."""
    versions = [each.version_id for each in matrix.sets if not each.is_sealed]
    runs = EvaluationRun.objects.filter(submission__in=row.model.files, version__in=versions)
    with_sets = filter_counting_runs(runs).select_related(
        "version__evaluation_set__task", "version__dataset"
    )
    # Logs, measurements and a dataset's numbers are large, and none is needed here.
    lean_runs = with_sets.defer("log", "measurements", "version__dataset__numbers")
    sizes = {}
    for score in list_scores(lean_runs, is_exact=False):
        axis = score.run.suite, score.metric
        if axis in COLUMNS and not score.kind and not score.slice:
            sizes[score.run.version_id, COLUMNS[axis]] = score.n
    return sizes


def _convert_to_share(name: str, cell: Cell) -> Cell:
    """Return a percentage as a share (0-1), and a cost unchanged."""
    unit = 1 if name in RUN_COLUMNS else 100
    numbers = [None if number is None else round(number / unit, DIGITS) for number in cell]
    return Cell(*numbers)


def _build_other_means(row: RankedModel | None) -> dict[str, float | None]:
    """Return the means of the metrics with separate keys in the response."""
    metrics: Mapping[str, Cell] = row.metrics if row else {}
    return {
        name: _convert_to_share(name, metrics.get(name, EMPTY_CELL)).value for name in OTHER_METRICS
    }


def _iter_notes(
    lookup: _Lookup, progress: Progress, rounds: Mapping[int, RoundResult]
) -> Iterator[str]:
    """Yield the reasons for values that are None, and other remarks on the numbers."""
    if not progress.is_over:
        yield "Evaluations are still running, so numbers may be missing or change."
    yield from _iter_score_notes(lookup, progress)
    for number, (_value, note) in rounds.items():
        if note:
            yield f"round{number}_acc: {note}"
    if lookup.row is None:
        return
    metrics = lookup.row.metrics
    for name in AXES:
        if name in metrics and metrics[name].value is None:
            yield (f"{name}: not measured on every weighted set, or not in a comparable way.")
    for name in AXES:
        if name not in metrics:
            yield f"{name}: not a metric of this task."
    yield from lookup.board.notices


def _iter_score_notes(lookup: _Lookup, progress: Progress) -> Iterator[str]:
    """Yield the reasons why the Dynascore is missing or a range."""
    row = lookup.row
    if row is None:
        yield f"dynascore: {progress.sentence}"
    elif row.dynascore.least is None:
        reason = "the task has no test set yet"
        if row.missing:
            reason = f"not run: {', '.join(row.missing)}"
        elif lookup.matrix.sets:
            reason = "no test set is large enough for the ranking"
        yield f"dynascore: {reason}."
    elif row.dynascore.is_range:
        yield f"dynascore: a range, because these were not measured: {', '.join(row.missing)}."


def _has_failed(progress: Progress, row: RankedModel | None) -> bool:
    """Return whether the evaluation ended without the score that the model was submitted for."""
    return progress.is_over and (row is None or row.dynascore.least is None)


def _build_error(
    submission: Submission, runs: Sequence[EvaluationRun], viewer: Viewer
) -> dict[str, Any] | None:
    """Return the result of the failed check or of the first evaluation without a score.

    None for readers who are not members, for withdrawn models, and if nothing failed. Perturbed
    evaluations come last, because they depend on the plain one.
    """
    if not viewer.is_inside or submission.withdrawn_at:
        return None
    if submission.state != Submission.State.DONE:
        return _build_job_body(submission, submission.outcome, limit="", measured="")
    # The sort is stable, so runs keep their order within each group.
    plain_first = sorted(
        keep_latest_runs(runs), key=lambda run: run.suite != EvaluationRun.Suite.PLAIN
    )
    for run in plain_first:
        if run.is_over and run.outcome != Outcome.OK and may_see_scores(run, viewer):
            shown_run = hide_model_output(run, viewer)
            return _build_job_body(
                shown_run, shown_run.outcome, limit=shown_run.limit, measured=shown_run.measured
            )
    return None


def _build_job_body(job: Submission | EvaluationRun, outcome: str, **hit: str) -> dict[str, Any]:
    return {"outcome": outcome or job.state, "sentence": job.error, **hit, "log": job.log}
