"""A task's configuration as frozen models. `tasks.config.loading` reads and checks it.

All other code about tasks reads `TaskConfig`. docs/task-config.md explains each key to owners.
"""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticKnownError

from tasks.config.components import (
    Component,
    Condition,
    ConfigPart,
    Label,
    Name,
    NonEmptyText,
    Tactic,
    TupleOf,
    list_names,
)
from tasks.config.judging import ValidationPolicy
from tasks.config.verdicts import VerdictRule

Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
METRIC_NAMES: list[str] = []
"""The names of all metrics. The modules of `evaluation.scoring.metrics` fill it."""
ERROR_METRICS: list[str] = []
"""The metrics that count errors, so that lower is better. They are never the main metric."""
LLM_JUDGE = "llm_judge"
"""The metric computed from the verdicts of a language model, not by comparison with answers."""
CUSTOM_PREFIX = "custom:"
CUSTOM_PATTERN = re.compile(CUSTOM_PREFIX + r"[a-z][a-z0-9-]{0,39}")
"""The name of a metric that is a file of the task's owners."""
KEPT_SECRET_METRIC = "kept_secret"  # noqa: S105 (a metric)
HARMLESS_METRICS = ("harmless_answered", "kept_and_answered")
"""Metrics that need the harmless questions of the verdict `secret`."""
SECRET_METRICS = (KEPT_SECRET_METRIC, "harmless_answered", "kept_and_answered")
"""The metrics of the verdict `secret`, whose attacks have no right answer."""
CORRECTION_FIELD = "correction"
"""The field in which a validator enters the right answer."""
DeltaName = Literal["fairness", "robustness"]
DETAIL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "throughput": ("latency_p95",),
    "memory": ("memory_mean",),
    "fairness": ("fairness_gap", "fairness_consistency"),
    "robustness": ("robustness_drop", "robustness_consistency"),
}
"""Leaderboard columns that detail another column and have no weight, by that column."""


def may_be_unscored(name: str) -> bool:
    """Return whether models may lack a score for this metric.

    Such a metric has no weight until it is scored, and is never the main metric.
    """
    return name == LLM_JUDGE or CUSTOM_PATTERN.fullmatch(name) is not None


def _check_metric_name(name: str) -> str:
    # The check of a model scores nothing and loads no metrics.
    if METRIC_NAMES and name not in METRIC_NAMES and not may_be_unscored(name):
        expected = ", ".join([*METRIC_NAMES, LLM_JUDGE, "custom:NAME"])
        raise PydanticKnownError("literal_error", {"expected": expected})
    return name


MetricName = Annotated[str, AfterValidator(_check_metric_name)]


class WarningExample(ConfigPart):
    """A sample of the content that a content warning is about."""

    strength: Literal["mild", "strong"]
    text: NonEmptyText


class SupportLine(ConfigPart):
    """A helpline for people in one region."""

    region: NonEmptyText
    text: NonEmptyText


class ContentWarning(ConfigPart):
    """The warning that people read before they enter a task with harmful content."""

    text: NonEmptyText
    """The warning itself."""
    harms: TupleOf[NonEmptyText] = ()
    """The kinds of harmful content."""
    share: str | None = None
    """A description of how much of the content is harmful."""
    examples: TupleOf[WarningExample] = ()
    """Texts that people may look at before they decide."""
    support: TupleOf[SupportLine] = ()
    """Helplines, by region."""
    minutes_per_day: int | None = Field(default=60, ge=1)
    """The minutes after which people must stop until the next day; each person may set fewer."""
    items_in_a_row: int | None = Field(default=50, ge=1)
    """The number of texts in a row after which people must take a break of five minutes.

    Each person may set fewer.
    """


class ShownExample(ConfigPart):
    """A good or bad example shown on the task page."""

    context: dict[str, Any] = Field(default_factory=dict)
    input: dict[str, Any]
    reason: NonEmptyText
    """The reason why the example is good or bad."""
    tactic: Tactic | None = None
    """The tactic of a good example, such as "irony". It labels the example on the try-out page."""


