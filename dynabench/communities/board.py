"""The board across a community's tasks, as far as the reader may see them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.data.adaptive_cache import kept_many
from dynabench.communities.models import Community, CommunityTask, JointSubmission
from dynabench.communities.rules import MOST, Entrant, Line, Measured, across
from evaluation.models import Submission
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.scoring.anchored import anchors_of
from tasks.models import Task

WEIGHT = "w_"
"""What the reader's weight of a task begins with in a URL: `?w_nli=2`."""


@dataclass(frozen=True)
class Row:
    """A public model of one task. owner: person or team; empty where there is none, or it is
    hidden. whose: the same for the models of one owner that have one name; empty likewise.
    """

    id: str
    name: str
    owner: str
    whose: str
    is_anonymous: bool
    score: Measured


class Head(NamedTuple):
    """A task's column. floor: the main metric, in percent, that gives no points."""

    task: Task
    metric: str
    floor: float
    weight: float


class Cell(NamedTuple):
    """A model's points in a task, and the id of its submission; None: it was not run there."""

    task: Task
    points: float | None
    model: str | None


@dataclass(frozen=True)
class Board:
    """What is shown. track: the one that is chosen; unread: fields of the query that are no
    weights.
    """

    heads: Sequence[Head]
    lines: Sequence[Line]
    tracks: Sequence[str]
    track: str
    unread: Sequence[str]

    @property
    def rows(self) -> list[tuple[Line, int, list[Cell]]]:
        """Each line with how many of the tasks that count it has, and its cells."""
        return [
            (line, self.wanted - len(line.missing), [_cell(line, head.task) for head in self.heads])
            for line in self.lines
        ]

    @property
    def wanted(self) -> int:
        """How many tasks count."""
        return sum(head.weight > 0 for head in self.heads)


def _cell(line: Line, task: Task) -> Cell:
    points = line.points.get(task.code)
    return Cell(task, points.value if points else None, line.entrant.models.get(task.code))


def board_of(
    community: Community, entries: Collection[CommunityTask], query: Mapping[str, str]
) -> Board:
    """The board of the community's tasks that the reader may see; weights and track of the query.

    entries: with their tasks, as `selectors.entries_for` gives them; nothing of another one is
    read. A bounded number of queries once the boards of the tasks are cached, for a minute or so.
    """
    ranked = [entry for entry in entries if entry.task.config.kind == "examples"]
    tasks = [entry.task for entry in ranked]
    weights, unread = {}, []
    for entry in ranked:
        name = f"{WEIGHT}{entry.task.code}"
        weights[entry.task.code] = entry.weight
        if name in query:
            try:
                weights[entry.task.code] = weight_of(query[name])
            except ValueError:
                unread.append(name)
    track = query.get("track", "")
    track = track if track in community.tracks else ""
    entrants = [one for one in _entrants(community, tasks) if track in ("", one.track)]
    floors = {task.code: floor_of(task) for task in tasks}
    lines = across(entrants, weights, floors)
    heads = [
        Head(task, in_words(task.config.metrics.main), floors[task.code], weights[task.code])
        for task in tasks
    ]
    return Board(heads, lines, community.tracks, track, unread)


def weight_of(text: str) -> float:
    """A weight from 0 to MOST. Raises ValueError."""
    value = float(text)
    if not 0 <= value <= MOST:
        raise ValueError(text)
    return value


def floor_of(task: Task) -> float:
    """The main metric, in percent, of what knows nothing, as the task's own board has it."""
    from leaderboard.board.matrix import pool_of  # loads numpy

    main = task.config.metrics.main
    return anchors_of(pool_of(task, None).rows, main, ()).scales[main].low


def _entrants(community: Community, tasks: Sequence[Task]) -> list[Entrant]:
    """The public models of the tasks. What was submitted jointly is one model, and so is what one
    person submitted under one name; never a hidden name together with one that is shown.
    """
    codes = {f"community-board-{task.pk}-{task.config_number}": task for task in tasks}
    kept = kept_many([*codes], lambda keys: {key: _rows(codes[key]) for key in keys})
    rows = [(task, row) for key, task in codes.items() for row in kept[key].numbers]
    joint = _joint(community, tasks)
    found: dict[str, list[tuple[Task, Row]]] = {}
    for task, row in rows:
        of = joint.get(row.id)
        key = f"joint {of.pk} {row.is_anonymous}" if of else row.whose or row.id
        found.setdefault(key, []).append((task, row))
    made = []
    for key, of_model in found.items():
        first, of = of_model[0][1], joint.get(of_model[0][1].id)
        best = {task.code: row for task, row in reversed(of_model)}  # the boards' first ones
        scores = {code: row.score for code, row in best.items()}
        models = {code: row.id for code, row in best.items()}
        name, owner = ("", "") if of and first.is_anonymous else (first.name, first.owner)
        made.append(Entrant(key, name, owner, of.track if of else "", scores, models))
    return made


def _joint(community: Community, tasks: Sequence[Task]) -> dict[str, JointSubmission]:
    """What a submission is part of, by its id. One query."""
    links = JointSubmission.submissions.through.objects.filter(
        jointsubmission__community=community, submission__task__in=tasks
    )
    found = links.select_related("jointsubmission").order_by("pk")
    return {str(one.submission_id): one.jointsubmission for one in found}


def _rows(task: Task) -> list[Row]:
    """The models of the public board, by their main metric over the sets that count."""
    from leaderboard.board.matrix import score_matrix  # loads numpy
    from leaderboard.board.opening import opening_of
    from leaderboard.board.ranked import ranked

    matrix = score_matrix(task)
    board = ranked(matrix, opening_of(task, matrix))
    return [
        Row(
            str(row.model.id),
            row.model.name,
            row.model.team or row.model.owner,
            json.dumps([row.model.owner, row.model.team, row.model.name])
            if row.model.owner
            else "",
            row.model.is_anonymous,
            Measured(*row.metrics[matrix.main]),
        )
        for row in board.rows
        if row.model.kind != Submission.Kind.TARGET or row.metrics[matrix.main].value is not None
    ]


class DataRow(NamedTuple):
    """What one task's model learned from one submission of rows. labels: how many rows of each."""

    line: Line
    task: Task
    model: str
    points: Measured
    rows: int
    chosen: int
    labels: Mapping[str, int]


def data_rows(board: Board) -> list[DataRow]:
    """The submissions of training data behind the board's lines, task by task. One query."""
    shown = [pk for line in board.lines for pk in line.entrant.models.values()]
    found = Submission.objects.filter(pk__in=shown, kind=Submission.Kind.ROWS).exclude(data={})
    facts = {str(pk): data for pk, data in found.values_list("pk", "data")}
    return [
        DataRow(line, head.task, model, line.points[head.task.code], **facts[model])
        for head in board.heads
        for line in board.lines
        if (model := line.entrant.models.get(head.task.code, "")) in facts
    ]
