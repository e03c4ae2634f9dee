"""What methods return, and some take: plain dictionaries, with the keys of the API.

Made by scripts/client_types.py from the schema of the API. Times are ISO 8601, in UTC.
"""

from __future__ import annotations  # they name each other

from typing import Any, Literal, NotRequired, TypedDict

Results = dict[str, Any]
"""Of `get_results`. No TypedDict, as each task has its rounds. Its keys:

- `model`, `name`, `task`; `phase` (one word), `sentence`, `is_over`: how far it is;
- `dynascore`, `dynascore_low`, `dynascore_high` in percent, `rank`; where a metric was not measured
  `dynascore` is None, and `dynascore_least` and `dynascore_most` are the worst and the best case;
- `round1_acc`, `round2_acc` …: accuracy, 0 to 1; None where there is none, and `notes` say why;
- `scores`: set, metric, and of it `value`, `low`, `high`, `n`; `throughput`, `memory`, `fairness`,
  `robustness`;
- `error`: None, or `outcome`, `sentence`, `limit`, `measured`, `log`.
"""


class Card(TypedDict, total=False):
    """A model's card; `description` is Markdown."""

    description: str
    languages: str
    trained_on: str
    trained_until: str | None
    license: str
    paper_url: str
    parameters: int | None


class Flag(TypedDict, total=False):
    """Why an example cannot be used."""

    flag_reason: str
    comment: str


class AboutSet(TypedDict):
    """Who sees a set, and what is said of it."""

    access: NotRequired[Literal["scoring", "standard", "hidden"]]
    may_leave: NotRequired[bool]
    answers_public: NotRequired[bool]
    description: NotRequired[str]


class EvaluationSet(AboutSet):
    """A set of examples, and its newest version."""

    name: str
    source: NotRequired[Literal["round", "upload", "control", "held"]]
    round: NotRequired[int | None]
    newest: Version | None


class Act(TypedDict):
    """The result of an action on many examples."""

    run: str
    action: str
    changed: int
    left: list[Left]


class Activity(TypedDict):
    """What people do in a round."""

    waiting: int
    oldest: str | None
    people: int
    writing: float | None
    judging: float | None
    days: list[Day]
    labels: list[LabelCounts]
    slices: list[Slice]
    counted_at: str


class Agreement(TypedDict):
    """How far a judge agrees with people on examples that no prompt was tuned on."""

    is_calibrated: bool
    low: float | None
    kappa: float | None
    high: float | None
    n: int
    authors: int
    both_correct: int
    only_people: int
    only_model: int
    both_incorrect: int


class Anchors(TypedDict):
    """Scales by metric, of a version of the task's reference pool."""

    version: int
    costs: NotRequired[int]
    scales: dict[str, Scale]


class Approval(TypedDict):
    """The state of a task's request for approval."""

    is_needed: bool
    state: Literal["waiting", "approved", "declined", "withdrawn"] | None
    goal: str
    people: str
    community: str
    reason: str
    show: bool


class ArenaEffect(TypedDict):
    """What the side with one unit more of a covariate has more of a lead."""

    name: str
    effect: float | None
    low: float | None
    high: float | None


class ArenaModel(TypedDict):
    """A model's line; low, high: of the 95 % interval."""

    name: str
    strength: float | None
    low: float | None
    high: float | None
    rank: int | None
    battles: int
    wins: int
    ties: int


class ArenaStyle(TypedDict):
    """The ranking over battles alone, with the style of answers held constant."""

    models: list[ArenaModel]
    battles: int
    voters: int
    is_bounded: bool
    effects: list[ArenaEffect]


class Asked(TypedDict):
    """What a model of a task reads and may answer."""

    kind: str | None
    type: str
    fields: list[str]
    output: str
    labels: list[str] | None


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


class Author(TypedDict):
    """Somebody's examples that stand; docs/statistics.md, “People”, defines each number."""

    annotator: str
    median_seconds: float | None
    notes: dict[str, str]
    labels_check: Literal["pass", "fail", "unknown"]
    tries: int
    fooled: int
    wins: int
    judged: int
    validity: Rate | None
    vmer: Rate | None
    duplicates: int
    paste_share: Rate | None
    median_active_seconds: float | None
    label_flip: Rate | None


class BadLine(TypedDict):
    """A line that cannot be stored, and how to mend it."""

    line: int
    message: str


class Believed(TypedDict):
    """What the model thinks of a validator."""

    validator: str
    reliability: float
    confusion: dict[str, dict[str, float]]


class BoardJudge(TypedDict):
    """Which language model as judge a score is of."""

    name: str
    model: str
    number: int
    agreement: Agreement


class BoardMetric(TypedDict):
    """A column."""

    name: str
    version: int
    judge: NotRequired[BoardJudge]
    about: NotRequired[str]
    higher_is_better: NotRequired[bool]


class BoardRow(TypedDict):
    """A model's line; percent, GiB and examples a second, as on the page."""

    id: str
    model: str
    owner: str
    team: NotRequired[str]
    rank: str
    first: int | None
    last: int | None
    dynascore: BoardScore
    points: NotRequired[dict[str, float]]
    metrics: dict[str, Interval]
    sets: dict[str, dict[str, Interval]]
    in_the_loop: list[str]
    missing: list[str]


