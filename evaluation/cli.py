"""Run one evaluation from the shell, without a queue, and report it as plain values."""

import gzip
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings

from evaluation.contract import (
    Answer,
    EvaluationResult,
    NotNow,
    Outcome,
    Runnable,
    ServerAway,
    SetRow,
)
from evaluation.isolation.inference import precheck
from evaluation.isolation.inference.evaluate import (
    Attempt,
    Question,
    evaluate_set,
    evaluate_suite,
    read_predictions,
)
from evaluation.isolation.inference.exchange import ProgressCallback
from evaluation.isolation.queue.attempt_keys import TEMPORARY_PREFIX, make_manual_run_key
from evaluation.isolation.sandbox.endpoint import EndpointRunner
from evaluation.isolation.sandbox.limits import CHAT_CALL_LIMITS
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.runs.chat.asking import make_chat_endpoint
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.runs.runners import get_machine_limits
from evaluation.runs.selectors import compute_cost_cents
from evaluation.scoring.exchanged import make_exchanged_warnings
from evaluation.scoring.paraphrase import PARAPHRASE_KIND as PARAPHRASE
from evaluation.scoring.paraphrase import ParaphraseFunction, Paraphraser
from evaluation.task_shape import make_runnable
from evaluation.test_sets.parsing import InvalidLines, SetFile
from evaluation.test_sets.selectors import (
    read_checked_paraphrases,
    read_set_rows,
    select_newest_versions,
)
from tasks.contexts.media.selectors import prepare_for_models
from tasks.line_files import FileError
from tasks.models import Task
from tasks.targets.endpoints.base import EndpointError

ReadRows = Callable[[], Iterable[SetRow]]


class CannotEvaluate(Exception):
    """Raised when an evaluation cannot be run as requested. The message names what to correct."""


@dataclass(frozen=True)
class Examples:
    """The examples on which a model is run: a version of a set, or a file."""

    name: str
    rows: ReadRows
    size: int
    checked_paraphrases: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # see `read_checked_paraphrases`


def find_examples(task: Task, dataset: str, limit: int | None) -> Examples:
    """Return the newest version of the task's set with this name, or else the examples of a file.

    limit: the number of rows to take from the start; None takes all. Raises CannotEvaluate if
    neither exists, or if the file has errors or no rows.
    """
    if limit is not None and limit < 1:
        raise CannotEvaluate(f"--limit {limit}: it must be 1 or more.")
    version = select_newest_versions(task).filter(evaluation_set__name=dataset).first()
    path = Path(dataset)
    if version:
        name, rows = str(version), partial(read_set_rows, version)
    elif path.is_file():
        name, rows = path.name, partial(iter, SetFile(path, path.name, task.config))
    else:
        sets = task.evaluation_sets.filter(versions__isnull=False).distinct()
        names = ", ".join(sets.values_list("name", flat=True)) or "none"
        raise CannotEvaluate(
            f"{task} has no evaluation set {dataset!r}, and this file doesn't exist. Sets: "
            f"{names}. Files end in .jsonl, .csv or .parquet."
        )
    try:
        size = sum(1 for _ in islice(rows(), limit))
    except InvalidLines as error:
        messages = [f"{name}:{line.line}: {line.message}" for line in error.errors]
        raise CannotEvaluate("\n".join(messages)) from None
    except FileError as error:
        raise CannotEvaluate(str(error)) from None
    if not size:
        raise CannotEvaluate(f"{name} contains no examples.")
    examples = Examples(name, lambda: islice(rows(), limit), size)
    if version:
        examples = replace(examples, checked_paraphrases=read_checked_paraphrases(version))
    return examples


def find_model(task: Task, model: str, runner: str | None) -> tuple[Runnable, Runner]:
    """Return the model in a folder, or the image with this name, and its runner.

    runner: docker or process; None chooses docker if a container engine answers. Raises
    CannotEvaluate.
    """
    try:
        return precheck.find_runnable_model(task.config, model, runner, make_manual_run_key())
    except (precheck.SubmissionRefused, NotNow, ServerAway) as error:
        raise CannotEvaluate(str(error)) from None


