"""Evaluate a model from the shell; docs/evaluation.md."""

import json
import signal
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from evaluation import cli as by_hand
from evaluation.cli import CannotEvaluate, outcome_of
from evaluation.contract import MIB, Outcome, Runnable
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.models import EvaluationRun
from tasks.management.named import task_of
from tasks.models import Task

PLAIN, *PERTURBED = EvaluationRun.Suite.values
TELL_SECONDS = 2.0
WRONG_CALL = 2  # exit status, as of a wrong option


class Command(BaseCommand):
    help = (
        "Evaluate one model on one set of a task, here and now. Ends with 0 when it succeeded, "
        "with 1 when the model failed and with 2 when it could not be asked; docs/evaluation.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--task", required=True, help="the task's code, such as nli")
        parser.add_argument("--dataset", required=True,
                            help="a set of the task, or a JSONL, CSV or Parquet file")  # fmt: skip
        parser.add_argument("model", help="a folder of weights, a Docker image, or with --chat "
                            "the name that the server gives the model")  # fmt: skip
        parser.add_argument("--chat", metavar="URL", help="the model is behind this base URL of an "
                            "OpenAI-compatible server")  # fmt: skip
        parser.add_argument("--secret-env", default="", metavar="NAME",
                            help="of --chat: the variable that holds its key")  # fmt: skip
        parser.add_argument("--instructions", help="of --chat: what the model is told first; "
                            "default: the task's name and labels")  # fmt: skip
        parser.add_argument("--runner", choices=["docker", "process"],
                            help="default: docker where an engine answers")  # fmt: skip
        parser.add_argument("--suites", help="plain,robustness,fairness; default: plain and those "
                            "that the task names")  # fmt: skip
        parser.add_argument("--paraphrase", metavar="FOLDER", help="also evaluate on examples in "
                            "other words, by the seq2seq model in the folder")  # fmt: skip
        parser.add_argument("--limit", type=int, help="the first N examples only")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            task = self._task(options["task"])
            suites = self._suites(task, options["suites"])
            examples = by_hand.find_examples(task, options["dataset"], options["limit"])
            paraphrase = by_hand.find_paraphrase(options["paraphrase"])
            model, runner = self._model(task, options)
        except CannotEvaluate as error:
            raise CommandError(str(error), returncode=WRONG_CALL) from None
        report = by_hand.evaluate_by_hand(
            task, examples, model, runner, suites, self._teller(), paraphrase
        )
        report = {"model": options["model"], **report}
        lines = [json.dumps(report, indent=2)] if options["json"] else table(report)
        self.stdout.write("\n".join(lines))
        outcome, sentence = outcome_of(report)
        if outcome != Outcome.OK:
            raise CommandError(f"{outcome}: {sentence}")

    def _task(self, code: str) -> Task:
        try:
            return task_of(code)
        except CommandError as error:
            raise CannotEvaluate(str(error)) from None
        except DatabaseError as error:
            raise CannotEvaluate(
                f"The database has no tasks yet ({error}). Run: manage.py quickstart --setup-only"
            ) from None

    def _model(self, task: Task, options: Mapping[str, Any]) -> tuple[Runnable, Runner]:
        if url := options["chat"]:
            key = by_hand.key_in(options["secret_env"])
            return by_hand.find_chat(task, url, options["model"], options["instructions"], key)
        return by_hand.find_model(task, options["model"], options["runner"])

    def _suites(self, task: Task, text: str | None) -> list[str]:
        """The perturbed suites; the plain one, with which they are compared, is always run."""
        names = list(task.config.metrics.deltas) if text is None else text.split(",")
        for name in names:
            if name not in (PLAIN, *PERTURBED):
                known = ",".join((PLAIN, *PERTURBED))
                raise CannotEvaluate(f"--suites: there is no {name!r}. Choose from {known}.")
        return [name for name in PERTURBED if name in names]

    def _teller(self) -> Any:
        """Says on standard error how far it is, each few seconds."""
        at = 0.0

        def tell(progress: float, message: str) -> None:
            nonlocal at
            if time.monotonic() >= at:
                at = time.monotonic() + TELL_SECONDS
                self.stderr.write(f"{progress:4.0%} {message}", self.style.NOTICE)

        return tell


def table(report: Mapping[str, Any]) -> Iterator[str]:
    """The report for people: what is counted over everything with intervals, parts without."""
    yield f"{report['model']} on {report['dataset']} ({report['examples']} examples)"
    yield from _part(report, report["slices"])
    for suite, part in report["perturbations"].items():
        yield f"\n{suite}"
        yield from _part(part, part["kinds"])


def _part(part: Mapping[str, Any], parts: Mapping[str, Any]) -> Iterator[str]:
    runner = f", runner {part['runner']}" if "runner" in part else ""
    yield f"outcome: {part['outcome']}{runner}"
    if part["sentence"]:
        yield part["sentence"]
    if part["limit"]:
        yield f"limit: {part['limit']}; measured: {part['measured']}"
    yield from (f"warning: {warning}" for warning in part["warnings"])
    if part["log"] and part["outcome"] != Outcome.OK:
        yield f"its log ends so:\n{part['log'].rstrip()}"
    yield from _usage(part)
    for metric, number in part["metrics"].items():
        between = "" if number["low"] is None else f" ({number['low']:.4f} to {number['high']:.4f})"
        yield f"  {metric:<30}{_shown(number['value'])}{between}  n {number['n']}"
    if parts:
        names = list(dict.fromkeys(name for numbers in parts.values() for name in numbers))
        yield "  " + " " * 30 + " ".join(f"{name:>16}" for name in names) + f"{'n':>9}"
    for name, numbers in parts.items():
        cells = (_shown(numbers.get(metric, {}).get("value")) for metric in names)
        n = max(number["n"] for number in numbers.values())
        yield f"  {name:<30}" + " ".join(f"{cell:>16}" for cell in cells) + f"{n:>9}"


def _usage(part: Mapping[str, Any]) -> Iterator[str]:
    used, peak = part["throughput"], part["memory"]["peak_bytes"]
    for name, value in (
        ("examples per second", used["examples_per_second"]),
        ("seconds", used["seconds"]),
        ("seconds to the first answer", used["start_seconds"]),
        ("most memory, MiB", peak and peak / MIB),
        ("processor seconds", part["cpu_seconds"]),
        ("cost estimate, cents", part["cost_cents"]),
    ):
        if value is not None:
            yield f"  {name:<30}{value:.4g}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
