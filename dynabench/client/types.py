"""What methods return: plain dictionaries, with the keys that the server answers.

Made by tests/unit/client/test_types.py of the API's schema. Times are ISO 8601, in UTC.
"""

from __future__ import annotations  # they name each other

from typing import Any, Literal, NotRequired, TypedDict

Results = dict[str, Any]
"""Of `get_results`. No TypedDict, as each task has its rounds. Its keys:

- `model`, `name`, `task`; `phase` (one word), `sentence`, `is_over`: how far it is;
- `dynascore`, `dynascore_low`, `dynascore_high` in percent, `rank`;
- `round1_acc`, `round2_acc` …: 0 to 1; None where there is no number, and `notes` say why;
- `scores`: set, metric, and of it `value`, `low`, `high`, `n`; `throughput`, `memory`, `fairness`,
  `robustness`;
- `error`: None, or `outcome`, `sentence`, `limit`, `measured`, `log`.
"""


class Card(TypedDict, total=False):
    """What is told of a model; `description` is Markdown."""

    description: str
    languages: str
    license: str
    paper_url: str
    parameters: int | None


class Model(TypedDict):
    """A model that was handed in, and how far it is."""

    id: str
    task: str
    name: str
    kind: Literal["directory", "image", "predictions", "hub", "endpoint", "target"]
    phase: str
    sentence: str
    is_over: bool
    share: float | None
    error: str
    is_published: bool
    card: Card
    log: str


class Run(TypedDict):
    """An evaluation of a model on a version of a set; `log` is shown to those who may see it.

    suite: `plain`, `robustness` or `fairness`; error: the sentence that says what went wrong.
    """

    id: str
    evaluation_set: str
    version: int
    suite: str
    number: int
    state: str
    outcome: str
    error: str
    log: str


class Upload(TypedDict):
    """A file on its way to the server."""

    id: str
    file_name: str
    size: int
    received: int
    piece_bytes: int


class Assignment(TypedDict):
    """A context and a goal to write for."""

    id: int
    task: str
    round: int
    context: GivenContext
    goal: str
    goal_text: str
    parent: Parent | None
    draft: dict[str, Any]


class BoardMetric(TypedDict):
    """A column."""

    name: str
    version: int


class BoardRow(TypedDict):
    """A model's line; percent, GiB and examples a second, as on the page."""

    id: str
    model: str
    owner: str
    rank: str
    first: int | None
    last: int | None
    dynascore: Interval
    metrics: dict[str, Interval]
    sets: dict[str, dict[str, Interval]]
    in_the_loop: list[str]
    missing: list[str]


class BoardSet(TypedDict):
    """The newest version of a set of examples."""

    name: str
    version: int
    sha256: str
    access: str
    examples: int
    date: str


class Compared(TypedDict):
    """Two models beside each other."""

    a: ComparedModel
    b: ComparedModel
    rows: list[ComparedRow]
    slices: list[ComparedRow]
    tested_slices: int
    small_slices: int
    unread: list[str]
    in_the_loop: list[ComparedLoop]
    readable: list[str]
    examples: list[ComparedExample]
    next_page: int | None


class ComparedExample(TypedDict):
    """An example on which two models differ."""

    inputs: dict[str, str]
    a: str
    b: str
    gold: list[str]


class ComparedLoop(TypedDict):
    """A set that people wrote against one of the two."""

    model: Literal["a", "b"]
    set: str


class ComparedModel(TypedDict):
    """One of two models."""

    id: str
    model: str
    owner: str


class ComparedRow(TypedDict):
    """A metric on a set; the difference is a − b, in points."""

    set: str
    version: int
    metric: str
    slice: str
    a: Interval
    b: Interval
    difference: Interval
    p: float | None
    n: int | None
    better: str
    method: str


class ContentWarning(TypedDict):
    """What people must know before they enter a task that can hurt."""

    text: str
    harms: list[str]
    share: str | None


class Example(TypedDict):
    """An example as its author sees it; with `full` in the context, as members of the task do."""

    id: str
    task: str
    round: int
    context: GivenContext
    inputs: dict[str, Any]
    goal: str
    outcome: Literal["fooled", "not_fooled", "undecided", "no_model", "unknown"]
    decided_by: Literal["rule", "author"]
    why: dict[str, Any]
    parent: str | None
    by_program: bool
    created_at: str
    retracted_at: str | None
    answers: list[GivenAnswer]


class FullTask(TypedDict):
    """A task with what it asks."""

    code: str
    name: str
    summary: str
    language: str
    is_official: bool
    is_sensitive: bool
    allow_try_out: bool
    groups: list[str]
    rounds: list[OpenedRound]
    instructions: str
    content_warning: ContentWarning | None
    examples: ShownExamples
    goal: str
    context: list[TaskField]
    input: list[TaskField]
    output: list[TaskField]
    model_fields: list[str]
    target_fields: list[str]
    answer_field: str
    verdict: dict[str, Any]
    metrics: TaskMetrics
    weights: dict[str, float]
    created_at: str
    role: Literal["owner", "editor", "moderator", "viewer"] | None


class GivenAnswer(TypedDict):
    """What one target said."""

    target: str
    output: dict[str, Any]
    prob: dict[str, float] | None
    fooled: bool | None
    score: float | None


class GivenContext(TypedDict):
    """What one writes about."""

    id: int
    fields: dict[str, Any]