def read_key(variable: str) -> str:
    """Return the key in an environment variable; "" if no variable is named.

    Raises CannotEvaluate.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "")
    if not key:
        raise CannotEvaluate(f"--secret-env: the variable {variable} is empty or not set.")
    return key


def find_chat(
    task: Task, url: str, model: str, instructions: str | None, key: str = ""
) -> tuple[Runnable, Runner]:
    """Return the model with this name behind an OpenAI-compatible interface, and its runner.

    instructions: the system prompt; None uses the default prompt of a submission. key: the server's
    API key, "" if it needs none. Raises CannotEvaluate.
    """
    chat = make_chat_settings(task.config, model=model, instructions=instructions)
    try:
        endpoint = make_chat_endpoint(task.config, url, key, chat)
    except EndpointError as error:
        raise CannotEvaluate(f"--chat {url}: {error}") from None
    return make_runnable(task.config), EndpointRunner(endpoint, CHAT_CALL_LIMITS)


def find_paraphrase(folder: str | None) -> ParaphraseFunction | None:
    """Load the seq2seq model in a folder and return it; None if no folder is named.

    Raises CannotEvaluate.
    """
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise CannotEvaluate(f"--paraphrase: the folder {folder} doesn't exist.")
    try:
        return Paraphraser(Path(folder))
    except (OSError, ValueError) as error:
        raise CannotEvaluate(
            f"--paraphrase {folder}: a seq2seq model as save_pretrained writes it, with its "
            f"tokenizer and safetensors weights, is needed ({error})"
        ) from None


def evaluate_from_shell(
    task: Task,
    examples: Examples,
    model: Runnable,
    runner: Runner,
    suites: Sequence[str],
    report_progress: ProgressCallback,
    paraphrase: ParaphraseFunction | None = None,
) -> dict[str, Any]:
    """Return the report of a plain evaluation and, if it succeeded, of perturbed suites.

    Parameters
    ----------
    task : Task
        The task whose fields and metrics are used.
    examples : Examples
        The examples on which the model is run.
    model, runner : Runnable, Runner
        The model and its runner, as returned by `find_model` or `find_chat`.
    suites : sequence of str
        The perturbed suites to run after the plain evaluation.
    report_progress : ProgressCallback
        Receives the progress.
    paraphrase : ParaphraseFunction, optional
        Paraphrases texts. If given, a suite of paraphrased examples is run last.
    """
    question = Question(
        task.config,
        examples.rows,
        sp_model=settings.SP_BLEU_MODEL,
        paraphrase=paraphrase,
        prepare_inputs=partial(prepare_for_models, task.config, task),
        checked_paraphrases=examples.checked_paraphrases,
    )
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as plain_folder:
        attempt = Attempt(model, runner, get_machine_limits(), report_progress, Path(plain_folder))
        plain_evaluation = evaluate_set(question, attempt)
        report = {
            "task": task.code,
            "dataset": examples.name,
            "examples": examples.size,
            "runner": runner.name,
            **_make_report(plain_evaluation, "slices"),
            "perturbations": {},
        }
        if plain_evaluation.ending.outcome == Outcome.OK:
            assert plain_evaluation.predictions
            plain_answers = partial(_read_answers, plain_evaluation.predictions)
            all_suites = list(suites)
            if paraphrase:
                all_suites.append(PARAPHRASE)
            for suite in all_suites:
                with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
                    suite_attempt = replace(attempt, folder=Path(folder))
                    perturbed = evaluate_suite(question, suite, plain_answers, suite_attempt)
                report["perturbations"][suite] = _make_report(perturbed, "kinds")
    return report


def find_overall_outcome(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return outcome and sentence of the report's first failed part, or `ok` and ""."""
    reports = [report]
    reports += report["perturbations"].values()
    for part_report in reports:
        if part_report["outcome"] != Outcome.OK:
            return part_report["outcome"], part_report["sentence"]
    return Outcome.OK, ""


def _read_answers(predictions: Path) -> Iterator[Answer | None]:
    with gzip.open(predictions) as lines:
        yield from read_predictions(lines)


def _make_report(evaluated_set: EvaluationResult, parts_key: str) -> dict[str, Any]:
    """Return the outcome, the resources used, and the numbers overall and by part.

    parts_key: the report's key for the numbers by part.
    """
    ending, usage = evaluated_set.ending, evaluated_set.ending.usage
    numbers: dict[str, dict[str, Any]] = {"": {}}
    for number in evaluated_set.numbers:
        by_metric = numbers.setdefault(number.slice or number.kind, {})
        by_metric[number.metric] = {
            "value": number.value,
            "low": number.low,
            "high": number.high,
            "n": number.n,
        }
    notes = [f"{number.metric}: {number.note}" for number in evaluated_set.numbers if number.note]
    warnings = list(ending.warnings)
    warnings += make_exchanged_warnings(evaluated_set.exchanged)
    warnings += dict.fromkeys(notes)  # without repetitions
    return {
        "outcome": str(ending.outcome),
        "sentence": ending.sentence,
        "limit": ending.limit,
        "measured": ending.measured,
        "metrics": numbers.pop(""),
        parts_key: numbers,
        "throughput": {
            "examples_per_second": usage.examples_per_second,
            "answers": usage.answers,
            "seconds": usage.seconds,
            "start_seconds": usage.start_seconds,
            "answer_seconds": usage.answer_seconds,
        },
        "memory": {"peak_bytes": usage.peak_bytes, "mean_bytes": usage.mean_bytes},
        "cpu_seconds": usage.cpu_seconds,
        "cost_cents": compute_cost_cents(usage.cpu_seconds),
        "warnings": warnings,
        "log": ending.log,
    }
