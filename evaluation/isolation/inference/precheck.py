"""Check a model before it is accepted: inspect its files and let it answer five examples.

Needs no database and no Django. A worker checks every submission with it
(`evaluation.jobs`), and submitters can run the same check themselves:

    python -m evaluation.isolation.inference.precheck MODEL --config task.yaml --inputs five.jsonl
    python -m evaluation.isolation.inference.precheck --config task.yaml \\
        --predictions answers.jsonl --uids inputs.jsonl

Prints one JSON object. Exits with 0 if the model would be accepted, otherwise with 1.
"""

import argparse
import gzip
import hashlib
import json
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.contract import (
    Answer,
    BeatCallback,
    Ending,
    InvalidOutput,
    NotNow,
    Outcome,
    Runnable,
    ServerAway,
)
from evaluation.isolation.inference.elsewhere import iterate_answer_lines, read_lines
from evaluation.isolation.inference.exchange import (
    CollectedAnswers,
    SentExamples,
    UnknownId,
    build_collected_answers,
)
from evaluation.isolation.sandbox.advice import LOG_ADVICE, find_advice_in_log
from evaluation.isolation.sandbox.choose import choose_runner, has_engine
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.logs import show_control_characters
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.uploads.archives import ArchiveRefused
from evaluation.isolation.uploads.model_folders import check_model_folder
from evaluation.task_shape import make_runnable
from serving.errors import MisconfiguredError
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.config.schema import TaskConfig

EXAMPLE_COUNT = 5
MAX_PROBLEMS = 20
MAX_QUOTED_CHARS = 200  # quoted characters of an invalid line
NO_ENGINE_ADVICE = (
    "No container engine answers. Start Docker or set DOCKER_HOST. Folders of weights also run "
    "with --runner process."
)


ENDED_EARLY_ADVICE = (
    "It ended with exit code 0 before that: read every line of the examples, write a line for each "
    "to standard output, and flush it."
)


class SubmissionRefused(Exception):
    """Raised when a submission cannot be accepted. The message says why and how to correct it."""

    def __init__(self, message: str, outcome: Outcome = Outcome.REJECTED, log: str = "") -> None:
        super().__init__(message)
        self.outcome, self.log = outcome, log


class ForeignIds(SubmissionRefused):
    """Raised when no line of a file answers an example of the set. ids: the ids in these lines."""

    ids: tuple[str, ...] = ()


class Problems:
    """The problems found in a model's answers.

    A problem that several lines share is described only once.
    """

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}  # each problem with the first line that has it
        self._further_lines: dict[str, list[int]] = {}  # by problem, the numbers of further lines
        self._unknown_ids: list[str] = []
        self._line_count = 0
        self._problem_count = 0

    def add(self, problem: str, number: int | None = None, line: str = "") -> None:
        """Record a problem, with the number of its line if it has one.

        Raises SubmissionRefused once there are MAX_PROBLEMS.
        """
        if number is None:
            self._problems[problem] = problem + line
        elif problem in self._problems:
            self._further_lines.setdefault(problem, []).append(number)
        else:
            self._problems[problem] = f"Line {number}: {problem}{line}"
        self._problem_count += 1
        if self._problem_count == MAX_PROBLEMS:
            self.raise_if_any()

    def take(self, answers: CollectedAnswers, line: bytes) -> None:
        """Store the answer in a line, or record the line and its problem.

        Raises SubmissionRefused once there are MAX_PROBLEMS.
        """
        self._line_count += bool(line.strip())
        try:
            answers.take(line)
        except InvalidOutput as error:
            if isinstance(error, UnknownId):
                self._unknown_ids.append(error.args[1])
            quoted_line = (
                f"\n  {show_control_characters(line[:MAX_QUOTED_CHARS].decode(errors='replace'))}"
            )
            message, line_prefix = str(error), f"Line {answers.line_count}: "
            # Without line numbers, the same mistake in many lines is one problem.
            if message.startswith(line_prefix):
                self.add(message.removeprefix(line_prefix), answers.line_count, quoted_line)
            else:
                self.add(message, line=quoted_line)

    def raise_if_any(self, log: str = "") -> None:
        """Raise SubmissionRefused if there are problems.

        Raises ForeignIds instead if every line has an unknown id. log: the model's log, which the
        exception carries.
        """
        if self._unknown_ids and len(self._unknown_ids) == self._line_count:
            ids = ", ".join(
                show_control_characters(foreign_id[:MAX_QUOTED_CHARS])
                for foreign_id in self._unknown_ids[:EXAMPLE_COUNT]
            )
            message = f"No example has one of these ids: {ids}. Copy the ids as they are."
            refusal = ForeignIds(message, Outcome.INVALID_OUTPUT, log)
            refusal.ids = tuple(self._unknown_ids)
            raise refusal
        if self._problems:
            raise SubmissionRefused(
                "\n".join(self._describe_problems()), Outcome.INVALID_OUTPUT, log
            )

    def _describe_problems(self) -> Iterator[str]:
        for problem, description in self._problems.items():
            yield description
            if further_lines := self._further_lines.get(problem):
                noun = "lines"
                if len(further_lines) == 1:
                    noun = "line"
                yield f"The same is wrong with {noun} {', '.join(map(str, further_lines))}."
        if self._problem_count == MAX_PROBLEMS:
            yield f"The first {MAX_PROBLEMS} problems are named; nothing was read after them."