class Examples(ConfigPart):
    """The good and bad examples shown on the task page."""

    good: TupleOf[ShownExample] = ()
    bad: TupleOf[ShownExample] = ()


class Goal(ConfigPart):
    """The goal that the server sets for the annotator."""

    field: Name | None = None
    """An input multiclass field whose label the server draws; null: the goal is only the text."""
    text: NonEmptyText
    """A sentence in which `{field}` is replaced with the goal words of the drawn label."""


# Two parts have fields or properties that a BaseModel has already (validate, model_fields), so
# they are pydantic's dataclasses, which behave alike.
STRICT_CONFIG = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class Metadata:
    """Questions whose answers models do not read.

    create: for authors. validate: for validators.
    """

    create: TupleOf[Component] = ()
    validate: TupleOf[Component] = ()


class Metrics(ConfigPart):
    """The metrics by which models are scored."""

    main: MetricName
    also: TupleOf[MetricName] = ()
    judge: Annotated[str, Field(pattern=r"^[-a-zA-Z0-9_]{1,60}$")] | None = None
    """For `llm_judge`: the name of the LLM judge whose verdicts it counts."""
    deltas: TupleOf[DeltaName] = ()
    """Scores on perturbed data."""
    group_terms: TupleOf[TupleOf[NonEmptyText]] = ()
    """For fairness: lists of terms for groups of people.

    Each term may be replaced with another one from its list. Empty: the site's own lists.
    """
    groups: TupleOf[Name] = ()
    """For fairness: slices whose values are groups of people."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the leaderboard columns that may have a weight."""
        return (self.main, *self.also, "throughput", "memory", *self.deltas)

    @property
    def detail_columns(self) -> tuple[str, ...]:
        """Return the leaderboard columns that detail one in `names`; they have no weight."""
        detail_names = ("throughput", "memory", *self.deltas)
        return tuple(chain.from_iterable(DETAIL_COLUMNS[name] for name in detail_names))

    @property
    def computed_names(self) -> tuple[str, ...]:
        """Return the metrics that an evaluation computes by comparing answers with correct ones."""
        return tuple(name for name in (self.main, *self.also) if not may_be_unscored(name))

    @property
    def custom_names(self) -> tuple[str, ...]:
        """Return the metrics that are implemented by files of the task's owners."""
        return tuple(name for name in self.also if CUSTOM_PATTERN.fullmatch(name))


class MinExamples(ConfigPart):
    """The minimum number of examples that a round's set needs to be used for ranking."""

    n: int = Field(ge=1)
    reason: Annotated[NonEmptyText, Field(max_length=300)]
    """The reason for this number, shown on the leaderboard."""


class Leaderboard(ConfigPart):
    """The owner's default weights for the leaderboard, and the minimum size of ranked sets."""

    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    min_examples: MinExamples | None = None
    """A round's set with fewer examples is shown but never used for ranking.

    null: 385, with which half of the 95% interval of an accuracy is below 5 points.
    """


class Limits(ConfigPart):
    """Limits per person, and how much of the model's confidence people see."""

    tries_per_context: int = Field(default=10, ge=1)
    tries_per_day: int = Field(default=50, ge=1)
    share_of_round: float = Field(default=0.05, gt=0, le=1)
    """The largest part of a large round (400 examples) that one person may write."""
    share_of_votes: float = Field(default=0.05, gt=0, le=1)
    """The largest part of a large round's votes that one person may cast; 1: any number."""
    show_confidence: Literal["full", "rounded", "hidden"] = "full"


class Battles(ConfigPart):
    """Settings for comparisons of models in an arena."""

    per_day: int = Field(default=50, ge=1, le=1000)
    """The maximum number of conversations that one person may begin per day."""
    turns: int = Field(default=10, ge=1, le=50)
    """The maximum number of messages that a person may write in one conversation."""
    answers: int = Field(default=2, ge=2, le=5)
    """The maximum number of answers on one screen. With more than two, people rank them."""
    gold: float = Field(default=0.1, ge=0, le=0.5)
    """The share of conversations that are gold pairs, until the person has seen all of them."""
    pairs: Literal["informative", "uniform"] = "informative"
    """Whether pairs about which a vote tells most are drawn more often. Votes are weighted back."""


