"""Evaluate a model from the shell; see docs/evaluation.md."""

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
from evaluation.cli import CannotEvaluate, find_overall_outcome
from evaluation.contract import MIB, Outcome, Runnable
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.models import EvaluationRun
from tasks.management.lookups import get_task
from tasks.models import Task

PLAIN_SUITE, *PERTURBED_SUITES = EvaluationRun.Suite.values
PROGRESS_SECONDS = 2.0
WRONG_CALL_STATUS = 2  # exit status, as for a wrong option


class Command(BaseCommand):
    help = (
        "Evaluate one model on one set of a task now. Exit status: 0 for success, 1 if the model "
        "failed, 2 if it could not be called. See docs/evaluation.md."
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
                            help="with --chat: the variable that contains its key")  # fmt: skip
        parser.add_argument("--instructions", help="with --chat: the system prompt; default: "
                            "the task's name and labels")  # fmt: skip
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
        report = by_hand.evaluate_from_shell(
            task, examples, model, runner, suites, self._make_progress_writer(), paraphrase
        )
        report = {"model": options["model"], **report}
        lines = [json.dumps(report, indent=2)] if options["json"] else iterate_report_lines(report)
        self.stdout.write("\n".join(lines))
        outcome, sentence = find_overall_outcome(report)
        if outcome != Outcome.OK:
            raise CommandError(f"{outcome}: {sentence}")

    def _find_task(self, code: str) -> Task:
        try:
            return get_task(code)
        except CommandError as error:
            raise CannotEvaluate(str(error)) from None
        # People also try this command first, before anything is set up.
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
        """Return the names of the perturbed suites to run, by default those of the configuration.

        The plain suite, with which they are compared, is always run. Raises CannotEvaluate.
        """
        names = list(task.config.metrics.deltas) if text is None else text.split(",")
        for name in names:
            if name not in (PLAIN_SUITE, *PERTURBED_SUITES):
                known_names = ",".join((PLAIN_SUITE, *PERTURBED_SUITES))
                raise CannotEvaluate(
                    f"--suites: {name!r} doesn't exist. Choose from {known_names}."
                )
        return [name for name in PERTURBED_SUITES if name in names]

    def _make_progress_writer(self) -> Any:
        """Return a function that writes the progress to standard error every few seconds."""
        next_report_at = 0.0

        def report_progress(progress: float, message: str) -> None:
            nonlocal next_report_at
            if time.monotonic() >= next_report_at:
                next_report_at = time.monotonic() + PROGRESS_SECONDS
                self.stderr.write(f"{progress:4.0%} {message}", self.style.NOTICE)

        return report_progress


def iterate_report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report as readable lines. Only the totals have intervals."""
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
        yield f"end of its log:\n{suite['log'].rstrip()}"
    yield from _describe_usage(suite)
    for metric, number in suite["metrics"].items():
        interval_text = ""
        if number["low"] is not None:
            interval_text = f" ({number['low']:.4f} to {number['high']:.4f})"
        yield f"  {metric:<30}{_format_value(number['value'])}{interval_text}  n {number['n']}"


def _format_table(numbers_by_group: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table with a row for each slice or kind and a column for each metric."""
    if not numbers_by_group:
        return
    names = list(dict.fromkeys(chain.from_iterable(numbers_by_group.values())))
    yield "  " + " " * 30 + " ".join(f"{name:>16}" for name in names) + f"{'n':>9}"
    for name, numbers in numbers_by_group.items():
        cells = [_format_value(numbers.get(metric, {}).get("value")) for metric in names]
        n = max(number["n"] for number in numbers.values())
        yield f"  {name:<30}" + " ".join(f"{cell:>16}" for cell in cells) + f"{n:>9}"


def _describe_usage(suite: Mapping[str, Any]) -> Iterator[str]:
    throughput, peak_bytes = suite["throughput"], suite["memory"]["peak_bytes"]
    for name, value in (
        ("examples per second", throughput["examples_per_second"]),
        ("seconds", throughput["seconds"]),
        ("seconds to the first answer", throughput["start_seconds"]),
        ("most memory, MiB", peak_bytes and peak_bytes / MIB),
        ("processor seconds", suite["cpu_seconds"]),
        ("cost estimate, cents", suite["cost_cents"]),
    ):
        if value is not None:
            yield f"  {name:<30}{value:.4g}"


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