class SeenRow(BoardRow):
    """A line of the board as it is now."""

    is_published: bool


class BoardScore(TypedDict):
    """A score; a range where a metric was not measured: from the worst case to the best."""

    value: float | None
    low: float | None
    high: float | None
    least: NotRequired[float | None]
    most: NotRequired[float | None]


class BoardSet(TypedDict):
    """The newest version of a set of examples."""

    name: str
    version: int
    sha256: str
    access: str
    examples: int
    date: str
    is_provisional: NotRequired[bool]
    judged: NotRequired[int | None]
    to_judge: NotRequired[int | None]
    min_examples: NotRequired[int]
    counts: NotRequired[bool]
    is_sealed: NotRequired[bool]
    overlap: NotRequired[float | None]


class Campaign(TypedDict):
    """A campaign's plan; money is in the currency's smallest unit."""

    slug: str
    name: str
    kind: NotRequired[Literal["write", "judge", "both", "arena"]]
    rounds: list[int]
    way: NotRequired[Literal["link", "prolific", "mturk", "account", "invitation"]]
    state: Literal["draft", "open", "paused", "full", "closed"]
    places: NotRequired[int]
    each: NotRequired[int]
    minutes: NotRequired[int]
    opens_at: NotRequired[str | None]
    closes_at: NotRequired[str | None]
    currency: NotRequired[str]
    pay_task: NotRequired[int]
    pay_accepted: NotRequired[int]
    pay_bonus: NotRequired[int]
    budget: NotRequired[int | None]
    machine_hour: NotRequired[int | None]
    approval_days: NotRequired[int | None]
    opened_at: str | None
    closed_at: str | None
    made_at: str


class WholeCampaign(Campaign):
    """A campaign with its numbers."""

    numbers: CampaignNumbers


class CampaignNumbers(TypedDict):
    """What an owner watches; null: nobody has earned or found anything, or there is no budget."""

    taken: int
    submitted: int
    earned: int
    paid: int
    cost: int
    hourly: int | None
    people_left: int | None
    people_paid: int | None
    fooling: int
    parts: CampaignParts
    cost_each: int | None
    cost_in_the_end: int | None
    fooling_in_the_end: int | None


class CampaignParts(TypedDict):
    """What a campaign has cost, in the smallest unit; null: unknown, as a price is not stated."""

    people: int
    judges: int | None
    model_calls: int | None
    evaluation: int | None


class ChangedExample(TypedDict):
    """An example that would change."""

    example: str
    before: Standing
    after: Standing


class ChangedPolicy(TypedDict):
    """What a PUT did, or would do."""

    policy: Policy
    changed: int | None
    preview: Preview | None


class ChangedRate(TypedDict):
    """A number of the round; null: it is not known."""

    before: Rate | None
    after: Rate | None


class Chat(TypedDict):
    """How a chat model is asked; prices are of a million tokens."""

    model: NotRequired[str]
    instructions: NotRequired[str]
    template: NotRequired[str]
    shots: NotRequired[int]
    shots_seed: NotRequired[int]
    temperature: NotRequired[float]
    seed: NotRequired[int | None]
    max_tokens: NotRequired[int]
    stop: NotRequired[list[str]]
    logprobs: NotRequired[bool]
    price_in: NotRequired[float]
    price_out: NotRequired[float]
    most_cost: NotRequired[float | None]
    perturbed: NotRequired[bool]


class Check(TypedDict):
    """With what a model is checked when it is submitted."""

    inputs: list[dict[str, Any]]
    model: Asked
    config_text: str
    memory_gib: int
    cpus: float
    seconds: float


class Community(TypedDict):
    """A community in the list."""

    slug: str
    name: str
    summary: NotRequired[str]
    is_listed: NotRequired[bool]
    tracks: list[str]
    made_at: str


class WholeCommunity(Community):
    """A community with its text, tasks and news, as far as one may see them."""

    text: NotRequired[str]
    tasks: list[CommunityTask]
    news: list[Post]
    files: list[JointFile]


class CommunityBoard(TypedDict):
    """The board across tasks."""

    columns: list[CommunityColumn]
    lines: list[CommunityLine]


class CommunityChange(TypedDict):
    """What changes; the rest stays."""

    name: NotRequired[str]
    summary: NotRequired[str]
    text: NotRequired[str]
    is_listed: NotRequired[bool]
    tracks: NotRequired[list[str]]


class CommunityColumn(TypedDict):
    """A task of the board."""

    task: str
    metric: str
    floor: float
    weight: float


class CommunityEntry(TypedDict):
    """A task that is in a community, or asks to be."""

    id: int
    task: str
    state: Literal["asked", "in"]
    weight: float


class CommunityEntryChange(TypedDict):
    """Let it in, or give it another weight."""

    state: NotRequired[Literal["in"]]
    weight: NotRequired[float]


class CommunityLine(TypedDict):
    """A model's line; without a rank it lacks tasks that count."""

    rank: str
    first: int | None
    last: int | None
    name: str
    owner: str
    track: str
    score: float | None
    low: float | None
    high: float | None
    missing: list[str]
    points: list[Points]


