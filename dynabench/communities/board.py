"""The board across a community's tasks, limited to the tasks that its reader may see."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.data.adaptive_cache import read_or_count_many
from dynabench.communities.models import Community, CommunityTask, JointSubmission
from dynabench.communities.rules import MAX_WEIGHT, BoardLine, Entrant, MeasuredScore, rank_entrants
from evaluation.kinds import TARGET_KIND, list_kind_names
from evaluation.models import Submission
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.ranking.anchored import compute_anchors
from tasks.models import Task

WEIGHT_PREFIX = "w_"
"""The prefix of the URL parameters with the reader's weights: `?w_nli=2`."""


@dataclass(frozen=True)
class BoardRow:
    """A public model of one task.

    owner: the person or team; empty if there is none or they are hidden. owner_key: a key that an
    owner's models of the same name share; empty if `owner` is.
    """

    id: str
    name: str
    owner: str
    owner_key: str
    is_anonymous: bool
    score: MeasuredScore


class BoardColumn(NamedTuple):
    """The column of a task. floor: the main metric, in percent, that corresponds to 0 points."""

    task: Task
    metric: str
    floor: float
    weight: float


class BoardCell(NamedTuple):
    """A model's cell in the column of a task.

    points: None if the model has no result. model: its submission's id; None if there is none.
    """

    task: Task
    points: float | None
    model: str | None


@dataclass(frozen=True)
class Board:
    """The board across tasks, as displayed.

    columns: the tasks. lines: the models. tracks: the tracks to choose from. track: the selected
    track, or "" for all. invalid_parameters: query parameters that are not valid weights.
    """

    columns: Sequence[BoardColumn]
    lines: Sequence[BoardLine]
    tracks: Sequence[str]
    track: str
    invalid_parameters: Sequence[str]

    @property
    def rows(self) -> list[tuple[BoardLine, int, list[BoardCell]]]:
        """Return (line, number of counted tasks with a result, cells) for each model."""
        rows = []
        for line in self.lines:
            cells = [_build_cell(line, head.task) for head in self.columns]
            rows.append((line, self.counted_task_count - len(line.missing), cells))
        return rows

    @property
    def counted_task_count(self) -> int:
        """Return the number of tasks that count."""
        return sum(head.weight > 0 for head in self.columns)


def _build_cell(line: BoardLine, task: Task) -> BoardCell:
    """Return a model's cell in the column of a task."""
    points = line.points.get(task.code)
    return BoardCell(task, points.value if points else None, line.entrant.models.get(task.code))


def build_board(
    community: Community, entries: Collection[CommunityTask], query: Mapping[str, str]
) -> Board:
    """Return the board across the tasks that the reader may see.

    entries: the visible tasks, from `selectors.list_visible_entries`; no other task is read.
    query: the URL's parameters, with weights (`w_nli=2`) and `track`.
    The number of queries does not depend on the number of models once the tasks' boards are cached,
    which lasts about a minute.
    """
    # Arenas have no main metric.
    ranked_entries = [entry for entry in entries if entry.task.config.kind == "examples"]
    tasks = [entry.task for entry in ranked_entries]
    weights, invalid_parameters = _read_weights(ranked_entries, query)
    track = query.get("track", "")
    if track not in community.tracks:
        track = ""
    entrants = _collect_entrants(community, tasks)
    if track:
        entrants = [entrant for entrant in entrants if entrant.track == track]
    # What knows nothing gets no points, which makes tasks comparable.
    floors = {task.code: compute_floor(task) for task in tasks}
    lines = rank_entrants(entrants, weights, floors)
    # In the order in which the tasks joined.
    columns = [
        BoardColumn(task, in_words(task.config.metrics.main), floors[task.code], weights[task.code])
        for task in tasks
    ]
    return Board(columns, lines, community.tracks, track, invalid_parameters)


def _read_weights(
    entries: Collection[CommunityTask], query: Mapping[str, str]
) -> tuple[dict[str, float], list[str]]:
    """Return the weights by task, and the query parameters that are not valid weights.

    The reader's weights override the owners'.
    """
    weights, invalid_parameters = {}, []
    for entry in entries:
        code = entry.task.code
        weights[code] = entry.weight
        field = f"{WEIGHT_PREFIX}{code}"
        if field in query:
            try:
                weights[code] = parse_weight(query[field])
            except ValueError:
                invalid_parameters.append(field)
    return weights, invalid_parameters


def parse_weight(text: str) -> float:
    """Parse a weight from 0 to MAX_WEIGHT. Raises ValueError."""
    value = float(text)
    if not 0 <= value <= MAX_WEIGHT:
        raise ValueError(text)
    return value


def compute_floor(task: Task) -> float:
    """Return the main metric, in percent, of a model of the task that knows nothing.

    It is the lower anchor of the task's own leaderboard.
    """
    from leaderboard.board.matrix import choose_pool  # loads numpy

    main = task.config.metrics.main
    return compute_anchors(choose_pool(task, None).rows, main, ()).scales[main].low


