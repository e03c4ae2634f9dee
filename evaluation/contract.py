"""The plain values that the parts of an evaluation exchange."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

GIB = 2**30
MIB = 2**20
BASE_IMAGE = "dynabench-base:latest"
"""Python 3.11 with its standard library and nothing else."""
ENDPOINT_ADAPTERS = {"jsonl": "http", "dynalab": "dynalab"}
"""The kind of endpoint (of `tasks.targets.endpoints`) that each adapter stands for."""
MOST_BASES = 100_000  # examples of a set that are perturbed; a thousand take two seconds
PLAN, REST = "plan", "rest"
"""Parts of a set in shards: which examples go together, unanswered; a shard that times nothing."""
LEAST_LOGPROB = -100_000.0
"""Of a whole answer; no text that a model writes here is less likely."""
LEAST_RESAMPLED = 15
"""Of fewer examples resamples are too much alike: see docs/statistics.md."""


class Outcome(StrEnum):
    """The outcome of a run, or of a submission's check."""

    OK = "ok"
    MODEL_ERROR = "model_error"
    OOM = "oom"
    TIMEOUT = "timeout"
    OUTPUT_TOO_LARGE = "output_too_large"
    INVALID_OUTPUT = "invalid_output"
    REJECTED = "rejected"  # at its arrival: nothing was run
    OVER_BUDGET = "over_budget"  # its owner's cap on the cost is reached
    INFRASTRUCTURE = "infrastructure"  # the platform's fault: costs no quota, is tried again
    AWAY = "away"  # the fault of a server that neither runs: costs no quota, is tried again
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
"""Outcomes that say nothing about the model, and cost its person nothing."""


@dataclass(frozen=True)
class Usage:
    """The resources that a run used, measured from outside. None if the runner cannot measure one.

    Seconds are wall-clock time: `seconds` from start to end, `start_seconds` until the first
    answer, `answer_seconds` from the first answer to the last. Bytes are those of the whole
    sandbox. Tokens are those of prompts and answers. `cost` is in the currency of the owner's
    prices. Latency is the time for one example asked alone, as median and 95th percentile.
    `unanswered` counts the examples without an answer by reason, a key of `UNANSWERED`.
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


@dataclass(frozen=True)
class Ending:
    """The end of a model's run. `sentence` tells the submitter what happened and how to fix it."""

    outcome: Outcome
    usage: Usage = Usage(seconds=0.0)
    sentence: str = ""
    limit: str = ""  # the limit that was hit, in words
    measured: str = ""  # what was measured against it, in words
    log: str = ""  # the end of the model's log, at most `Limits.log_bytes`
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Writing:
    """The settings of a language model that writes greedily, until its end token or a stop text."""

    max_tokens: int = 256
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runnable:
    """A model on this machine that can be run: a folder of weights, or an image.

    image: its immutable id (`sha256:…`), never a tag. adapter: one of `Submission.Adapter`, or
    `metric` for an owner's custom metric, whose file lies in the folder. writing: set if the folder
    holds a language model. lora: the folder of an adapter for its weights. gpu: the number of the
    container's GPU. part: PLAN or REST, for a shard of a folder's run.
    """

    folder: Path | None = None
    image: str | None = None
    adapter: str = "jsonl"
    fields: tuple[str, ...] = ()  # what the model reads, in order
    output: str = "label"  # the field that it answers
    labels: tuple[str, ...] | None = None
    writing: Writing | None = None
    lora: Path | None = None
    gpu: str = ""
    part: str = ""


class InvalidOutput(Exception):
    """Raised when an answer breaks the contract.

    The message names the line and how to correct it.
    """


Take = Callable[[bytes], None]
"""Called with each output line as it arrives. Raises InvalidOutput."""
Beat = Callable[[], None]
"""Called at least every two seconds. What it raises ends the model and is passed on."""


@dataclass(frozen=True)
class SetRow:
    """An example of an evaluation set. gold: all right answers, the best first."""

    uid: str
    inputs: Mapping[str, Any]
    gold: tuple[Any, ...]
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # field: values


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
    """A score with its 95 % interval. Rates are 0-1.

    value: None if the score cannot be computed; `note` then says why.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    slice: str = ""  # `field=value`; empty: all
    kind: str = ""  # of perturbation; empty: all
    note: str = ""


@dataclass(frozen=True)
class Evaluated:
    """The result of one evaluation.

    exchanged: labels that look exchanged, each with the label that it may mean. Computed from right
    answers, so only people who may know these may see it.
    """

    ending: Ending
    runner: str
    numbers: Sequence[Number] = ()
    predictions: Path | None = None  # gzipped JSON lines in the order of the set
    compared: tuple[int, int] | None = None  # a second machine's answers; those that differ
    exchanged: Mapping[str, str] = field(default_factory=dict)