class CommunityOwner(TypedDict):
    """An owner, by pseudonym."""

    id: int
    name: NotRequired[str]


class CommunityProposal(TypedDict):
    """A community that is proposed, and what was decided."""

    id: int
    name: str
    slug: str
    goal: str
    state: NotRequired[Literal["waiting", "approved", "declined"]]
    reason: NotRequired[str]
    community: NotRequired[str | None]
    created_at: str


class CommunityTask(TypedDict):
    """A task of a community."""

    code: str
    name: str
    weight: float


class Compared(TypedDict):
    """Two models compared."""

    a: ComparedModel
    b: ComparedModel
    judge: BoardJudge | None
    rows: list[ComparedRow]
    slices: list[ComparedRow]
    tested_slices: int
    small_slices: int
    unread: list[str]
    in_the_loop: list[ComparedLoop]
    readable: list[str]
    examples: list[ComparedExample]
    next_page: int | None


class ComparedConfigs(TypedDict):
    """What differs between two versions."""

    older: int
    newer: int
    diff: str


class ComparedExample(TypedDict):
    """An example on which two models differ."""

    uid: str
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
    team: str


class ComparedRow(TypedDict):
    """A metric on a set; the difference is a − b, in points."""

    set: str
    version: int
    is_provisional: bool
    judged: int | None
    to_judge: int | None
    metric: str
    is_rounded: bool
    slice: str
    a: Interval
    b: Interval
    difference: Interval
    p: float | None
    p_uncorrected: float | None
    correction: Literal["holm", "benjamini-hochberg"] | Literal[""]
    n: int | None
    better: str
    method: str


class Config(TypedDict):
    """A task's configuration as it is stored."""

    config_text: str
    version: str
    fixed_because: str
    fixed: list[str]
    warnings: list[ConfigProblem]


class ChangedConfig(Config):
    """The configuration with what a PUT changed, or would change."""

    diff: str


class ConfigProblem(TypedDict):
    """Something to consider, and where it stands; line and column count from 1."""

    path: str
    line: int
    column: int
    message: str
    fix: str


class ConfigVersion(TypedDict):
    """When a text of the configuration was made, by whom, and what was written under it."""

    number: int
    created_at: str
    actor: str
    version: str
    is_in_force: bool
    examples: int


class FullConfigVersion(ConfigVersion):
    """A version with its text."""

    config_text: str


class Consensus(TypedDict):
    """The decision of the votes, or of an owner."""

    state: Literal["undecided", "decided", "no_consensus"]
    label: str
    verdict: Literal["correct", "incorrect", "flagged", "cannot_tell"] | Literal[""]
    votes: int
    still_needed: int
    is_verified: bool
    is_validated_error: bool
    is_sent_back: bool
    decided_by: str
    decided_at: str | None


class Contact(TypedDict):
    """What came of asking a model whether it answers."""

    at: str | None
    reason: str
    detail: str


class ContentWarning(TypedDict):
    """What people must know before they enter a task that can hurt."""

    text: str
    harms: list[str]
    share: str | None


class Context(TypedDict):
    """A context of a round."""

    id: int
    fields: dict[str, Any]
    tag: str
    metadata: dict[str, Any]
    is_retired: bool
    file: str | None


class ContextBatch(TypedDict):
    """One import of contexts."""

    id: int
    file_name: str
    imported_at: str
    contexts: int


class Conversation(TypedDict):
    """What a person and the target have said, but not what the model was told first."""

    turns: list[SpokenTurn]
    at: int
    said: str
    is_asking: bool
    failure: str
    left: int


class CustomMetric(TypedDict):
    """A version of a metric that was approved."""

    metric: str
    name: str
    version: int
    about: str
    higher_is_better: bool
    review: Literal["proposed", "approved", "refused", "retired"]
    source: str
    digest: str
    decided_at: str | None


class Dataset(TypedDict):
    """A released version of a round's data."""

    name: str
    round: int
    version: int
    released_at: str | None
    license: str
    description: str
    files: list[DatasetFile]


class DatasetFile(TypedDict):
    """A file of a dataset."""

    name: str
    size: int
    sha256: str
    is_public: NotRequired[bool]
    url: str


class DatedDifference(TypedDict):
    """The first side minus the second, in points, with 95 %."""

    value: float | None
    low: float | None
    high: float | None


class DatedModel(TypedDict):
    """A model that states until when it was trained."""

    id: str
    model: str
    trained_until: str
    before: DatedSide
    after: DatedSide
    difference: DatedDifference
    others: float | None


class DatedSide(TypedDict):
    """The share of right answers on the rounds of one side of a day, in percent."""

    rounds: list[int]
    n: int
    is_provisional: bool
    value: float | None
    low: float | None
    high: float | None


class Day(TypedDict):
    """Examples by day."""

    tries: int
    verified: int
    day: str
    fooled: int


class Decision(TypedDict):
    """A decision of an owner, and what stands by it."""

    example: str
    answer: str
    reason: str
    created_at: str
    consensus: Consensus


class Delivery(TypedDict):
    """One event for a webhook, and what came of it."""

    id: str
    event: str
    data: dict[str, Any]
    happened_at: str
    state: NotRequired[Literal["waiting", "sent", "given_up", "withheld"]]
    tries: NotRequired[int]
    status: NotRequired[int | None]
    error: NotRequired[str]
    created_at: str
    tried_at: NotRequired[str | None]
    due_at: str


