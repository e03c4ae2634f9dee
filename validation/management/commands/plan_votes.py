"""Say how many examples people must judge for a wanted interval, with and without a judge model."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasks.management.lookups import get_round, get_task
from validation.rates.assisted_rates import plan_votes
from validation.statistics.report import build_task_report

UNKNOWN_SHARE = 0.5
"""The share that needs the most votes, for tasks without a catch rate."""


class Command(BaseCommand):
    help = (
        "Say how many examples people must judge for an interval of the catch rate, if a judge"
        " model answers all of them. docs/statistics.md, “Fewer votes”, has the formula."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("--round", type=int, help="its number; default: all rounds")
        parser.add_argument(
            "--width", type=float, required=True, help="of the 95%% interval, such as 0.05"
        )
        parser.add_argument(
            "--correlation",
            type=float,
            default=0.6,
            help="of the judge with people, about its κ (0.6)",
        )
        parser.add_argument("--json", action="store_true", help="as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        task = get_task(options["code"])
        width, correlation = options["width"], options["correlation"]
        if not 0 < width < 1:
            raise CommandError("--width: a number between 0 and 1 is needed.")
        if not -1 <= correlation <= 1:
            raise CommandError("--correlation: a number from -1 to 1 is needed.")
        if options["round"] is None:
            rounds = list(task.rounds.select_related("task").order_by("number"))
        else:
            rounds = [get_round(task, options["round"])]
        numbers = build_task_report(rounds, code=task.code)["all"]
        example_count, catch_rate = numbers["collected"], numbers["vmer"]
        if not example_count:
            raise CommandError(f"{task.code} has no examples to plan for.")
        # A rate of exactly 0 or 1 would need no votes, which a few first examples can't tell.
        is_known = catch_rate is not None and 0 < catch_rate["value"] < 1
        expected_share = catch_rate["value"] if is_known else UNKNOWN_SHARE
        plan = plan_votes(
            example_count, width, expected_share=expected_share, correlation=correlation
        )
        assumptions = {
            "examples": example_count,
            "width": width,
            "expected_share": expected_share,
            "correlation": correlation,
        }
        result = {"task": task.code, **assumptions, **asdict(plan)}
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        for name, value in result.items():
            self.stdout.write(f"{name.replace('_', ' '):15} {'–' if value is None else value}")