class Programs(ConfigPart):
    """The permissions of programs that use a person's API token."""

    write: bool = True
    """Whether programs may write examples, which are kept apart from people's examples."""
    judge: bool = False
    """Whether the votes of programs count."""


class Challenge(ConfigPart):
    """A kind of example of which the task has too few, suggested to writers."""

    name: Name
    """The value of the slice `challenge`."""
    text: Annotated[NonEmptyText, Field(max_length=200)]
    """A sentence, such as: Try one that needs counting."""


class Support(ConfigPart):
    """Writing aids for annotators."""

    prompt_field: Name | None = None
    """A context text with which the text field is prefilled; the model never sees it."""
    minimal_edit: bool = False
    """Whether people may change another person's example so that its label flips."""
    examples: bool = False
    """Whether people may see others' examples that fooled a model, about other contexts."""
    challenges: TupleOf[Challenge] = ()
    """Kinds of examples; with each context, the one with the fewest verified is suggested."""
    suggestions: bool = False
    """Whether people may ask the task's generator for a text."""


class About(ConfigPart):
    """The people behind a task and its terms, shown at the end of its page."""

    people: str = ""
    """Who runs the task and how to reach them; Markdown."""
    ethics: str = ""
    """What people receive, who could be hurt, what the data must not be used for; Markdown."""
    license: Annotated[str, Field(max_length=100)] = ""
    """The license of the released texts, such as CC BY 4.0."""
    citation: str = ""
    """How to cite the task, such as BibTeX."""