def _collect_entrants(community: Community, tasks: Sequence[Task]) -> list[Entrant]:
    """Return the public models of the tasks, without duplicates.

    A joint submission counts as one model. So do one owner's submissions under the same name.
    Models with a hidden owner are never merged with others, because that would reveal the
    owner.
    """
    # By the version of the configuration, as it names the main metric.
    tasks_by_key = {f"community-board-{task.pk}-{task.config_number}": task for task in tasks}
    cached_boards = read_or_count_many(
        list(tasks_by_key), lambda keys: {key: _read_rows(tasks_by_key[key]) for key in keys}
    )
    joint_by_submission = _find_joint_submissions(community, tasks)
    rows_by_model: dict[str, list[tuple[Task, BoardRow]]] = {}
    for cache_key, task in tasks_by_key.items():
        for row in cached_boards[cache_key].numbers:
            joint = joint_by_submission.get(row.id)
            key = row.owner_key or row.id
            if joint:
                key = f"joint {joint.pk} {row.is_anonymous}"
            rows_by_model.setdefault(key, []).append((task, row))
    return [_build_entrant(key, rows, joint_by_submission) for key, rows in rows_by_model.items()]


def _build_entrant(
    key: str,
    rows: Sequence[tuple[Task, BoardRow]],
    joint_by_submission: Mapping[str, JointSubmission],
) -> Entrant:
    """Return one model with its best submission to each task.

    rows: the model's rows, best first within each task.
    """
    _task, first_row = rows[0]
    joint = joint_by_submission.get(first_row.id)
    # A board has its best model first, so reversed the best one is stored last.
    best_rows = {task.code: row for task, row in reversed(rows)}
    name, owner = first_row.name, first_row.owner
    if joint and first_row.is_anonymous:
        # A joint submission's address in the key is no name, so it has none.
        name, owner = "", ""
    return Entrant(
        key,
        name,
        owner,
        track=joint.track if joint else "",
        scores={code: row.score for code, row in best_rows.items()},
        models={code: row.id for code, row in best_rows.items()},
    )


def _find_joint_submissions(
    community: Community, tasks: Sequence[Task]
) -> dict[str, JointSubmission]:
    """Return the joint submission that each submission is part of, by the submission's id.

    One query.
    """
    # From the table of links: one query, however many joint submissions there are.
    links = JointSubmission.submissions.through.objects.filter(
        jointsubmission__community=community, submission__task__in=tasks
    )
    rows = links.select_related("jointsubmission").order_by("pk")
    return {str(link.submission_id): link.jointsubmission for link in rows}


def _read_rows(task: Task) -> list[BoardRow]:
    """Return the models of the task's public board, ranked by the main metric.

    Leaves out targets that have no result.
    """
    from leaderboard.board.matrix import read_matrix  # loads numpy
    from leaderboard.board.opening import choose_opening_weights
    from leaderboard.board.ranked import rank_board

    matrix = read_matrix(task)
    board = rank_board(matrix, choose_opening_weights(task, matrix))
    rows = []
    for ranked_row in board.rows:
        model, main_score = ranked_row.model, ranked_row.metrics[matrix.main]
        if model.kind == TARGET_KIND and main_score.value is None:
            # Targets are on the board of their own accord: without a number they say nothing.
            continue
        owner_key = ""
        if model.owner:
            owner_key = json.dumps([model.owner, model.team, model.name])
        rows.append(
            BoardRow(
                id=str(model.id),
                name=model.name,
                owner=model.team or model.owner,
                owner_key=owner_key,
                is_anonymous=model.is_anonymous,
                score=MeasuredScore(*main_score),
            )
        )
    return rows


class DataRow(NamedTuple):
    """The result of training a task's model on one submission of rows.

    rows: how many rows were submitted. chosen: how many of them the model was trained on. labels:
    the number of rows by label.
    """

    line: BoardLine
    task: Task
    model: str
    points: MeasuredScore
    rows: int
    chosen: int
    labels: Mapping[str, int]


def list_data_rows(board: Board) -> list[DataRow]:
    """Return the results of training-data submissions on the board, by task. One query."""
    submission_ids: set[str] = set()
    for line in board.lines:
        submission_ids.update(line.entrant.models.values())
    data_kind_names = list_kind_names(lambda kind: kind.learns_here)
    trained_submissions = Submission.objects.filter(
        pk__in=submission_ids, kind__in=data_kind_names
    ).exclude(data={})
    data_by_id = {str(pk): data for pk, data in trained_submissions.values_list("pk", "data")}
    rows = []
    for head in board.columns:
        code = head.task.code
        for line in board.lines:
            model = line.entrant.models.get(code, "")
            if model in data_by_id:
                rows.append(DataRow(line, head.task, model, line.points[code], **data_by_id[model]))
    return rows
