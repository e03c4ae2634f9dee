"""The board across a community's tasks, as far as its reader may see them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.data.adaptive_cache import kept_many
from dynabench.communities.models import Community, CommunityTask, JointSubmission
from dynabench.communities.rules import MAX_WEIGHT, BoardLine, Entrant, MeasuredScore, rank_entrants
from evaluation.kinds import TARGET, kind_names
from evaluation.models import Submission
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.ranking.anchored import compute_anchors
from tasks.models import Task

WEIGHT_PREFIX = "w_"
"""What the reader's weight of a task begins with in a URL: `?w_nli=2`."""


@dataclass(frozen=True)
class BoardRow:
    """A public model of one task.

    owner: person or team; empty if there is none or it is hidden. whose: key shared by the
    models that one owner submitted under one name; empty if the owner is.
    """

    id: str
    name: str
    owner: str
    whose: str
    is_anonymous: bool
    score: MeasuredScore


class BoardColumn(NamedTuple):
    """The column of a task. floor: main metric, in percent, that earns 0 points."""

    task: Task
    metric: str
    floor: float
    weight: float


class BoardCell(NamedTuple):
    """A model's points in a task, and its submission's id; None: not evaluated there."""

    task: Task
    points: float | None
    model: str | None


@dataclass(frozen=True)
class Board:
    """The board across tasks, as displayed.

    track: the selected track; "": all. unread: query parameters that are not valid weights.
    """

    heads: Sequence[BoardColumn]
    lines: Sequence[BoardLine]
    tracks: Sequence[str]
    track: str
    unread: Sequence[str]

    @property
    def rows(self) -> list[tuple[BoardLine, int, list[BoardCell]]]:
        """Return (line, number of counted tasks with a result, cells) for each model."""
        rows = []
        for line in self.lines:
            cells = [_build_cell(line, head.task) for head in self.heads]
            rows.append((line, self.wanted - len(line.missing), cells))
        return rows

    @property
    def wanted(self) -> int:
        """Return the number of tasks that count."""
        return sum(head.weight > 0 for head in self.heads)


def _build_cell(line: BoardLine, task: Task) -> BoardCell:
    """Return a model's cell in the column of a task."""
    points = line.points.get(task.code)
    return BoardCell(task, points.value if points else None, line.entrant.models.get(task.code))


def build_board(
    community: Community, entries: Collection[CommunityTask], query: Mapping[str, str]
) -> Board:
    """Return the board across the tasks that the reader may see.

    entries: with their tasks, from `selectors.list_visible_entries`; no other task is read.
    query: weights (`w_nli=2`) and `track`.
    The number of queries is bounded once the tasks' boards are cached, for about a minute.
    """
    # Arenas have no main metric.
    ranked = [entry for entry in entries if entry.task.config.kind == "examples"]
    tasks = [entry.task for entry in ranked]
    weights, unread = _read_weights(ranked, query)
    track = query.get("track", "")
    if track not in community.tracks:
        track = ""
    entrants = _collect_entrants(community, tasks)
    if track:
        entrants = [entrant for entrant in entrants if entrant.track == track]
    # What knows nothing gets no points, which makes tasks comparable.
    floors = {task.code: find_floor(task) for task in tasks}
    lines = rank_entrants(entrants, weights, floors)
    # In the order in which the tasks joined.
    heads = [
        BoardColumn(task, in_words(task.config.metrics.main), floors[task.code], weights[task.code])
        for task in tasks
    ]
    return Board(heads, lines, community.tracks, track, unread)


def _read_weights(
    entries: Collection[CommunityTask], query: Mapping[str, str]
) -> tuple[dict[str, float], list[str]]:
    """Return the weights by task, and the query parameters that are not valid weights.

    The reader's weights override the owners'.
    """
    weights, unread = {}, []
    for entry in entries:
        code = entry.task.code
        weights[code] = entry.weight
        field = f"{WEIGHT_PREFIX}{code}"
        if field in query:
            try:
                weights[code] = parse_weight(query[field])
            except ValueError:
                unread.append(field)
    return weights, unread