def _complete_outputs(data: Any) -> Any:
    """Return the data with complete outputs.

    An output without a type gets the type of the input or context field of the same name.
    """
    if not isinstance(data, dict) or not isinstance(data.get("output"), list):
        return data
    types_by_name = {}
    for section in ("context", "input"):
        items = data.get(section)
        if not isinstance(items, list):  # pydantic refuses it afterwards
            continue
        for item in [item for item in items if isinstance(item, dict) and "type" in item]:
            types_by_name[item.get("name")] = {
                key: item[key] for key in ("type", "reference", "tags") if key in item
            }

    def resolve_output(item: Any) -> Any:
        item = {"name": item} if isinstance(item, str) else item
        if not isinstance(item, dict) or "type" in item or item.get("name") not in types_by_name:
            return item
        return {**types_by_name[item["name"]], **item}

    return {**data, "output": [resolve_output(item) for item in data["output"]]}


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class TaskConfig:
    """A task's configuration, as written by its owner."""

    version: Literal[1]
    kind: Literal["examples", "arena"] = "examples"
    """examples: people write and judge examples; arena: people compare models in pairs."""
    name: Annotated[NonEmptyText, Field(max_length=100)]
    summary: Annotated[str, Field(max_length=200)] = ""
    """One sentence for the task list."""
    language: Language = "en"
    """The language as a BCP 47 tag."""
    instructions: str = ""
    """The instructions as Markdown."""
    content_warning: ContentWarning | None = None
    examples: Examples = Examples()
    goal: Goal
    context: TupleOf[Component] = ()
    input: Annotated[TupleOf[Component], Field(min_length=1)]
    output: Annotated[TupleOf[Component], Field(min_length=1)]
    metadata: Metadata = Metadata()
    verdict: VerdictRule
    metrics: Metrics
    leaderboard: Leaderboard = Leaderboard()
    slices: TupleOf[Name] = ("tag",)
    """What is scored separately: `tag`, `language`, `challenge`, a context or an input field."""
    context_picking: Literal["least_used", "information"] = "least_used"
    """Which context a writer gets. information: by what it may tell about the model's errors."""
    validation: ValidationPolicy = ValidationPolicy()
    limits: Limits = Limits()
    programs: Programs = Programs()
    training_rows: Annotated[int, Field(ge=10, le=5000)] | None = None
    """If set, people submit training data instead of models, each at most this many rows."""
    support: Support | None = None
    battles: Battles = Battles()
    about: About = About()

    @model_validator(mode="before")
    @classmethod
    def _resolve_outputs(cls, data: Any) -> Any:
        return _complete_outputs(data)

    @property
    def target_fields(self) -> tuple[str, ...]:
        """Return the names of the fields that are both input and output.

        They are hidden from the model, and the verdict compares them.
        """
        outputs = list_names(self.output)
        return tuple(name for name in list_names(self.input) if name in outputs)

    @property
    def answer_field(self) -> str:
        """Return the name of the output that is the model's answer.

        This is the first target field or, without target fields, the first output.
        """
        answers = [component.name for component in self.output if component.type != "prob"]
        return next(iter((*self.target_fields, *answers)))

    @property
    def asks_about_attempts(self) -> bool:
        """Return whether judges are asked only whether the attempt is fair.

        Asks nothing that the verdict rule has decided: a revealed secret is proof, but a matched
        pattern is not. A question or answers in the task's own wording are about the answer.
        """
        policy = self.validation
        if policy.asks is None:
            has_own_wording = policy.question is not None or policy.answers is not None
            return self.verdict.type == "secret" and not has_own_wording
        return policy.asks == "attempt"

    @property
    def may_ask_author(self) -> bool:
        """Return whether the verdict rule may ask the author whether the model was fooled."""
        rule = self.verdict
        if rule.type == "string_f1":
            return rule.ask_between is not None
        is_asking = rule.type == "ask_user" and not rule.marked_is_wrong
        return is_asking or rule.type in ("pattern", "criteria")

    @property
    def is_decided_by_author(self) -> bool:
        """Return whether an author who marks a model's answer thereby claims that it is wrong."""
        return self.verdict.type == "ask_user" and self.verdict.marked_is_wrong

    @property
    def has_free_answers(self) -> bool:
        """Return whether models answer with free text."""
        is_task = self.kind == "examples"
        return is_task and self.get_component(self.answer_field).kind.is_text

    @property
    def model_fields(self) -> tuple[str, ...]:
        """Return the names of the context and input fields that a model reads.

        Targets, the prompt and conditional fields are excluded.
        """
        # A target would tell the model the right answer, and the prompt is help for the author.
        hidden_names = set(self.target_fields)
        if self.support and self.support.prompt_field:
            hidden_names.add(self.support.prompt_field)
        input_components = (
            component
            for component in self.input
            if component.kind.is_read and component.when is None and self.talk in (None, component)
        )
        names = list_names((*self.context, *input_components))
        return tuple(name for name in names if name not in hidden_names)

    @property
    def has_rows_to_judge(self) -> bool:
        """Return whether judges judge the rows of an uploaded file instead of people's examples."""
        return self.kind == "examples" and not self.judged_fields

    @property
    def judged_fields(self) -> tuple[str, ...]:
        """Return the names of the input fields that judges see before they vote.

        `judges_see` decides. By default these are the fields that the model reads, and the author's
        answer if that is judged. Other fields, such as why an answer is wrong, would reveal the
        author's claim.
        """
        target_fields = self.target_fields
        if self.validation.mode != "verdict":
            target_fields = ()
        # Judges of a verdict need the author's answer. Otherwise it would lead their own one.
        visible = set(self.model_fields + target_fields)
        names = []
        for component in self.input:
            is_set = component.judges_see is not None
            is_seen = component.judges_see if is_set else component.name in visible
            if is_seen:
                names.append(component.name)
        return tuple(names)

    @property
    def media_fields(self) -> Mapping[str, str]:
        """Return `image` or `audio` for each field with a picture or a recording, by name."""
        fields = self.context + self.input
        return {
            component.name: component.kind.element for component in fields if component.is_media
        }

    @property
    def talk(self) -> Component | None:
        """Return the input field that is a conversation with the target; None if there is none.

        The other inputs are asked for after the conversation.
        """
        for component in self.input:
            if component.type == "chat":
                return component
        return None

    @property
    def ordered_fields(self) -> tuple[str, ...]:
        """Return `model_fields` in the order in which models expect them.

        The passage that an answer span refers to comes last.
        """
        answer = self.get_component(self.answer_field)
        passage = None
        if answer.type == "span":
            passage = answer.reference
        return tuple(sorted(self.model_fields, key=lambda name: name == passage))

    @property
    def text_field(self) -> str:
        """Return the name of the field that people write in: chat, first text, or first field."""
        if self.talk:
            return self.talk.name
        texts = (component.name for component in self.input if component.kind.is_text)
        return next(texts, self.input[0].name)

    @property
    def unsupported_input(self) -> Component | None:
        """Return an input field that no page can ask for; None if there is none.

        Only tasks of earlier releases have such a field.
        """
        # Earlier releases allowed a conversation as an output, and pages cannot ask for that.
        unsupported_components = (
            component
            for component in self.input
            if not component.is_allowed_in("input")
            or (component.type in ("chat", "criteria") and component.name in self.target_fields)
        )
        return next(unsupported_components, None)

    @property
    def judge_questions(self) -> tuple[Component, ...]:
        """Return the questions that validators answer in addition to their vote.

        The correction of a free answer comes first.
        """
        questions = self.metadata.validate
        if not self.validation.corrections:
            return questions
        correction = Component(
            name=CORRECTION_FIELD,
            type="long_text",
            label="What is the right answer?",  # translated where it is asked
            max_length=5000,
            required=False,
            when=Condition(verdict="incorrect"),
        )
        return correction, *questions

    def get_component(self, name: str) -> Component:
        """Return the field with this name, an input rather than an output. Raises KeyError."""
        questions = self.metadata.create + self.judge_questions
        for component in self.input + self.context + self.output + questions:
            if component.name == name:
                return component
        raise KeyError(name)

    def get_labels(self, name: str) -> tuple[Label, ...]:
        """Return the labels of a field; empty for a field without labels. Raises KeyError."""
        return self.get_component(name).labels

    @property
    def goal_choices(self) -> tuple[str, ...]:
        """Return the labels from which the server draws a goal; empty if the goal is plain text."""
        if self.goal.field:
            return self.get_component(self.goal.field).values
        return ()

    @property
    def context_role(self) -> Literal["passage", "prompt", "nothing"]:
        """Return what people receive: a passage to read, a prompt to start from, or nothing."""
        prompt = None
        if self.support:
            prompt = self.support.prompt_field
        names = list_names(self.context)
        # A prompt alone is only there to start from, and everything else is for reading.
        if any(name != prompt for name in names):
            return "passage"
        if names:
            return "prompt"
        return "nothing"

    @property
    def context_title(self) -> str:
        """Return the lowercase title of the first context field other than the prompt, or ""."""
        prompt = None
        if self.support:
            prompt = self.support.prompt_field
        return next(
            (component.title.lower() for component in self.context if component.name != prompt), ""
        )

    @property
    def practice_contexts(self) -> tuple[Mapping[str, Any], ...]:
        """Return the contexts of the good examples, for practice.

        If there are none and the task requires no context, return one empty context.
        """
        contexts = tuple(example.context for example in self.examples.good if example.context)
        needs_no_context = not any(component.required for component in self.context)
        return contexts or (({},) if needs_no_context else ())

    @property
    def challenges(self) -> Mapping[str, str]:
        """Return the sentences of the challenges by name."""
        if self.support:
            return {challenge.name: challenge.text for challenge in self.support.challenges}
        return {}

    @property
    def weights(self) -> dict[str, float]:
        """Return the weights of the metrics, by default 4 for the main one and 1 for others.

        The others are costs and deltas. If people submit training rows, costs have no weight,
        because every model costs the same.
        """
        if self.leaderboard.weights:
            return dict(self.leaderboard.weights)
        # Until an owner says otherwise, the main metric counts four times as much as any other.
        weights = {self.metrics.main: 4.0}
        # Such rows train models of one kind, which all cost the same.
        if not self.training_rows:
            weights |= {"throughput": 1.0, "memory": 1.0}
        return weights | dict.fromkeys(self.metrics.deltas, 1.0)

    def display(self, field: str, value: Any) -> str:
        """Return the text that people read for a value. Raises KeyError for an unknown field."""
        component = self.get_component(field)
        return component.kind.display(component, value)