def answer_examples(
    config: TaskConfig,
    model: Runnable,
    runner: Runner,
    inputs: Sequence[Mapping[str, Any]],
    limits: Limits,
    folder: Path,
    beat: BeatCallback,
) -> tuple[Ending, list[Answer | None]]:
    """Run a model on a few examples and return its ending and its answers.

    Parameters
    ----------
    config : TaskConfig
        Names the fields that the model reads and answers.
    model, runner : Runnable, Runner
        The model, and the runner that runs it.
    inputs : sequence of mappings
        The examples. The answers are returned in the same order, None where one is missing.
    limits : Limits
        The resources that the model may use.
    folder : Path
        Receives temporary files; the caller deletes it.
    beat : BeatCallback
        Called repeatedly while the model works.

    Raises
    ------
    SubmissionRefused
        The model failed or an answer is wrong.
    NotNow, ServerAway
        The check cannot be made at present.
    """
    sent_examples = SentExamples(folder / "five.jsonl")
    sent_examples.write(inputs, config.model_fields, lambda *_: beat())
    answers, problems = build_collected_answers(config, sent_examples.iterate_ids()), Problems()
    ending = runner.run(
        model, sent_examples.path, limits, take=lambda line: problems.take(answers, line), beat=beat
    )
    if ending.outcome == Outcome.INFRASTRUCTURE:
        raise NotNow(ending.sentence)
    if ending.outcome == Outcome.AWAY:
        raise ServerAway(ending.sentence)
    if ending.outcome != Outcome.OK:
        sentence = ending.sentence
        if ending.limit:
            sentence += f" Limit: {ending.limit}; measured: {ending.measured}."
        if ending.outcome == Outcome.MODEL_ERROR and (advice := find_advice_in_log(ending.log)):
            sentence = f"{sentence.removesuffix(LOG_ADVICE).rstrip()} {advice}"
        raise SubmissionRefused(sentence, ending.outcome, ending.log)
    warning = ""
    if missing_count := answers.count_missing() - answers.unanswered_counts.total():
        problems.add(
            f"{missing_count} of {len(inputs)} examples have no answer. "
            f"{find_advice_in_log(ending.log) or ENDED_EARLY_ADVICE}"
        )
    else:
        try:
            warning = (
                answers.check_missing()
            )  # odd answers count as wrong, but are no reason to refuse a model
        except InvalidOutput as error:
            problems.add(str(error))
    problems.raise_if_any(ending.log)
    if warning:
        ending = replace(ending, warnings=(*ending.warnings, warning))
    return ending, list(answers.iterate_in_order())