class DuplicateContext(TypedDict):
    """A line that is there already."""

    line: int
    message: str
    of: int | None


class DutyChange(TypedDict):
    """The amount or share of a duty, and its due day."""

    amount: NotRequired[int | None]
    share: NotRequired[float | None]
    overlap: NotRequired[int]
    due_on: NotRequired[str | None]


class NewDuty(DutyChange):
    """Who is asked for what. Without amount and share: for equal parts of what is judged."""

    kind: Literal["write", "judge"]
    emails: NotRequired[list[str]]
    names: NotRequired[list[str]]
    round: NotRequired[int | None]


class DynabenchConfig(TypedDict):
    """A configuration as one of Dynabench 1.0 or 2.0."""

    text: str
    notes: list[str]


class Estimate(TypedDict):
    """What all evaluations on the sets of now will take, by a token of four characters."""

    requests: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    over_cap: bool


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


class JudgedExample(Example):
    """An example with what others say of it: for its author, and for members of the task."""

    annotator: str
    consensus: Consensus | None


class Reviewed(JudgedExample):
    """An example as reviewers find it, with their tags."""

    tags: list[str]


class Following(TypedDict):
    """Whether you get a mail when a round of the task is released."""

    follows: bool


class Generator(TypedDict):
    """How a generator is reached."""

    name: str
    adapter: str
    url: str
    options: NotRequired[dict[str, Any]]
    secret_env: NotRequired[str]


class GivenAnswer(TypedDict):
    """The answer of one target."""

    target: str
    output: dict[str, Any]
    prob: dict[str, float] | None
    fooled: bool | None
    score: float | None


class GivenContext(TypedDict):
    """The context to write about."""

    id: int
    fields: dict[str, Any]


class Gold(TypedDict):
    """An example that validators meet among the others, and are checked by."""

    example: str
    round: int
    answer: str
    explanation: str
    made_by: str
    created_at: str


class HeldBackModel(TypedDict):
    """A model on what releases hold back, and on what the same rounds published."""

    id: str
    model: str
    released: DatedSide
    held: DatedSide
    difference: DatedDifference


class ImportedContexts(TypedDict):
    """What a file brought, or would bring. Errors and duplicates are listed up to 200."""

    stored: int
    new: int
    error_count: int
    duplicate_count: int
    errors: list[BadLine]
    duplicates: list[DuplicateContext]


class Interval(TypedDict):
    """A number with its interval of 95 %; null: none."""

    value: float | None
    low: float | None
    high: float | None


class Invitation(TypedDict):
    """An invitation, and who has accepted it."""

    id: int
    email: str
    role: str
    state: Literal["open", "used", "revoked", "ended"]
    uses: NotRequired[int]
    most: NotRequired[int]
    ends_at: str
    accepted_by: list[str]


class Item(TypedDict):
    """An example to judge, without what its author and the models said is right."""

    example: str
    task: str
    round: int
    context: dict[str, Any]
    inputs: dict[str, Any]
    model_said: list[ModelSaid]
    question: str
    choices: list[VoteChoice]
    flag_reasons: list[str]
    until: str
    judged_today: int


class Joined(TypedDict):
    """What one is a member of."""

    task: str


class Joint(TypedDict):
    """A model that was submitted to all tasks, with the submission of each."""

    id: int
    name: str
    track: NotRequired[str]
    made_at: str
    models: list[JointModel]


class JointFile(TypedDict):
    """A file that an archive of predictions or of training data must hold."""

    kind: Literal["predictions", "rows"]
    place: str
    task: str
    evaluation_set: str


class JointModel(TypedDict):
    """What one task says."""

    id: str
    task: str
    state: str
    error: str


class Kept(TypedDict):
    """A board as snapshots keep it: all that it rests on."""

    task: Named
    date: str
    code: str
    mode: Literal["anchored", "robust", "classic"]
    main: str
    metrics: list[BoardMetric]
    weights: Weights
    rates: dict[str, float | None]
    anchors: NotRequired[Anchors | None]
    budgets: NotRequired[dict[str, float]]
    formula: NotRequired[str]
    pool: list[str]
    resamples: int
    runner: str
    sets: list[BoardSet]
    notices: list[str]
    rows: list[BoardRow]


class KeptArena(TypedDict):
    """The models of an arena as snapshots keep them."""

    task: Named
    date: str
    models: list[ArenaModel]
    battles: int
    voters: int
    is_bounded: bool
    unconnected: list[str]
    wins: list[list[float | None]]
    style: ArenaStyle | None
    code: str


class LabelCounts(TypedDict):
    """Examples by the author's label."""

    tries: int
    verified: int
    label: str


class Leaderboard(TypedDict):
    """A board as it is now."""

    task: Named
    date: str
    code: str
    mode: Literal["anchored", "robust", "classic"]
    main: str
    metrics: list[BoardMetric]
    weights: Weights
    rates: dict[str, float | None]
    anchors: NotRequired[Anchors | None]
    budgets: NotRequired[dict[str, float]]
    formula: NotRequired[str]
    pool: list[str]
    resamples: int
    runner: str
    sets: list[BoardSet]
    notices: list[str]
    rows: list[SeenRow]


