"""The plain values that the parts of an evaluation exchange."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

GIB = 2**30
MIB = 2**20
BASE_IMAGE = "dynabench-base:latest"
"""An image with Python 3.11, its standard library and nothing else."""
ENDPOINT_ADAPTERS = {"jsonl": "http", "dynalab": "dynalab"}
"""The endpoint kind (see `tasks.targets.endpoints`) of each adapter."""
MAX_PERTURBED_EXAMPLES = (
    100_000  # the number of perturbed examples of a set; a thousand take two seconds
)
PLAN_PART, REST_PART = "plan", "rest"
"""Values of `Runnable.part`: group a set into batches, or answer a shard without timing."""
MIN_LOGPROB = -100_000.0
"""The lowest log-probability accepted for a whole answer. No text written here is less likely."""
MIN_RESAMPLED_EXAMPLES = 15
"""With fewer examples, resamples are too similar: see docs/statistics.md."""


class Outcome(StrEnum):
    """The outcome of a run, or of a submission's check."""

    OK = "ok"
    MODEL_ERROR = "model_error"
    OOM = "oom"
    TIMEOUT = "timeout"
    OUTPUT_TOO_LARGE = "output_too_large"
    INVALID_OUTPUT = "invalid_output"
    REJECTED = "rejected"  # refused on arrival: nothing was run
    OVER_BUDGET = "over_budget"  # its owner's cap on costs is reached
    INFRASTRUCTURE = "infrastructure"  # the platform's fault: does not use quota, is tried again
    AWAY = "away"  # a third party's server failed: does not use quota, is tried again
    CANCELLED = "cancelled"


class WorkStopped(Exception):
    """Raised when the work of a job stops. The message is for the person who requested the job.

    The class decides the job's next state (`evaluation.isolation.queue.lifecycle`).
    """


class NotNow(WorkStopped):
    """Raised when this site cannot do the work at present. The attempt does not count.

    seconds: how long the job waits; None for a minute.
    """

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class ServerAway(WorkStopped):
    """Raised when a server that others run does not answer. The message names it.

    has_answered: whether it answered some calls before, which may have cost money.
    """

    def __init__(self, message: str, *, has_answered: bool = False) -> None:
        super().__init__(message)
        self.has_answered = has_answered


class AttemptFailed(WorkStopped):
    """Raised when an attempt fails in a way that another attempt may not."""


class ImpossibleJob(WorkStopped):
    """Raised when another attempt would fail, too.

    columns: further columns of the job's row, stored with the message.
    """

    def __init__(self, message: str, **columns: Any) -> None:
        super().__init__(message)
        self.columns = columns


UNMEASURED_OUTCOMES = (Outcome.INFRASTRUCTURE, Outcome.AWAY)
"""Outcomes that say nothing about the model and cost the submitter nothing."""


@dataclass(frozen=True)
class Usage:
    """The resources that a run used, measured from outside. Values that were not measured are None.

    Seconds are wall-clock time: `seconds` from start to end, `start_seconds` until the first
    answer, `answer_seconds` from the first answer to the last. Bytes are those of the whole
    sandbox. Tokens are those of prompts and answers. `cost` is in the currency of the owner's
    prices. Latency is the time for one example asked alone, as median and 95th percentile.
    `unanswered` counts the examples without an answer by reason, a key of `UNANSWERED_REASONS`.
    `measurements` is what speed and memory were computed from (`evaluation.scoring.measured`).
    """

    seconds: float
    start_seconds: float | None = None
    answer_seconds: float | None = None
    examples_per_second: float | None = None
    cpu_seconds: float | None = None
    peak_bytes: int | None = None
    mean_bytes: int | None = None
    answers: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    latency_seconds: float | None = None
    latency_p95_seconds: float | None = None
    unanswered: Mapping[str, int] | None = None
    measurements: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Ending:
    """The end of a model's run. `sentence` tells the submitter what happened and how to fix it."""

    outcome: Outcome
    usage: Usage = Usage(seconds=0.0)
    sentence: str = ""
    limit: str = ""  # the exceeded limit, in words
    measured: str = ""  # the measured value, in words
    log: str = ""  # the end of the model's log, at most `Limits.log_bytes`
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class WritingSettings:
    """The settings of a language model that decodes greedily until its end token or a stop text.

    max_tokens: the maximum number of tokens that it writes.
    """

    max_tokens: int = 256
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runnable:
    """A model on this machine that can be run: a folder of weights, or an image.

    image: its immutable id (`sha256:…`), never a tag. adapter: one of `Submission.Adapter`, or
    `metric` for an owner's custom metric, whose file is in the folder. writing_settings: set if
    the folder contains a language model. lora: the folder of an adapter for its weights. gpu: the
    number of the container's GPU. part: PLAN_PART or REST_PART, for a shard of a folder's run.
    """

    folder: Path | None = None
    image: str | None = None
    adapter: str = "jsonl"
    fields: tuple[str, ...] = ()  # what the model reads, in order
    output: str = "label"  # the field that it predicts
    labels: tuple[str, ...] | None = None
    writing_settings: WritingSettings | None = None
    lora: Path | None = None
    gpu: str = ""
    part: str = ""


class InvalidOutput(Exception):
    """Raised when an answer breaks the contract.

    The message names the line and how to correct it.
    """


LineCallback = Callable[[bytes], None]
"""Called with each output line as it arrives. Raises InvalidOutput."""
BeatCallback = Callable[[], None]
"""A function that is called at least every two seconds. If it raises, the model is stopped.

The exception is propagated.
"""


@dataclass(frozen=True)
class SetRow:
    """An example of an evaluation set. gold: all right answers, the best first.

    criteria: the author's criteria for an answer, `{text, points}`; empty if the task has none.
    """

    uid: str
    inputs: Mapping[str, Any]
    gold: tuple[Any, ...]
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # field: values
    criteria: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Answer:
    """A checked answer: the value of the task's answer field, and probabilities by label.

    logprob: natural logarithm of the probability of the whole text. tokens: the numbers of tokens
    read and written. Both are None if unknown.
    """

    value: Any
    prob: Mapping[str, float] | None = None
    logprob: float | None = None
    tokens: tuple[int, int] | None = None


@dataclass(frozen=True)
class Number:
    """A score with its 95% interval. Rates are 0-1.

    value: None if the score cannot be computed; `note` then says why.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    slice: str = ""  # `field=value`; empty: all
    kind: str = ""  # the kind of perturbation; empty: all
    note: str = ""


@dataclass(frozen=True)
class EvaluationResult:
    """The result of one evaluation.

    compared: the number of answers that a second machine gave, and how many of them differ.
    exchanged: labels that look exchanged, each with the label that it may mean. Computed from right
    answers, so only people who may know these may see it.
    """

    ending: Ending
    runner: str
    numbers: Sequence[Number] = ()
    predictions: Path | None = None  # gzipped JSON lines in the order of the set
    compared: tuple[int, int] | None = None  # (answers of a second machine, differing ones)
    exchanged: Mapping[str, str] = field(default_factory=dict)
