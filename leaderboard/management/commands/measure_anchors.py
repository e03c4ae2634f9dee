"""Measure the speed and memory of the reference models on this machine."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluation.cli import (
    CannotEvaluate,
    evaluate_from_shell,
    find_examples,
    find_model,
    find_overall_outcome,
)
from evaluation.contract import GIB, Outcome
from evaluation.test_sets.services import CONTROL_NAME
from leaderboard.board.services import store_anchor_costs
from leaderboard.ranking.pools import read_shipped_pool
from tasks.models import Task


class Command(BaseCommand):
    help = (
        "Run the reference models of official tasks on their control sets, which takes a few "
        "minutes each. Stores their speed and memory as this site's scale. This changes all "
        "scores."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "codes", nargs="*", help="task codes; default: all tasks with a reference pool"
        )
        parser.add_argument("--runner", choices=["docker", "process"],
                            help="default: docker if it is running")  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        tasks = Task.objects.order_by("code")
        if options["codes"]:
            tasks = tasks.filter(code__in=options["codes"])
        measurable_tasks = []
        for task in tasks:
            pool = read_shipped_pool(task.code)
            if pool and pool.has_costs:
                measurable_tasks.append(task)
        for code in set(options["codes"]) - {task.code for task in measurable_tasks}:
            raise CommandError(
                f"{code!r} has no reference pool with speed and memory. Leave it out."
            )
        for task in measurable_tasks:
            try:
                runner, rows = self._measure_costs(task, options["runner"])
            except CannotEvaluate as error:
                raise CommandError(f"{task.code}: {error}") from None
            board = store_anchor_costs(task=task, runner=runner, rows=rows)
            version = board.anchor_costs["version"]
            self.stdout.write(f"{task.code}: version {version}, by runner {runner}.")

    def _measure_costs(self, task: Task, chosen_runner: str | None) -> tuple[str, dict[str, Any]]:
        """Run a task's reference models; return the runner, and the costs of each model.

        Raises CannotEvaluate if one of them fails.
        """
        pool = read_shipped_pool(task.code)
        rows, runner = {}, ""
        for name in pool.rows if pool else ():
            with TemporaryDirectory() as scratch:
                report = self._run_reference_model(
                    task, name, Path(scratch, "model"), chosen_runner
                )
            outcome, sentence = find_overall_outcome(report)
            if outcome != Outcome.OK:
                raise CannotEvaluate(f"{name}: {outcome}: {sentence}")
            peak, runner = report["memory"]["peak_bytes"], report["runner"]
            rows[name] = {
                "throughput": report["throughput"]["examples_per_second"],
                "memory": None if peak is None else peak / GIB,
            }
            self.stderr.write(f"{task.code}: {name} {rows[name]}", self.style.NOTICE)
        return runner, rows

    def _run_reference_model(
        self, task: Task, name: str, folder: Path, chosen_runner: str | None
    ) -> dict[str, Any]:
        """Build a reference model and run it on the control set."""
        from evaluation.training.reference import build_reference_model

        build_reference_model(task.code, name, folder, _ignore_progress, is_trained=False)
        model, runner = find_model(task, str(folder), chosen_runner)
        no_suites: Sequence[str] = ()
        examples = find_examples(task, CONTROL_NAME, None)
        return evaluate_from_shell(task, examples, model, runner, no_suites, _ignore_progress)


def _ignore_progress(*_: Any) -> None:
    """Ignore a progress report."""
