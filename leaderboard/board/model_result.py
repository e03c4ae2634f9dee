"""What became of one model, for programs that wait for it: its place and its numbers, or why not.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.selectors import counting
from evaluation.sets.shown_scores import list_scores
from evaluation.submissions.progress import Progress, progress_of, with_wait
from evaluation.submissions.selectors import latest, list_runs
from evaluation.submissions.visibility import Viewer, as_seen, may_see_scores, shown_name
from leaderboard.board.cells import BoardScore, Cell
from leaderboard.board.columns import ASIDE, COSTS, OF_RUNS
from leaderboard.board.columns import AXES as COLUMNS
from leaderboard.board.exports import early_words
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.opening import opening_of
from leaderboard.board.ranked import Ranked, RankedModel, rank_board
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import cell_of
from tasks.config.schema import LLM_JUDGE
from tasks.models import Round
from tasks.permissions import Person
from tasks.selectors import seen_rounds

AXES = (*COSTS, "fairness", "robustness")
OTHERS = (*AXES, *sorted(ASIDE))
"""Metrics that are given separately, as means over the sets with a weight."""
RIGHT = ("accuracy", "exact_match", "vqa_accuracy")
"""Metrics that are shares of right answers: `roundN_acc` is the first of them that a task has."""
DIGITS = 6
NOTHING = Cell(None)


def model_results(submission: Submission, viewer: Viewer, user: Person) -> dict[str, Any]:
    """Return a model's results on its board, by the weights that it opens with.

    Unknown values are None, and `notes` says why. An unpublished model is placed among the
    published ones, as its owner sees it. Rates are 0-1, the Dynascore is as on the board.
    """
    task, runs = submission.task, list_runs(submission)
    matrix = score_matrix(task, None if submission.is_published else user)
    board = rank_board(matrix, opening_of(task, matrix))
    row = next((row for row in board.rows if submission.pk in row.model.files), None)
    progress = _settled(with_wait(progress_of(submission, runs), runs), runs, matrix, row)
    rounds = _rounds(matrix, row, seen_rounds([task]))
    score = row.dynascore if row else BoardScore(None)
    return {
        "model": str(submission.pk),
        "name": shown_name(submission, viewer),
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
        "scores": _scores(matrix, row),
        **_others(row),
        "notes": [*_notes(matrix, progress, board, row, rounds)],
        "error": _error(submission, runs, viewer) if _has_failed(progress, row) else None,
    }


def _settled(
    progress: Progress, runs: Sequence[EvaluationRun], matrix: Matrix, row: RankedModel | None
) -> Progress:
    """Return the progress, as not over before the board has every result of the model.

    When two evaluations end at once, the numbers are read again when the board is renewed.
    """
    ended = {run.version_id for run in runs if run.suite == "plain" and run.outcome == Outcome.OK}
    if (
        progress.is_over
        and row
        and any(
            one.version_id in ended
            and not matrix.numbers.runners[row.place, place]
            and not matrix.numbers.kept_back[row.place, place]
            for place, one in enumerate(matrix.sets)
        )
    ):
        return replace(progress, phase="renewing", sentence="The board is renewed.", is_over=False)
    return progress


def _rounds(
    matrix: Matrix, row: RankedModel | None, seen: Sequence[Round]
) -> dict[int, tuple[float | None, str]]:
    """Return the number of each round that has opened and of the first, or why it has none.

    The number is the accuracy on the round's newest set, whatever the main metric is.
    """
    metric = next((name for name in RIGHT if name in matrix.metrics), None)
    states = {round.number: round.state for round in seen}
    sets = {one.round: (place, one) for place, one in enumerate(matrix.sets) if one.round}
    return {
        number: _on(matrix, row, *sets[number], metric)
        if number in sets
        else (None, _without(number, states.get(number)))
        for number in sorted({1, *states})
    }


def _on(
    matrix: Matrix, row: RankedModel | None, place: int, one: BoardSet, metric: str | None
) -> tuple[float | None, str]:
    if metric is None:
        return None, f"none of this task's metrics is an accuracy; see scores[{one.name!r}]."
    cell = cell_of(matrix, row.place, place, metric) if row else NOTHING
    if cell.value is not None:
        return round(cell.value / 100, DIGITS), " ".join(_warnings(one))
    if row and matrix.numbers.kept_back[row.place, place]:
        return None, f"kept back: {one.name} v{one.version} is sealed."
    outdated = row and matrix.numbers.outdated[row.place, place]
    older = " (only an older version was)" if outdated else ""
    return None, f"not run on {one.name} v{one.version}{older}."


def _warnings(one: BoardSet) -> Iterator[str]:
    """Yield what a reader of the number on a round's set should know."""
    if words := early_words(asdict(one)):
        yield f"{words}: {one.title} was taken before its round was judged to the end."
    if one.is_small:
        yield f"{one.title} has {one.size} examples; a board ranks by a round's set of {one.least}."
    if one.is_sealed:
        yield f"{one.title} is sealed, so the number is rounded."


