"""The result of one model for programs that wait for it: place and numbers, or why there are none.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.submissions.progress import Progress, add_wait, describe_progress
from evaluation.submissions.selectors import keep_latest_runs, list_runs
from evaluation.submissions.visibility import (
    Viewer,
    find_shown_name,
    hide_model_output,
    may_see_scores,
)
from evaluation.test_sets.shown_scores import list_scores
from leaderboard.board.cells import BoardScore, Cell
from leaderboard.board.columns import COLUMN_BY_SUITE as COLUMNS
from leaderboard.board.columns import COSTS, DETAIL_METRICS, RUN_COLUMNS
from leaderboard.board.exports import describe_early
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.ranked import RankedBoard, RankedModel, rank_board
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import read_cell
from tasks.config.schema import LLM_JUDGE
from tasks.models import Round
from tasks.permissions import Person
from tasks.selectors import find_opened_rounds

AXES = (*COSTS, "fairness", "robustness")
OTHER_METRICS = (*AXES, *sorted(DETAIL_METRICS))
"""Metrics that are given separately, as means over the sets with a weight."""
CORRECTNESS_METRICS = ("accuracy", "exact_match", "vqa_accuracy")
"""Metrics that are shares of right answers: `roundN_acc` is the first of them that a task has."""
DIGITS = 6
EMPTY_CELL = Cell(None)
RoundResult = tuple[float | None, str]
"""A model's number for a round (0-1), and a note: what to know of it, or why there is none."""


class _Lookup(NamedTuple):
    """A board and one model's row on it; row is None for a model that is not listed."""

    matrix: Matrix
    board: RankedBoard
    row: RankedModel | None


def build_model_results(submission: Submission, viewer: Viewer, user: Person) -> dict[str, Any]:
    """Return a model's results on its board, by the board's opening weights.

    Unknown values are None, and `notes` gives the reasons. An unpublished model is ranked among the
    published ones, as its owner sees it. Rates are 0-1, the Dynascore is as on the board.
    """
    task, runs = submission.task, list_runs(submission)
    lookup = _look_up(submission, user)
    matrix, row = lookup.matrix, lookup.row
    # The evaluation may be over before a worker has renewed the board.
    progress = _await_board(add_wait(describe_progress(submission, runs), runs), runs, matrix, row)
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


def _look_up(submission: Submission, user: Person) -> _Lookup:
    """Find a model's row on its board, by the board's opening weights."""
    task = submission.task
    matrix = score_matrix(task, None if submission.is_published else user)
    board = rank_board(matrix, choose_opening_weights(task, matrix))
    for row in board.rows:
        if submission.pk in row.model.files:
            return _Lookup(matrix, board, row)
    return _Lookup(matrix, board, None)


def _await_board(
    progress: Progress, runs: Sequence[EvaluationRun], matrix: Matrix, row: RankedModel | None
) -> Progress:
    """Return the progress; it is not over until the board has every result of the model.

    If two evaluations end at once, the numbers are read again when the board is renewed.
    """
    if not progress.is_over or row is None:
        return progress
    finished_versions = {
        run.version_id for run in runs if run.suite == "plain" and run.outcome == Outcome.OK
    }
    numbers = matrix.numbers
    for place, board_set in enumerate(matrix.sets):
        is_read = numbers.runners[row.place, place] or numbers.kept_back[row.place, place]
        if board_set.version_id in finished_versions and not is_read:
            sentence = "The board is renewed."
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
    places = {each.round: place for place, each in enumerate(matrix.sets) if each.round}
    results = {}
    for number in sorted({1, *states}):
        if number in places:
            results[number] = _build_round_result(matrix, row, places[number], metric)
        else:
            results[number] = None, _explain_missing_set(number, states.get(number))
    return results


def _build_round_result(
    matrix: Matrix, row: RankedModel | None, place: int, metric: str | None
) -> RoundResult:
    """Return a model's result on a round's set, or the reason why it has none."""
    board_set, numbers = matrix.sets[place], matrix.numbers
    if metric is None:
        return None, f"none of this task's metrics is an accuracy; see scores[{board_set.name!r}]."
    if row is None:
        return None, f"not run on {board_set.title}."
    cell = read_cell(matrix, row.place, place, metric)
    if cell.value is not None:
        return round(cell.value / 100, DIGITS), " ".join(_iter_warnings(board_set))
    if numbers.kept_back[row.place, place]:
        return None, f"kept back: {board_set.title} is sealed."
    older = " (only an older version was)" if numbers.outdated[row.place, place] else ""
    return None, f"not run on {board_set.title}{older}."