class Lease(TypedDict):
    """A run that a machine holds while it renews the lease, each minute at least."""

    token: str
    run: str
    model: str
    kind: Literal[
        "directory", "image", "predictions", "rows", "hub", "llm", "endpoint", "chat", "target"
    ]
    adapter: str
    digest: str
    evaluation_set: str
    examples: int
    lease_until: str
    config_text: str
    memory_gib: int
    cpus: float
    seconds: float


class Left(TypedDict):
    """An example that was left as it is, and why."""

    example: str
    code: str
    reason: str


class ListedSnapshot(TypedDict):
    """A snapshot without its board."""

    number: int
    title: NotRequired[str]
    description: NotRequired[str]
    sha256: str
    made_at: str


class OneSnapshot(ListedSnapshot):
    """A snapshot; `table` is what the digest is of, with sorted keys and without spaces."""

    bibtex: str
    changes: list[str]
    table: Kept | KeptArena


class LiveFailure(TypedDict):
    """How a target failed lately while people wrote."""

    count: int
    since: str
    last_at: str
    reason: str
    detail: str


class LlmJudge(TypedDict):
    """A chat model with a prompt that judges free answers."""

    id: int
    name: str
    target: str
    prompt: str
    most_calls: int
    state: Literal["queued", "running", "done", "failed", "lost", "cancelled"]
    error: str
    agreement: Agreement


class LlmScore(TypedDict):
    """What a judge finds correct of a model's answers to a set; it ranks nobody."""

    judge: str
    evaluation_set: str
    version: int
    value: float
    low: float
    high: float
    n: int
    agreement: Agreement


class Matched(TypedDict):
    """How many examples match, and the token with which an action on all of them names them."""

    number: int
    token: str


class Me(TypedDict):
    """Who the request is from."""

    pseudonym: str
    token: Token | None


class Member(TypedDict):
    """A person's role in a task."""

    id: int
    name: str
    email: str | None
    role: Literal["owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge"]
    counts: bool


class MendedExample(TypedDict):
    """An example that only the new model got right."""

    inputs: dict[str, Any]
    expected: str
    before: str
    after: str


class Model(TypedDict):
    """A model, and how far it is. Made of a submission; context: `viewer` says who asks."""

    id: str
    task: str
    name: str
    owner: str
    team: str
    kind: Literal[
        "directory", "image", "predictions", "rows", "hub", "llm", "endpoint", "chat", "target"
    ]
    adapter: Literal["jsonl", "dynalab", "dynabench2"]
    evaluation_set: str | None
    state: Literal["queued", "running", "done", "failed", "lost", "cancelled"]
    phase: str
    sentence: str
    is_over: bool
    share: float | None
    message: str
    outcome: str
    error: str
    is_published: bool
    publish_on: str | None
    anonymous_until: str | None
    handed_in_at: str
    withdrawn_at: str | None
    digest: str
    size: int | None
    source: str
    revision: str
    card: ToldCard


class WholeModel(Model):
    """A model with its place in the queue and its log; context: `runs` are all of its runs."""

    position: int | None
    wait_seconds: float | None
    log: str
    chat: ToldChat | None


class ModelSaid(TypedDict):
    """A model's answer in words."""

    target: str
    said: str


class Named(TypedDict):
    """A task by its code and name."""

    code: str
    name: str


class NearCopy(TypedDict):
    """A published model with nearly the same answers on a set. Counts are of examples."""

    evaluation_set: str
    version: int
    model: str
    name: str
    n: int
    equal: int
    expected: float
    both_wrong: int
    equal_wrong: int


class NewApproval(TypedDict):
    """A request for approval: what those who decide want to know."""

    goal: str
    people: str
    show: NotRequired[bool]
    community: NotRequired[str]


class NewPolicy(TypedDict):
    """Another policy for a round."""

    rule: Literal["n-equal", "at-least", "strict", "plurality", "dawid-skene"]
    needed: NotRequired[int | None]
    of: NotRequired[int | None]
    threshold: NotRequired[float | None]
    dry_run: NotRequired[bool]


class NewRelease(TypedDict):
    """What a version is to be. The splits are dealt once: later versions ignore the sizes."""

    train: NotRequired[int]
    dev: NotRequired[int]
    test: NotRequired[int]
    seed: NotRequired[int]
    hold_back: NotRequired[bool]
    license: Literal["cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc0-1.0"]
    description: NotRequired[str]
    private_test: NotRequired[bool]
    confirmed: NotRequired[dict[str, int]]


class NewTask(TypedDict):
    """A task to be made."""

    is_visible: NotRequired[bool]
    allow_try_out: NotRequired[bool]
    code: str
    config_text: str


class NewTraining(TypedDict):
    """What the next target is trained on and starts from."""

    weights: dict[str, float]
    base: NotRequired[str | None]
    seed: NotRequired[int]
    epochs: NotRequired[int | None]


class NoAnswer(TypedDict):
    """Why a target gave no usable answer."""

    reason: Literal[
        "down",
        "slow",
        "busy",
        "rubbish",
        "refused",
        "too_long",
        "filtered",
        "declined",
        "empty",
        "unmatched",
        "unfinished",
        "misconfigured",
    ]
    message: str
    detail: str


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