def check_predictions(config: TaskConfig, uids: Sequence[str], lines: Iterable[bytes]) -> str:
    """Check all lines of a predictions file.

    The refusal names invalid lines and unanswered examples.

    Returns a warning if a few answers are missing, otherwise "". Raises SubmissionRefused.
    """
    answers, problems, warning = build_collected_answers(config, uids), Problems(), ""
    try:
        for line in lines:
            problems.take(answers, line.rstrip(b"\r\n"))
    except (InvalidOutput, ArchiveRefused) as error:  # from a file that another evaluator wrote
        problems.add(str(error))
        problems.raise_if_any()
    try:
        warning = answers.check_missing()
    except InvalidOutput as error:
        answers_by_uid = zip(uids, answers.iterate_in_order(), strict=True)
        unanswered_uids = (uid for uid, answer in answers_by_uid if not answer)
        first_uids = ", ".join(islice(unanswered_uids, EXAMPLE_COUNT))
        problems.add(f"{error} The first without an answer: {first_uids}.")
    problems.raise_if_any()
    return warning


def store_predictions(config: TaskConfig, uids: Sequence[str], path: Path, target: Path) -> str:
    """Check a file of answers, compress it to `target`, and return its SHA-256.

    Raises SubmissionRefused.
    """
    digest = hashlib.sha256()
    with gzip.open(target, "wb") as compressed_file:

        def iterate_lines() -> Iterator[bytes]:
            for line in iterate_answer_lines(config, path):
                digest.update(line)
                compressed_file.write(line)
                yield line

        check_predictions(config, uids, iterate_lines())
    return digest.hexdigest()


def find_runnable_model(
    config: TaskConfig, model: str, runner: str | None, key: str, adapter: str = "jsonl"
) -> tuple[Runnable, Runner]:
    """Return the model in a folder, or the image with this name, and its runner.

    runner: docker or process; None chooses docker if a container engine answers. key: identifies
    this run on the engine. adapter: the protocol of an image, one of `Submission.Adapter`. Raises
    SubmissionRefused and NotNow.
    """
    has_docker = runner != "process" and has_engine()
    if runner == "docker" and not has_docker:
        raise NotNow(NO_ENGINE_ADVICE)
    if Path(model).is_dir():
        runnable_model = make_runnable(config, folder=find_model_folder(config, model))
    elif runner == "process":
        raise SubmissionRefused(f"The folder {model} doesn't exist. Images run only in Docker.")
    elif has_docker:
        runnable_model = _find_image(config, model, adapter)
    else:
        raise NotNow(
            f"The folder {model} doesn't exist. If it is an image, start Docker: no container "
            "engine answers."
        )
    return runnable_model, choose_runner(runnable_model, key, runner)


def find_model_folder(config: TaskConfig, folder: str) -> Path:
    """Return the folder that contains the model's files, without running any of them.

    Raises SubmissionRefused.
    """
    try:
        return check_model_folder(Path(folder).resolve(), config)
    except MisconfiguredError as error:
        raise SubmissionRefused(str(error)) from None


def _find_image(config: TaskConfig, name: str, adapter: str) -> Runnable:
    from evaluation.isolation.sandbox import images

    try:
        facts = images.inspect_image(name)
    except images.ImageRefused as error:
        raise SubmissionRefused(f"The folder {name} doesn't exist. As an image: {error}") from None
    if problems := images.find_image_problems(facts):
        raise SubmissionRefused("\n".join(problems))
    return make_runnable(config, image=facts.id, adapter=adapter)