def _iter_warnings(board_set: BoardSet) -> Iterator[str]:
    """Yield warnings for readers of the result on a round's set."""
    if words := describe_early(asdict(board_set)):
        yield f"{words}: {board_set.title} was taken before its round was judged to the end."
    if board_set.is_small:
        yield (
            f"{board_set.title} has {board_set.size} examples; a board ranks by a round's set of "
            f"{board_set.least}."
        )
    if board_set.is_sealed:
        yield f"{board_set.title} is sealed, so the number is rounded."


def _explain_missing_set(number: int, state: str | None) -> str:
    """Explain why a round has no set."""
    if state is None:
        return f"round {number} has not opened yet."
    if state in (Round.State.OPEN, Round.State.PAUSED):
        return (
            f"round {number} is not over. When it is closed its verified examples become a set, "
            "on which models are run."
        )
    if state == Round.State.CLOSED:
        return (
            f"round {number} is closed and has no set yet. It gets one when all its examples are "
            "decided, or when its owners take it as it is."
        )
    return f"round {number} has no set whose results are shown."


def _build_scores(matrix: Matrix, row: RankedModel | None) -> dict[str, Any]:
    """Return values by set and metric, each with its interval and its number of examples."""
    if row is None:
        return {}
    by_set: dict[str, Any] = {}
    sizes = _read_worst_part_sizes(matrix, row)
    for place, board_set in enumerate(matrix.sets):
        for column, name in enumerate(matrix.metrics):
            if name == LLM_JUDGE:  # never without the agreement: /models/<id>/llm-scores/
                continue
            cell = _convert_to_share(name, read_cell(matrix, row.place, place, name))
            if cell.value is None:
                continue
            # Means over all examples count them; costs have no count, so they are of the whole set.
            counted = int(matrix.numbers.n[row.place, place, column]) or board_set.size
            n = sizes.get((board_set.version_id, name), counted)
            is_rounded = board_set.is_sealed and name not in RUN_COLUMNS
            score = {**cell._asdict(), "n": n, "is_rounded": is_rounded}
            by_set.setdefault(board_set.name, {})[name] = score
    return by_set


def _read_worst_part_sizes(matrix: Matrix, row: RankedModel) -> dict[tuple[int, str], int]:
    """Return the sizes of worst groups and kinds, by version and column. Two queries."""
    versions = [each.version_id for each in matrix.sets if not each.is_sealed]
    runs = EvaluationRun.objects.filter(submission__in=row.model.files, version__in=versions)
    with_sets = filter_counting_runs(runs).select_related(
        "version__evaluation_set__task", "version__dataset"
    )
    # A log may have megabytes, and a dataset's numbers are large; neither is needed here.
    lean_runs = with_sets.defer("log", "version__dataset__numbers")
    sizes = {}
    for score in list_scores(lean_runs, exact=False):
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
        yield "It is not over yet, so numbers may be missing or change."
    yield from _iter_score_notes(lookup, progress)
    for number, (_value, note) in rounds.items():
        if note:
            yield f"round{number}_acc: {note}"
    if lookup.row is None:
        return
    metrics = lookup.row.metrics
    for name in AXES:
        if name in metrics and metrics[name].value is None:
            yield (
                f"{name}: not measured on every set with a weight, or not in a way that compares."
            )
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
        reason = "there is no set yet"
        if row.missing:
            reason = f"not run: {', '.join(row.missing)}"
        elif lookup.matrix.sets:
            reason = "no set is large enough to rank by"
        yield f"dynascore: {reason}."
    elif row.dynascore.is_range:
        yield f"dynascore: a range, as it was not measured on: {', '.join(row.missing)}."


def _has_failed(progress: Progress, row: RankedModel | None) -> bool:
    """Return whether the evaluation ended without the score that the model was submitted for."""
    return progress.is_over and (row is None or row.dynascore.least is None)


def _build_error(
    submission: Submission, runs: Sequence[EvaluationRun], viewer: Viewer
) -> dict[str, Any] | None:
    """Return the result of the failed check or of the first evaluation without a score.

    For members only. Perturbed evaluations come last, because they depend on the plain one.
    """
    if not viewer.is_inside or submission.withdrawn_at:
        return None
    if submission.state != Submission.State.DONE:
        return _build_job_body(submission, submission.outcome, limit="", measured="")
    # The sort is stable, so within each group the order of the runs stays.
    plain_first = sorted(
        keep_latest_runs(runs), key=lambda run: run.suite != EvaluationRun.Suite.PLAIN
    )
    for run in plain_first:
        if run.is_over and run.outcome != Outcome.OK and may_see_scores(run, viewer):
            seen = hide_model_output(run, viewer)
            return _build_job_body(seen, seen.outcome, limit=seen.limit, measured=seen.measured)
    return None


def _build_job_body(job: Submission | EvaluationRun, outcome: str, **hit: str) -> dict[str, Any]:
    return {"outcome": outcome or job.state, "sentence": job.error, **hit, "log": job.log}