def parse_weight(text: str) -> float:
    """Parse a weight from 0 to MAX_WEIGHT. Raises ValueError."""
    value = float(text)
    if not 0 <= value <= MAX_WEIGHT:
        raise ValueError(text)
    return value


def find_floor(task: Task) -> float:
    """Return the main metric, in percent, of the task's baseline without knowledge.

    Taken from the task's own leaderboard.
    """
    from leaderboard.board.matrix import choose_pool  # loads numpy

    main = task.config.metrics.main
    return compute_anchors(choose_pool(task, None).rows, main, ()).scales[main].low


def _collect_entrants(community: Community, tasks: Sequence[Task]) -> list[Entrant]:
    """Return the public models of the tasks, without duplicates.

    A joint submission is one model, as are one owner's submissions under the same name.
    Models with a hidden owner are never merged with others, because that would reveal the
    owner.
    """
    # By the version of the configuration, as it names the main metric.
    task_of = {f"community-board-{task.pk}-{task.config_number}": task for task in tasks}
    cached_boards = kept_many(
        list(task_of), lambda keys: {key: _read_rows(task_of[key]) for key in keys}
    )
    joint_of = _find_joint_submissions(community, tasks)
    rows_of_model: dict[str, list[tuple[Task, BoardRow]]] = {}
    for cache_key, task in task_of.items():
        for row in cached_boards[cache_key].numbers:
            joint = joint_of.get(row.id)
            key = row.whose or row.id
            if joint:
                key = f"joint {joint.pk} {row.is_anonymous}"
            rows_of_model.setdefault(key, []).append((task, row))
    return [_build_entrant(key, rows, joint_of) for key, rows in rows_of_model.items()]


def _build_entrant(
    key: str, rows: Sequence[tuple[Task, BoardRow]], joint_of: Mapping[str, JointSubmission]
) -> Entrant:
    """Return one model with its best submission to each task.

    rows: in the order of the tasks' boards.
    """
    _task, first_row = rows[0]
    joint = joint_of.get(first_row.id)
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
    """Return the joint submission to which each submission belongs, by its id. One query."""
    # From the table of links: one query, however many joint submissions there are.
    links = JointSubmission.submissions.through.objects.filter(
        jointsubmission__community=community, submission__task__in=tasks
    )
    rows = links.select_related("jointsubmission").order_by("pk")
    return {str(link.submission_id): link.jointsubmission for link in rows}


def _read_rows(task: Task) -> list[BoardRow]:
    """Return the models of the task's public board, ranked by the main metric."""
    from leaderboard.board.matrix import score_matrix  # loads numpy
    from leaderboard.board.opening import choose_opening_weights
    from leaderboard.board.ranked import rank_board

    matrix = score_matrix(task)
    board = rank_board(matrix, choose_opening_weights(task, matrix))
    rows = []
    for ranked_row in board.rows:
        model, main_score = ranked_row.model, ranked_row.metrics[matrix.main]
        if model.kind == TARGET and main_score.value is None:
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
                whose=owner_key,
                is_anonymous=model.is_anonymous,
                score=MeasuredScore(*main_score),
            )
        )
    return rows


class DataRow(NamedTuple):
    """The result of training a task's model on one submission of rows.

    rows: number of submitted rows; chosen: of those used. labels: number of rows by label.
    """

    line: BoardLine
    task: Task
    model: str
    points: MeasuredScore
    rows: int
    chosen: int
    labels: Mapping[str, int]


def list_data_rows(board: Board) -> list[DataRow]:
    """Return the training-data submissions behind the board's lines, by task. One query."""
    ids: set[str] = set()
    for line in board.lines:
        ids.update(line.entrant.models.values())
    of_rows = kind_names(lambda kind: kind.learns_here)
    trained = Submission.objects.filter(pk__in=ids, kind__in=of_rows).exclude(data={})
    facts = {str(pk): data for pk, data in trained.values_list("pk", "data")}
    rows = []
    for head in board.heads:
        code = head.task.code
        for line in board.lines:
            model = line.entrant.models.get(code, "")
            if model in facts:
                rows.append(DataRow(line, head.task, model, line.points[code], **facts[model]))
    return rows
