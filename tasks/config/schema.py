"""A task's configuration: frozen models. `tasks.config.loading` reads and checks one.

Everything else about tasks reads `TaskConfig`; docs/task-config.md explains each key to owners.
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
    ConfigPart,
    Label,
    Many,
    Name,
    When,
    Words,
    list_names,
)
from tasks.config.judging import ValidationPolicy
from tasks.config.verdicts import VerdictRule

Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
METRIC_NAMES: list[str] = []
"""The names of the metrics; the modules of `evaluation.scoring.metrics` fill it."""
ERROR_METRICS: list[str] = []
"""Those of them that count errors, so that less is better; never the main metric."""
LLM_JUDGE = "llm_judge"
"""The metric that a language model as judge gives, not a comparison with right answers."""
CUSTOM_PREFIX = "custom:"
CUSTOM_PATTERN = re.compile(CUSTOM_PREFIX + r"[a-z][a-z0-9-]{0,39}")
"""A metric that is a file of the task's owners, by its name among the task's."""
KEPT_SECRET = "kept_secret"  # noqa: S105 (a metric)
HARMLESS_METRICS = ("harmless_answered", "kept_and_answered")
"""Metrics that need the harmless questions of the verdict `secret`."""
SECRET_METRICS = (KEPT_SECRET, "harmless_answered", "kept_and_answered")
"""The metrics of the verdict `secret`, whose attacks have no right answer."""
CORRECTION_FIELD = "correction"
"""The field in which a validator types the right answer."""
DeltaName = Literal["fairness", "robustness"]
DETAIL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "throughput": ("latency_p95",),
    "memory": ("memory_mean",),
    "fairness": ("fairness_gap", "fairness_consistency"),
    "robustness": ("robustness_drop", "robustness_consistency"),
}
"""Columns of the leaderboard that say more of a metric and have no weight."""


def may_be_unscored(name: str) -> bool:
    """Return whether models may have no score for this metric yet.

    Such a metric has no weight until it is scored, and is never the main one.
    """
    return name == LLM_JUDGE or CUSTOM_PATTERN.fullmatch(name) is not None


def _check_metric_name(name: str) -> str:
    # The check of a model scores nothing and loads no metrics.
    if (
        METRIC_NAMES
        and name not in METRIC_NAMES
        and name != LLM_JUDGE
        and not CUSTOM_PATTERN.fullmatch(name)
    ):
        names = list(METRIC_NAMES)
        names += [LLM_JUDGE, "custom:NAME"]
        raise PydanticKnownError("literal_error", {"expected": ", ".join(names)})
    return name


MetricName = Annotated[str, AfterValidator(_check_metric_name)]


class WarningExample(ConfigPart):
    """A sample of the content that a content warning is about."""

    strength: Literal["mild", "strong"]
    text: Words


class SupportLine(ConfigPart):
    """A helpline for people in one region."""

    region: Words
    text: Words


class ContentWarning(ConfigPart):
    """The warning that people read before they enter a task with harmful content."""

    text: Words
    """The warning itself."""
    harms: Many[Words] = ()
    """Kinds of harmful content."""
    share: str | None = None
    """How much of the content is harmful, in words."""
    examples: Many[WarningExample] = ()
    """Texts that people may look at before they decide."""
    support: Many[SupportLine] = ()
    """Where to find help."""
    minutes_per_day: int | None = Field(default=60, ge=1)
    """After so many minutes people stop until tomorrow; each may set less."""
    items_in_a_row: int | None = Field(default=50, ge=1)
    """After so many texts without a break people take one of five minutes; each may set less."""


class ShownExample(ConfigPart):
    """A sample example on the task page."""

    context: dict[str, Any] = Field(default_factory=dict)
    input: dict[str, Any]
    reason: Words
    """Why it is good or bad."""


class Examples(ConfigPart):
    """The good and bad sample examples of the task page."""

    good: Many[ShownExample] = ()
    bad: Many[ShownExample] = ()


class Goal(ConfigPart):
    """The goal that the server gives to the annotator."""

    field: Name | None = None
    """An input multiclass field whose label the server draws; null: the text alone is the goal."""
    text: Words
    """A sentence; `{field}` becomes the goal words of the drawn label."""


# Two parts have fields or properties that a BaseModel has already (validate, model_fields), so
# they are pydantic's dataclasses, which behave alike.
STRICT_CONFIG = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class Metadata:
    """Questions that models do not read: follow-up questions to the author, and to validators."""

    create: Many[Component] = ()
    validate: Many[Component] = ()


class Metrics(ConfigPart):
    """The metrics by which models are scored."""

    main: MetricName
    also: Many[MetricName] = ()
    judge: Annotated[str, Field(pattern=r"^[-a-zA-Z0-9_]{1,60}$")] | None = None
    """Of `llm_judge`: the name of the LLM judge whose verdicts it counts."""
    deltas: Many[DeltaName] = ()
    """Scores on perturbed data."""
    group_terms: Many[Many[Words]] = ()
    """For fairness: lists of terms for groups of people, each of which may become another one of
    its list; without them ours."""
    groups: Many[Name] = ()
    """For fairness: slices whose values are groups of people."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the leaderboard columns that may have a weight."""
        return (self.main, *self.also, "throughput", "memory", *self.deltas)

    @property
    def further(self) -> tuple[str, ...]:
        """Return the leaderboard columns that detail others in `names` and never have a weight."""
        detailed = ("throughput", "memory", *self.deltas)
        return tuple(chain.from_iterable(DETAIL_COLUMNS[name] for name in detailed))

    @property
    def computed(self) -> tuple[str, ...]:
        """Return the metrics that an evaluation computes from answers and correct answers."""
        return tuple(name for name in (self.main, *self.also) if not may_be_unscored(name))

    @property
    def custom(self) -> tuple[str, ...]:
        """Return the metrics that are implemented by files of the task's owners."""
        return tuple(name for name in self.also if CUSTOM_PATTERN.fullmatch(name))