class OpenedRound(TypedDict):
    """A round that has opened, in short."""

    number: int
    state: Literal["draft", "ready", "open", "paused", "closed", "released"]
    opened_at: str | None
    closed_at: str | None
    ends_at: str | None


class Round(OpenedRound):
    """A round."""

    rule: Literal["majority", "all", "any"]
    description: str
    show_target_name: bool
    targets: list[str]
    parents: list[int]
    writing_until: str | None
    opening_since: str | None
    max_collected: int | None
    max_fooling: int | None
    max_spent: int | None
    pay_example: int | None
    pay_validation: int | None
    pay_bonus: int | None


class Otherwise(TypedDict):
    """An example of which the model says otherwise than the consensus."""

    example: str
    by_program: bool
    consensus: str
    label: str
    posterior: float


class OwnDuty(TypedDict):
    """One's own duty, with one's progress."""

    id: int
    task: str
    kind: Literal["write", "judge"]
    round: int | None
    amount: int | None
    share: float | None
    overlap: int
    due_on: str | None
    done: int
    state: Literal["over", "done", "late", "open"]


class Duty(OwnDuty):
    """What somebody is asked for, and how far they are; of everybody's what all did."""

    name: str | None
    email: str | None
    wanted: int | None


class OwnValidation(TypedDict):
    """One's own vote. Answers to examples that were settled before look the same."""

    example: str
    vote: str
    flag_reason: str
    comment: str
    metadata: dict[str, Any]
    reveal: str
    reveal_choice: str
    reveal_comment: str
    by_program: bool
    created_at: str
    questions: list[str]
    revealed: Revealed | None


class OwnWorker(TypedDict):
    """A person who may evaluate their and their teams' models on their own machines."""

    id: int
    email: str
    model: str | None
    evaluation_set: NotRequired[str | None]
    takes_sealed: bool
    second: Literal["nobody", "site", "worker"]
    made_at: str
    heard_at: str | None


class Parent(TypedDict):
    """The example that is to be changed."""

    id: str
    inputs: dict[str, Any]


class PastDecision(TypedDict):
    """A decision of an owner; the one that was not withdrawn counts."""

    answer: str
    reason: str
    owner: str
    created_at: str
    withdrawn_at: str | None


class Points(TypedDict):
    """A model's points in a task."""

    task: str
    model: str
    value: float | None
    low: float | None
    high: float | None


class Policy(TypedDict):
    """The policy by which the votes of a round decide."""

    rule: Literal["n-equal", "at-least", "strict", "plurality", "dawid-skene"]
    needed: int
    of: int | None
    threshold: float
    words: str


class Post(TypedDict):
    """News."""

    id: int
    title: str
    text: str
    posted_at: str


class Preview(TypedDict):
    """The changes that a policy would make."""

    examples: int
    changed: int
    reopened: int
    rates: dict[str, ChangedRate]
    transitions: list[Transition]
    first: list[ChangedExample]


class Proposal(TypedDict):
    """Sizes that leave out few rows."""

    dev: int
    test: int
    rows: dict[str, int]
    lost: int


class Quota(TypedDict):
    """How many more models may be submitted."""

    left: int
    most: int
    most_refused: int
    free_at: str | None
    largest_bytes: int


class Rate(TypedDict):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int
    method: str


class Release(TypedDict):
    """A version that is there, is being made, or failed."""

    version: int
    state: NotRequired[Literal["queued", "running", "done", "failed", "lost", "cancelled"]]
    progress: float
    message: NotRequired[str]
    error: str
    queued_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]


class ReleasePreview(TypedDict):
    """What a release of these sizes would hold and leave out."""

    rows: dict[str, int]
    left_out: dict[str, int]
    reasons: dict[str, str]
    proposals: list[Proposal]


class Report(TypedDict):
    """A report about a context."""

    id: int
    task: str
    round: int
    context: GivenContext
    reason: Literal["unreadable", "broken", "wrong-language", "personal", "harmful", "other"]
    comment: str
    reporter: str
    created_at: str
    resolved_at: str | None


class Revealed(TypedDict):
    """What is shown after the vote, where the task does so."""

    author_said: Any
    answers: list[GivenAnswer]


class ReviewItem(TypedDict):
    """An example that needs an expert's look, and why."""

    reasons: list[Literal["no-consensus", "split", "flagged", "sample", "owner"]]
    example: JudgedExample


class RoundPlan(TypedDict):
    """What a round is to be; what is left out stays as it is, or as the form has it."""

    description: NotRequired[str]
    rule: NotRequired[Literal["majority", "all", "any"]]
    show_target_name: NotRequired[bool]
    targets: NotRequired[list[str]]
    parents: NotRequired[list[int]]
    contexts_of: NotRequired[int]
    ends_at: NotRequired[str | None]
    max_collected: NotRequired[int | None]
    max_fooling: NotRequired[int | None]
    max_spent: NotRequired[int | None]
    pay_example: NotRequired[int]
    pay_validation: NotRequired[int]
    pay_bonus: NotRequired[int]


