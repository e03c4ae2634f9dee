"""Evaluate a model from the shell; docs/evaluation.md."""

import json
import signal
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from evaluation import cli as by_hand
from evaluation.cli import CannotEvaluate, overall_outcome
from evaluation.contract import MIB, Outcome, Runnable
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.models import EvaluationRun
from tasks.management.named import task_of
from tasks.models import Task

PLAIN, *PERTURBED = EvaluationRun.Suite.values
TELL_SECONDS = 2.0
WRONG_CALL_STATUS = 2  # exit status, as of a wrong option


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
        # Ended as by Ctrl-C, so that the model's container is removed.
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            task = self._find_task(options["task"])
            suites = self._find_suites(task, options["suites"])
            examples = by_hand.find_examples(task, options["dataset"], options["limit"])
            paraphrase = by_hand.find_paraphrase(options["paraphrase"])
            model, runner = self._find_model(task, options)
        except CannotEvaluate as error:
            raise CommandError(str(error), returncode=WRONG_CALL_STATUS) from None
        report = by_hand.evaluate_by_hand(
            task, examples, model, runner, suites, self._make_teller(), paraphrase
        )
        report = {"model": options["model"], **report}
        lines = [json.dumps(report, indent=2)] if options["json"] else print_scores(report)
        self.stdout.write("\n".join(lines))
        outcome, sentence = overall_outcome(report)
        if outcome != Outcome.OK:
            raise CommandError(f"{outcome}: {sentence}")

    def _find_task(self, code: str) -> Task:
        try:
            return task_of(code)
        except CommandError as error:
            raise CannotEvaluate(str(error)) from None
        # The command is also the first thing that people try, before anything is set up.
        except DatabaseError as error:
            raise CannotEvaluate(
                f"The database has no tasks yet ({error}). Run: manage.py quickstart --setup-only"
            ) from None

    def _find_model(self, task: Task, options: Mapping[str, Any]) -> tuple[Runnable, Runner]:
        if options["chat"]:
            key = by_hand.read_key(options["secret_env"])
            name, instructions = options["model"], options["instructions"]
            return by_hand.find_chat(task, options["chat"], name, instructions, key)
        return by_hand.find_model(task, options["model"], options["runner"])

    def _find_suites(self, task: Task, text: str | None) -> list[str]:
        """Return the names of the perturbed suites to run.

        The plain suite, with which they are compared, is always run.
        """
        names = list(task.config.metrics.deltas) if text is None else text.split(",")
        for name in names:
            if name not in (PLAIN, *PERTURBED):
                known = ",".join((PLAIN, *PERTURBED))
                raise CannotEvaluate(f"--suites: there is no {name!r}. Choose from {known}.")
        return [name for name in PERTURBED if name in names]

    def _make_teller(self) -> Any:
        """Return a function that writes the progress to standard error every few seconds."""
        at = 0.0

        def tell(progress: float, message: str) -> None:
            nonlocal at
            if time.monotonic() >= at:
                at = time.monotonic() + TELL_SECONDS
                self.stderr.write(f"{progress:4.0%} {message}", self.style.NOTICE)

        return tell


def print_scores(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report as lines for people: totals with intervals, slices and kinds without."""
    yield f"{report['model']} on {report['dataset']} ({report['examples']} examples)"
    yield from _describe_suite(report)
    yield from _format_table(report["slices"])
    for suite, suite_report in report["perturbations"].items():
        yield f"\n{suite}"
        yield from _describe_suite(suite_report)
        yield from _format_table(suite_report["kinds"])


def _describe_suite(suite: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about a suite: how it ended, its warnings, and its numbers over all examples."""
    runner = f", runner {suite['runner']}" if "runner" in suite else ""
    yield f"outcome: {suite['outcome']}{runner}"
    if suite["sentence"]:
        yield suite["sentence"]
    if suite["limit"]:
        yield f"limit: {suite['limit']}; measured: {suite['measured']}"
    for warning in suite["warnings"]:
        yield f"warning: {warning}"
    if suite["log"] and suite["outcome"] != Outcome.OK:
        yield f"its log ends so:\n{suite['log'].rstrip()}"
    yield from _describe_usage(suite)
    for metric, number in suite["metrics"].items():
        between = ""
        if number["low"] is not None:
            between = f" ({number['low']:.4f} to {number['high']:.4f})"
        yield f"  {metric:<30}{_format_value(number['value'])}{between}  n {number['n']}"


def _format_table(parts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table with a row for each slice or kind and a column for each metric."""
    if not parts:
        return
    names = list(dict.fromkeys(chain.from_iterable(parts.values())))
    yield "  " + " " * 30 + " ".join(f"{name:>16}" for name in names) + f"{'n':>9}"
    for name, numbers in parts.items():
        cells = [_format_value(numbers.get(metric, {}).get("value")) for metric in names]
        n = max(number["n"] for number in numbers.values())
        yield f"  {name:<30}" + " ".join(f"{cell:>16}" for cell in cells) + f"{n:>9}"


def _describe_usage(suite: Mapping[str, Any]) -> Iterator[str]:
    used, peak = suite["throughput"], suite["memory"]["peak_bytes"]
    for name, value in (
        ("examples per second", used["examples_per_second"]),
        ("seconds", used["seconds"]),
        ("seconds to the first answer", used["start_seconds"]),
        ("most memory, MiB", peak and peak / MIB),
        ("processor seconds", suite["cpu_seconds"]),
        ("cost estimate, cents", suite["cost_cents"]),
    ):
        if value is not None:
            yield f"  {name:<30}{value:.4g}"


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