# By hand.


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a model or a file of answers, and print the report.

    Returns 0 if the model or file would be accepted, otherwise 1. arguments: the command-line
    arguments; None for those of this process.
    """
    options = _parse_arguments(arguments)
    try:
        if options.look:
            find_model_folder(options.config, options.model)
            report = _make_report(Outcome.OK)
        elif options.predictions:
            report = _check_predictions_file(options)
        else:
            report = _check_model(options)
    except SubmissionRefused as refusal:
        report = _make_report(refusal.outcome, str(refusal), refusal.log)
    except NotNow as reason:
        report = _make_report(Outcome.INFRASTRUCTURE, str(reason))
    print(json.dumps(report, ensure_ascii=False))
    return int(not report["ok"])


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="evaluation.isolation.inference.precheck",
        description="Check a model as the server does when it arrives.",
    )
    parser.add_argument("model", nargs="?", help="a folder of weights, or an image on this machine")
    parser.add_argument("--config", required=True, type=Path, help="the task's configuration")
    parser.add_argument("--inputs", type=Path, help='lines of {"inputs": {…}}; five are asked')
    parser.add_argument("--look", action="store_true", help="look through a folder, run nothing")
    parser.add_argument("--runner", choices=("docker", "process"), help="docker where it answers")
    parser.add_argument("--adapter", default="jsonl", choices=("jsonl", "dynalab", "dynabench2"))
    parser.add_argument("--memory-gib", type=int, default=8)
    parser.add_argument("--cpus", type=float, default=2)
    parser.add_argument("--predictions", type=Path, help="a file of answers, instead of a model")
    parser.add_argument("--uids", type=Path, help='the set\'s inputs: lines of {"id": …}')
    options = parser.parse_args(arguments)
    if options.look and options.model:
        required_values = []
    elif options.predictions:
        required_values = [options.uids]
    else:
        required_values = [options.model, options.inputs]
    if not all(required_values):
        parser.error("give MODEL with --inputs, or --predictions with --uids")
    try:
        options.config = load_config(options.config.read_text())
        options.inputs = list(islice(_read_values(options.inputs, "inputs"), EXAMPLE_COUNT))
        options.uids = list(_read_values(options.uids, "id"))
        if options.predictions:
            options.predictions.open().close()  # fails now if it cannot be read
    except (ConfigError, OSError, ValueError, KeyError, TypeError, InvalidOutput) as error:
        parser.error(f"{type(error).__name__}: {error}")
    return options


def _read_values(path: Path | None, key: str) -> Iterator[Any]:
    """Yield the value of a key from the JSON object in each line of a file; none without a file."""
    if path is None:
        return
    for line in filter(bytes.strip, read_lines(path)):
        yield json.loads(line)[key]


def _check_model(options: argparse.Namespace) -> dict[str, Any]:
    key = f"check-{uuid.uuid4().hex}"
    model, runner = find_runnable_model(
        options.config, options.model, options.runner, key, options.adapter
    )
    with tempfile.TemporaryDirectory() as folder:
        ending, answers = answer_examples(
            options.config,
            model,
            runner,
            options.inputs,
            Limits.build_for_machine(options.memory_gib, options.cpus).restrict_for_check(),
            Path(folder),
            lambda: None,
        )
    readable_answers = [
        answer and {"answer": answer.value, "prob": answer.prob} for answer in answers
    ]
    report = _make_report(Outcome.OK, ending.sentence, ending.log, ending.warnings)
    usage = dict(vars(ending.usage))
    del usage["measurements"]  # long lists for recomputing a board, which nobody reads here
    return report | usage | {"runner": runner.name, "answers": readable_answers}


def _check_predictions_file(options: argparse.Namespace) -> dict[str, Any]:
    lines = iterate_answer_lines(options.config, options.predictions)
    warning = check_predictions(options.config, options.uids, lines)
    return _make_report(Outcome.OK, warnings=list(filter(None, [warning])))


def _make_report(
    outcome: Outcome, message: str = "", log: str = "", warnings: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "ok": outcome == Outcome.OK,
        "outcome": str(outcome),
        "message": message,
        "log": log,
        "warnings": list(warnings),
    }


if __name__ == "__main__":
    sys.exit(main())