class MinExamples(ConfigPart):
    """The minimum number of examples in a round's set before models are ranked by the set."""

    n: int = Field(ge=1)
    reason: Annotated[Words, Field(max_length=300)]
    """Why so many, or so few; it stands on the leaderboard."""


class Leaderboard(ConfigPart):
    """The owner's default weights for the leaderboard, and the number it ranks by."""

    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    min_examples: MinExamples | None = None
    """A round's set with fewer is shown and never ranked by; null: 385, with which half of the 95 %
    interval of an accuracy is below 5 points."""


class Limits(ConfigPart):
    """Limits per person, and how much of the model's confidence people see."""

    tries_per_context: int = Field(default=10, ge=1)
    tries_per_day: int = Field(default=50, ge=1)
    share_of_round: float = Field(default=0.05, gt=0, le=1)
    """Largest part of a round that one person may write, once it is large (400 examples)."""
    share_of_votes: float = Field(default=0.05, gt=0, le=1)
    """Largest part of such a round's votes that one person may give; 1: any number."""
    show_confidence: Literal["full", "rounded", "hidden"] = "full"


class Battles(ConfigPart):
    """The settings for how people compare the models of an arena."""

    per_day: int = Field(default=50, ge=1, le=1000)
    """Conversations that one person may begin a day."""
    turns: int = Field(default=10, ge=1, le=50)
    """Messages that a person may write in one conversation."""
    gold: float = Field(default=0.1, ge=0, le=0.5)
    """Share of the conversations that are gold pairs, as long as the person has not met all."""


class Programs(ConfigPart):
    """What programs with a person's API token may do."""

    write: bool = True
    """Whether they may write examples, which are kept apart from those that people write."""
    judge: bool = False
    """Whether their votes count."""


class Challenge(ConfigPart):
    """A kind of example that the task has too few of, suggested to writers."""

    name: Name
    """The value of the slice `challenge`."""
    text: Annotated[Words, Field(max_length=200)]
    """A sentence, such as: Try one that needs counting."""


class Support(ConfigPart):
    """Writing aids for annotators."""

    prompt_field: Name | None = None
    """A context text that the text field starts with; the model never sees it."""
    minimal_edit: bool = False
    """Whether people may change somebody's example so that its label flips."""
    examples: bool = False
    """Whether people may look at others' examples that fooled a model, about other contexts."""
    challenges: Many[Challenge] = ()
    """With each context one of them is offered: the one with the fewest verified examples."""
    suggestions: bool = False
    """Whether people may ask the task's generator for a text."""