class Run(TypedDict):
    """An evaluation of a model on a version of a set, as it is or perturbed."""

    id: str
    evaluation_set: str
    version: int
    suite: NotRequired[Literal["plain", "robustness", "fairness"]]
    number: int
    state: NotRequired[Literal["queued", "running", "done", "failed", "lost", "cancelled"]]
    outcome: NotRequired[str]
    error: NotRequired[str]
    limit: NotRequired[str]
    measured: NotRequired[str]
    warnings: list[str]
    message: NotRequired[str]
    progress: NotRequired[float]
    position: int | None
    wait_seconds: float | None
    runner: NotRequired[str]
    in_the_loop: NotRequired[bool]
    attempts: NotRequired[int]
    queued_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    usage: Usage
    overlap: float | None


class WholeRun(Run):
    """An evaluation with the end of its log."""

    log: NotRequired[str]


class Scale(TypedDict):
    """The values of a metric at which it counts nothing and whole."""

    low: float
    high: float


class Score(TypedDict):
    """A number with its 95 % interval."""

    run: str
    evaluation_set: str
    version: int
    is_provisional: bool
    judged: int | None
    to_judge: int | None
    suite: Literal["plain", "robustness", "fairness"]
    metric: str
    metric_version: NotRequired[int]
    slice: NotRequired[str]
    kind: NotRequired[str]
    value: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    n: int
    is_rounded: bool


class SecondOpinion(TypedDict):
    """Dawid and Skene's model of a round's votes."""

    reason: str | None
    labels: list[str]
    prior: dict[str, float]
    warnings: list[str]
    otherwise: list[Otherwise]
    validators: list[Believed]


class ShownExample(TypedDict):
    """An example of the task's page."""

    context: dict[str, Any]
    input: dict[str, Any]
    reason: str


class ShownExamples(TypedDict):
    """What to do and what not to do."""

    good: list[ShownExample]
    bad: list[ShownExample]


class Slice(TypedDict):
    """Examples by a value of a slice."""

    tries: int
    verified: int
    slice: str
    value: str


class SpokenTurn(TypedDict):
    """A turn of a conversation."""

    place: int
    role: Literal["user", "assistant"]
    text: str


class Standing(TypedDict):
    """What is, or would be, said of an example."""

    state: Literal["undecided", "decided", "no_consensus"]
    label: str
    verdict: str
    is_verified: bool
    is_validated_error: bool


class Statistics(TypedDict):
    """The numbers by round, and of all these rounds together."""

    task: str
    rounds: list[Numbers]
    all: Numbers


class TargetAnswer(TypedDict):
    """What a target answered."""

    output: dict[str, Any]
    prob: dict[str, float] | None
    seconds: float
    fingerprint: dict[str, Any]


class TargetModel(TypedDict):
    """How a target is reached or loaded."""

    id: int
    name: str
    adapter: str
    url: str
    source: str
    revision: str
    options: dict[str, Any]
    serving: dict[str, Any]
    gpus: int
    secret_env: str
    created_at: str
    contact: Contact
    failure: LiveFailure | None


class TargetSettings(TypedDict):
    """What a target is to be; what is left out stays as it is, or as the form has it."""

    name: NotRequired[str]
    adapter: NotRequired[str]
    url: NotRequired[str]
    source: NotRequired[str]
    revision: NotRequired[str]
    options: NotRequired[dict[str, Any]]
    serving: NotRequired[dict[str, Any]]
    gpus: NotRequired[int]
    secret_env: NotRequired[str]


class TargetTest(TypedDict):
    """One of the two."""

    answer: TargetAnswer | None
    failure: NoAnswer | None


class Task(TypedDict):
    """A task in a list."""

    code: str
    name: str
    summary: str
    language: str
    is_official: bool
    is_sensitive: bool
    allow_try_out: bool
    rounds: list[OpenedRound]


class FullTask(Task):
    """A task with what it asks."""

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
    about: TaskAbout
    created_at: str
    is_visible: bool
    role: Literal["owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge"] | None


class MadeTask(FullTask):
    """A new task, and what to know of its configuration."""

    notes: list[str]


class TaskAbout(TypedDict):
    """Who is behind a task, and on what terms; each may be empty."""

    people: str
    ethics: str
    license: str
    citation: str


class TaskChange(TypedDict):
    """Who sees a task and tries its models; what is left out stays."""

    is_visible: NotRequired[bool]
    allow_try_out: NotRequired[bool]


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


class Team(TypedDict):
    """A team, for its members."""

    id: int
    name: str
    made_at: str
    members: list[TeamMember]


class TeamInvitation(TypedDict):
    """An invitation to oneself."""

    id: int
    team: str


class TeamMember(TypedDict):
    """A member of a team, or an address that is invited."""

    id: int
    name: str
    email: str | None
    is_owner: bool
    joined_at: str | None


class Token(TypedDict):
    """A token without its key."""

    id: int
    name: str
    prefix: str
    scopes: list[Literal["read", "annotate", "submit", "own"]]
    created_at: str
    expires_at: str
    last_used_at: NotRequired[str | None]


class ToldCard(TypedDict):
    """The card as others read it."""

    description: str
    languages: str
    trained_on: str
    trained_until: str | None
    license: str
    paper_url: str
    parameters: int | None