def _without(number: int, state: str | None) -> str:
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


def _scores(matrix: Matrix, row: RankedModel | None) -> dict[str, Any]:
    """Return values by set and metric, each with its interval and its number of examples."""
    if row is None:
        return {}
    found: dict[str, Any] = {}
    sizes = _sizes(matrix, row)
    for place, one in enumerate(matrix.sets):
        for column, name in enumerate(matrix.metrics):
            if name == LLM_JUDGE:  # never without the agreement: /models/<id>/llm-scores/
                continue
            cell = _shown_cell(name, cell_of(matrix, row.place, place, name))
            if cell.value is not None:
                counted = int(matrix.numbers.n[row.place, place, column]) or one.size
                n = sizes.get((one.version_id, name), counted)
                is_rounded = one.is_sealed and name not in OF_RUNS
                measured = {**cell._asdict(), "n": n, "is_rounded": is_rounded}
                found.setdefault(one.name, {})[name] = measured
    return found


def _sizes(matrix: Matrix, row: RankedModel) -> dict[tuple[int, str], int]:
    """Return the sizes of worst groups and kinds, by version and column. Two queries."""
    versions = [one.version_id for one in matrix.sets if not one.is_sealed]
    runs = EvaluationRun.objects.filter(submission__in=row.model.files, version__in=versions)
    shown = counting(runs).select_related("version__evaluation_set__task", "version__dataset")
    return {
        (score.run.version_id, COLUMNS[score.run.suite, score.metric]): score.n
        for score in list_scores(shown.defer("log", "version__dataset__numbers"), exact=False)
        if (score.run.suite, score.metric) in COLUMNS and not score.kind and not score.slice
    }


def _shown_cell(name: str, cell: Cell) -> Cell:
    """Return percent as 0-1, and costs as they are."""
    unit = 1 if name in OF_RUNS else 100
    return Cell(*(None if part is None else round(part / unit, DIGITS) for part in cell))


def _others(row: RankedModel | None) -> dict[str, float | None]:
    metrics: Mapping[str, Cell] = row.metrics if row else {}
    return {name: _shown_cell(name, metrics.get(name, NOTHING)).value for name in OTHERS}


def _notes(
    matrix: Matrix,
    progress: Progress,
    board: Ranked,
    row: RankedModel | None,
    rounds: Mapping[int, tuple[float | None, str]],
) -> Iterator[str]:
    if not progress.is_over:
        yield "It is not over yet, so numbers may be missing or change."
    if row is None:
        yield f"dynascore: {progress.sentence}"
    elif row.dynascore.least is None:
        none = "no set is large enough to rank by" if matrix.sets else "there is no set yet"
        lacks = f"not run: {', '.join(row.missing)}" if row.missing else none
        yield f"dynascore: {lacks}."
    elif row.dynascore.is_range:
        yield f"dynascore: a range, as it was not measured on: {', '.join(row.missing)}."
    yield from (f"round{number}_acc: {why}" for number, (_, why) in rounds.items() if why)
    if row:
        measured = row.metrics
        yield from (
            f"{name}: not measured on every set with a weight, or not in a way that compares."
            for name in AXES
            if name in measured and measured[name].value is None
        )
        yield from (f"{name}: not a metric of this task." for name in AXES if name not in measured)
        yield from board.notices


def _has_failed(progress: Progress, row: RankedModel | None) -> bool:
    """Return whether it ended without the score that it was submitted for."""
    return progress.is_over and (row is None or row.dynascore.least is None)


def _error(
    submission: Submission, runs: Sequence[EvaluationRun], viewer: Viewer
) -> dict[str, Any] | None:
    """Return how the check or the first evaluation without a score ended, for people inside.

    Perturbed evaluations come last: they lack what the plain one did not give.
    """
    if not viewer.is_inside or submission.withdrawn_at:
        return None
    if submission.state != Submission.State.DONE:
        return _job_body(submission, submission.outcome, limit="", measured="")
    failed = (
        as_seen(run, viewer)
        for run in sorted(latest(runs), key=lambda run: run.suite != EvaluationRun.Suite.PLAIN)
        if run.is_over and run.outcome != Outcome.OK and may_see_scores(run, viewer)
    )
    run = next(failed, None)
    return _job_body(run, run.outcome, limit=run.limit, measured=run.measured) if run else None


def _job_body(job: Submission | EvaluationRun, outcome: str, **hit: str) -> dict[str, Any]:
    return {"outcome": outcome or job.state, "sentence": job.error, **hit, "log": job.log}