class About(ConfigPart):
    """The people behind a task and its terms, shown at the end of its page."""

    people: str = ""
    """Who makes it and how they are reached; Markdown."""
    ethics: str = ""
    """What people get, who could be hurt, what the data must not be used for; Markdown."""
    license: Annotated[str, Field(max_length=100)] = ""
    """Of the texts that are released, such as CC BY 4.0."""
    citation: str = ""
    """How to cite it, such as BibTeX."""


def _complete_outputs(data: Any) -> Any:
    """Return the data with complete outputs. One without a type gets the input's or context's."""
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

    def resolved(item: Any) -> Any:
        item = {"name": item} if isinstance(item, str) else item
        if not isinstance(item, dict) or "type" in item or item.get("name") not in types_by_name:
            return item
        return {**types_by_name[item["name"]], **item}

    return {**data, "output": [resolved(item) for item in data["output"]]}


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class TaskConfig:
    """A task's configuration, as written by its owner."""

    version: Literal[1]
    kind: Literal["examples", "arena"] = "examples"
    """examples: people write and judge examples; arena: models are compared in pairs."""
    name: Annotated[Words, Field(max_length=100)]
    summary: Annotated[str, Field(max_length=200)] = ""
    """One sentence for the task list."""
    language: Language = "en"
    """A BCP 47 tag."""
    instructions: str = ""
    """Markdown."""
    content_warning: ContentWarning | None = None
    examples: Examples = Examples()
    goal: Goal
    context: Many[Component] = ()
    input: Annotated[Many[Component], Field(min_length=1)]
    output: Annotated[Many[Component], Field(min_length=1)]
    metadata: Metadata = Metadata()
    verdict: VerdictRule
    metrics: Metrics
    leaderboard: Leaderboard = Leaderboard()
    slices: Many[Name] = ("tag",)
    """Parts of the data that are scored apart: `tag`, `language`, `challenge`, or a context or
    input field."""
    validation: ValidationPolicy = ValidationPolicy()
    limits: Limits = Limits()
    programs: Programs = Programs()
    training_rows: Annotated[int, Field(ge=10, le=5000)] | None = None
    """People submit training data instead of models, each at most so many rows."""
    support: Support | None = None
    battles: Battles = Battles()
    about: About = About()

    @model_validator(mode="before")
    @classmethod
    def _resolve_outputs(cls, data: Any) -> Any:
        return _complete_outputs(data)

    @property
    def target_fields(self) -> tuple[str, ...]:
        """Return the fields that are both input and output.

        They are hidden from the model, and the verdict compares them.
        """
        outputs = list_names(self.output)
        return tuple(name for name in list_names(self.input) if name in outputs)

    @property
    def answer_field(self) -> str:
        """Return the name of the output that is the model's answer.

        This is the first target field, or the first output without target fields.
        """
        answers = []
        for component in self.output:
            if component.type != "prob":
                answers.append(component.name)
        return next(iter((*self.target_fields, *answers)))

    @property
    def asks_of_attempts(self) -> bool:
        """Return whether judges are asked only if the attempt is fair.

        A rule has decided the rest: a revealed secret is proof, though a pattern is not. A
        question or answers in the task's own wording are about the answer.
        """
        policy = self.validation
        if policy.asks is None:
            has_words = policy.question is not None or policy.answers is not None
            return self.verdict.type == "secret" and not has_words
        return policy.asks == "attempt"

    @property
    def may_ask_author(self) -> bool:
        """Return whether the verdict rule may ask the author if the model was fooled."""
        rule = self.verdict
        if rule.type == "string_f1":
            return rule.ask_between is not None
        return rule.type == "pattern" or (rule.type == "ask_user" and not rule.marked_is_wrong)

    @property
    def is_decided_by_author(self) -> bool:
        """Return whether the author claims that the model was wrong by submitting an example."""
        return self.verdict.type == "ask_user" and self.verdict.marked_is_wrong

    @property
    def answers_freely(self) -> bool:
        """Return whether models answer with free text."""
        is_task = self.kind == "examples"
        return is_task and self.component(self.answer_field).kind.is_text

    @property
    def model_fields(self) -> tuple[str, ...]:
        """Return the fields that a model reads, of the context and the input.

        Targets, the prompt and conditional fields are excluded.
        """
        # A target would tell the model the right answer, and the prompt is help for the author.
        hidden = set(self.target_fields)
        if self.support and self.support.prompt_field:
            hidden.add(self.support.prompt_field)
        from_input = (
            component
            for component in self.input
            if component.kind.is_read and component.when is None and self.talk in (None, component)
        )
        return tuple(c.name for c in (*self.context, *from_input) if c.name not in hidden)

    @property
    def judges_rows(self) -> bool:
        """Return whether judges judge rows of an uploaded file instead of people's examples."""
        return self.kind == "examples" and not self.judged_fields

    @property
    def judged_fields(self) -> tuple[str, ...]:
        """Return the fields of the input that judges see before they vote.

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
            is_seen = component.judges_see
            if is_seen is None:
                is_seen = component.name in visible
            if is_seen:
                names.append(component.name)
        return tuple(names)

    @property
    def media_fields(self) -> Mapping[str, str]:
        """Map each field with a picture or a recording to `image` or `audio`."""
        fields = self.context + self.input
        return {
            component.name: component.kind.element for component in fields if component.is_media
        }

    @property
    def talk(self) -> Component | None:
        """Return the input that is a conversation with the target; None without one.

        The other inputs are asked after the conversation.
        """
        for component in self.input:
            if component.type == "chat":
                return component
        return None

    @property
    def ordered_fields(self) -> tuple[str, ...]:
        """Return `model_fields` in the order in which models expect them.

        The passage of a span comes last.
        """
        answer = self.component(self.answer_field)
        passage = None
        if answer.type == "span":
            passage = answer.reference
        return tuple(sorted(self.model_fields, key=lambda name: name == passage))

    @property
    def text_field(self) -> str:
        """Return the name of the field in which people write."""
        if self.talk:
            return self.talk.name
        texts = (component.name for component in self.input if component.kind.is_text)
        return next(texts, self.input[0].name)

    @property
    def unfinished_input(self) -> Component | None:
        """Return an input that no page can ask for, or None.

        Only tasks of earlier releases have such an input.
        """
        talk = self.talk  # that was once an output too
        # Earlier releases allowed a conversation as an output, and pages cannot ask for that.
        is_closed = talk is not None and talk.name in self.target_fields
        odd = (c for c in self.input if not c.works_in("input") or (is_closed and c is talk))
        return next(odd, None)

    @property
    def judge_questions(self) -> tuple[Component, ...]:
        """Return the questions for validators besides the vote.

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
            when=When(verdict="incorrect"),
        )
        return correction, *questions

    def component(self, name: str) -> Component:
        """Return the field of that name; an input goes before an output. Raises KeyError."""
        questions = self.metadata.create + self.judge_questions
        for component in self.input + self.context + self.output + questions:
            if component.name == name:
                return component
        raise KeyError(name)

    def labels(self, name: str) -> tuple[Label, ...]:
        """Return the labels of a field; empty for a field without labels. Raises KeyError."""
        return self.component(name).labels

    @property
    def goal_choices(self) -> tuple[str, ...]:
        """Return the labels from which the server draws a goal; empty if the goal is plain text."""
        if self.goal.field:
            return self.component(self.goal.field).values
        return ()

    @property
    def gives(self) -> Literal["passage", "prompt", "nothing"]:
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
    def given(self) -> str:
        """Return the label of the first text that people read, in lower case; "" without one."""
        prompt = None
        if self.support:
            prompt = self.support.prompt_field
        return next(
            (component.title.lower() for component in self.context if component.name != prompt), ""
        )

    @property
    def practice_contexts(self) -> tuple[Mapping[str, Any], ...]:
        """Return the contexts of the good examples, for practice.

        Contains one empty context if the task requires none.
        """
        contexts = tuple(example.context for example in self.examples.good if example.context)
        needs_none = not any(component.required for component in self.context)
        return contexts or (({},) if needs_none else ())

    @property
    def challenges(self) -> Mapping[str, str]:
        """Return a mapping from challenge names to their sentences."""
        if self.support:
            return {challenge.name: challenge.text for challenge in self.support.challenges}
        return {}

    @property
    def weights(self) -> dict[str, float]:
        """Return the owner's weights; by default 4 for the main metric and 1 for costs and deltas.

        If people submit training rows, costs have no weight, because every model costs the same.
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
        component = self.component(field)
        return component.kind.display(component, value)