class ToldChat(TypedDict):
    """How a chat model is asked, as it is told."""

    model: str
    instructions: str
    template: str
    base: str
    shots: int
    shots_seed: int
    shot_uids: list[str]
    temperature: float
    seed: int | None
    max_tokens: int
    stop: list[str]
    logprobs: bool
    reader: str
    price_in: float
    price_out: float
    most_cost: float | None
    spent: float | None


class Training(TypedDict):
    """A training, and how far it is."""

    id: int
    state: NotRequired[Literal["queued", "running", "done", "failed", "lost", "cancelled"]]
    progress: float
    message: str
    error: str
    weights: dict[str, float]
    target: NotRequired[str | None]
    round: NotRequired[int | None]
    queued_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]


class WholeTraining(Training):
    """A training with its report."""

    report: TrainingReport | None


class TrainingCurve(TypedDict):
    """How training went."""

    best_epoch: int
    curve: list[dict[str, float]]


class TrainingDates(TypedDict):
    """Models before and after the day until which they were trained, and on what is held back."""

    task: str
    metric: str
    models: list[DatedModel]
    held_back: list[HeldBackModel]


class TrainingReport(TypedDict):
    """What a training did."""

    labels: list[str] | None
    base: str
    seed: int
    old: str | None
    old_missing: str
    sources: list[TrainingSource]
    training: TrainingCurve
    tests: list[TrainingTest]


class TrainingSource(TypedDict):
    """Rows that it learned from, or was tested on."""

    name: str
    dataset: str | None
    weight: float | None
    train: int
    dev: int
    test: int
    left_out: int


class TrainingTest(TypedDict):
    """The old and the new model on one test; null: there is no old one."""

    name: str
    before: Rate | None
    after: Rate
    mended: int | None
    broken: int | None
    p: float | None
    examples: list[MendedExample]


class Transition(TypedDict):
    """How many examples would change alike; the same words twice: another label or verdict."""

    before: str
    after: str
    examples: int


class Upload(TypedDict):
    """A file, and how much of it is here."""

    id: str
    file_name: str
    size: int
    received: int
    piece_bytes: int
    begun_at: str


class Usage(TypedDict):
    """What a run used; null: not measured."""

    seconds: NotRequired[float | None]
    start_seconds: NotRequired[float | None]
    answer_seconds: NotRequired[float | None]
    examples_per_second: NotRequired[float | None]
    cpu_seconds: NotRequired[float | None]
    peak_bytes: NotRequired[int | None]
    mean_bytes: NotRequired[int | None]
    answers: NotRequired[int | None]
    tokens_in: NotRequired[int | None]
    tokens_out: NotRequired[int | None]
    cost: NotRequired[float | None]
    latency_seconds: NotRequired[float | None]
    latency_p95_seconds: NotRequired[float | None]
    unanswered: NotRequired[dict[str, int] | None]


class Validator(TypedDict):
    """Somebody's votes on examples that stand."""

    annotator: str
    median_seconds: float | None
    notes: dict[str, str]
    gold_check: Literal["pass", "fail", "unknown"]
    agreement_check: Literal["pass", "fail", "unknown"]
    reading_check: Literal["pass", "fail", "unknown"]
    votes: int
    reliability: Rate | None
    kappa: float | None
    gold: Rate | None
    unread: Rate | None
    cannot_tell: Rate | None
    skipped: Rate | None
    flags: int
    skips: int


class Version(TypedDict):
    """A version of an evaluation set; it never changes."""

    version: int
    size: int
    overlap: float | None
    made_at: str
    is_provisional: bool
    judged: int | None
    to_judge: int | None
    exposed_at: str | None


class VoteChoice(TypedDict):
    """One of the answers to choose from."""

    vote: str
    words: str


class Webhook(TypedDict):
    """A webhook without its secret."""

    id: int
    task: str | None
    url: str
    events: list[
        Literal[
            "round.closed", "round.released", "submission.finished", "notice.began", "snapshot.made"
        ]
    ]
    is_on: bool
    created_at: str
    failing_since: NotRequired[str | None]


class WebhookMade(Webhook):
    """A webhook with its secret, which nobody sees again."""

    secret: str


class WebhookChange(TypedDict):
    """What to change."""

    url: NotRequired[str]
    events: NotRequired[
        list[
            Literal[
                "round.closed",
                "round.released",
                "submission.finished",
                "notice.began",
                "snapshot.made",
            ]
        ]
    ]
    is_on: NotRequired[bool]


class WebhookNew(TypedDict):
    """Which events go where."""

    url: str
    events: list[
        Literal[
            "round.closed", "round.released", "submission.finished", "notice.began", "snapshot.made"
        ]
    ]
    task: NotRequired[str | None]


class Weights(TypedDict):
    """What counts how much: only ratios matter."""

    metrics: dict[str, float]
    sets: dict[str, float]


class Wrong(TypedDict):
    """An example that a model did not get wholly right."""

    uid: str
    inputs: dict[str, Any]
    answer: Any
    gold: list[Any]
    score: float


class WrongPage(TypedDict):
    """A page of what a model got wrong."""

    examples: list[Wrong]
    next_page: int | None