class Interval(TypedDict):
    """A number with its interval of 95 %; null: none."""

    value: float | None
    low: float | None
    high: float | None


class Kept(TypedDict):
    """A board as snapshots keep it: all that it rests on."""

    task: Named
    date: str
    code: str
    mode: Literal["robust", "classic"]
    main: str
    metrics: list[BoardMetric]
    weights: Weights
    rates: dict[str, float | None]
    pool: list[str]
    resamples: int
    runner: str
    sets: list[BoardSet]
    notices: list[str]
    rows: list[BoardRow]


class ListedSnapshot(TypedDict):
    """A snapshot without its board."""

    number: int
    title: NotRequired[str]
    description: NotRequired[str]
    sha256: str
    made_at: str


class Me(TypedDict):
    """Who the request is from."""

    pseudonym: str
    token: Token | None


class Named(TypedDict):
    """A task by its code and name."""

    code: str
    name: str


class Numbers(TypedDict):
    """Every number of a round; docs/statistics.md defines them. `notes` says why one is null."""

    round: int | None
    collected: int
    fooled: int | None
    judged: int
    decided: int
    verified: int
    verified_fooled: int | None
    mer: Rate | None
    vmer: Rate | None
    fooled_of_decided: Rate | None
    consensus_labels: dict[str, int]
    majority_share: Rate | None
    unanimous_share: Rate | None
    fleiss_kappa: float | None
    krippendorff_alpha: float | None
    validators: int
    authors: int | None
    votes: int
    notes: dict[str, str]
    human_accuracy: Rate | None
    model_accuracy: Rate | None
    human_model_gap: Rate | None
    program_examples: int
    program_votes: int


class OneSnapshot(TypedDict):
    """A snapshot; `table` is what the digest is of, with sorted keys and without spaces."""

    number: int
    title: NotRequired[str]
    description: NotRequired[str]
    sha256: str
    made_at: str
    bibtex: str
    changes: list[str]
    table: Kept


class OpenedRound(TypedDict):
    """A round that has opened, in short."""

    number: int
    state: Literal["draft", "ready", "open", "paused", "closed", "released"]
    opened_at: str | None
    closed_at: str | None
    ends_at: str | None


class Parent(TypedDict):
    """The example that is to be changed."""

    id: str
    inputs: dict[str, Any]


class Rate(TypedDict):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int
    method: str


class Round(TypedDict):
    """A round."""

    number: int
    state: Literal["draft", "ready", "open", "paused", "closed", "released"]
    rule: Literal["majority", "all", "any"]
    description: str
    show_target_name: bool
    targets: list[str]
    parents: list[int]
    opened_at: str | None
    closed_at: str | None
    ends_at: str | None
    writing_until: str | None
    max_collected: int | None
    max_fooling: int | None
    max_spent: int | None
    pay_example: int | None
    pay_validation: int | None
    pay_bonus: int | None


class Leaderboard(TypedDict):
    """A board as it is now."""

    task: Named
    date: str
    code: str
    mode: Literal["robust", "classic"]
    main: str
    metrics: list[BoardMetric]
    weights: Weights
    rates: dict[str, float | None]
    pool: list[str]
    resamples: int
    runner: str
    sets: list[BoardSet]
    notices: list[str]
    rows: list[SeenRow]


class SeenRow(TypedDict):
    """A line of the board as it is now."""

    id: str
    model: str
    owner: str
    rank: str
    first: int | None
    last: int | None
    dynascore: Interval
    metrics: dict[str, Interval]
    sets: dict[str, dict[str, Interval]]
    in_the_loop: list[str]
    missing: list[str]
    is_published: bool


class ShownExample(TypedDict):
    """An example of the task's page."""

    context: dict[str, Any]
    input: dict[str, Any]
    reason: str


class ShownExamples(TypedDict):
    """What to do and what not to do."""

    good: list[ShownExample]
    bad: list[ShownExample]


class Statistics(TypedDict):
    """The numbers by round, and of all these rounds together."""

    task: str
    rounds: list[Numbers]
    all: Numbers


class Task(TypedDict):
    """A task in a list."""

    code: str
    name: str
    summary: str
    language: str
    is_official: bool
    is_sensitive: bool
    allow_try_out: bool
    groups: list[str]
    rounds: list[OpenedRound]


class TaskChoice(TypedDict):
    """One choice of a field."""

    value: str
    display: str
    help: str | None


class TaskCondition(TypedDict):
    """A field is asked only if another one has this value."""

    field: str
    equals: str


class TaskField(TypedDict):
    """A field of what is given, written or answered; docs/task-config.md explains the keys."""

    name: str
    type: str
    label: str
    help: str | None
    required: bool
    min_length: int | None
    max_length: int | None
    labels: list[TaskChoice]
    reference: str | None
    tags: list[str]
    minimum: float | None
    maximum: float | None
    step: float | None
    single: bool
    when: TaskCondition | None


class TaskMetrics(TypedDict):
    """How models are scored."""

    main: str
    names: list[str]


class Token(TypedDict):
    """A token without its key."""

    id: int
    name: str
    prefix: str
    scopes: Any
    created_at: str
    expires_at: str
    last_used_at: NotRequired[str | None]


class Weights(TypedDict):
    """What counts how much: only ratios matter."""

    metrics: dict[str, float]
    sets: dict[str, float]
