"""Say how many examples people must judge for a wanted interval, with and without a judge model."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasks.management.lookups import get_round, get_task
from validation.statistics.report import build_task_report
from validation.statistics.vote_planning import plan_round_votes


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
            help="of the judge with people, about its κ; default: as measured, or else 0.6",
        )
        parser.add_argument("--json", action="store_true", help="as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        task = get_task(options["code"])
        width, correlation = options["width"], options["correlation"]
        if not 0 < width < 1:
            raise CommandError("--width: a number between 0 and 1 is needed.")
        if correlation is not None and not -1 <= correlation <= 1:
            raise CommandError("--correlation: a number from -1 to 1 is needed.")
        if options["round"] is None:
            rounds = list(task.rounds.select_related("task").order_by("number"))
        else:
            rounds = [get_round(task, options["round"])]
        numbers = build_task_report(rounds, code=task.code)["all"] if rounds else {"collected": 0}
        planned = plan_round_votes(rounds, numbers, width, correlation)
        if planned is None:
            raise CommandError(f"{task.code} has no examples to plan for.")
        assumptions = {
            "examples": planned.examples,
            "width": width,
            "expected_share": planned.expected_share,
            "correlation": planned.correlation.value,
            "measured_on": planned.correlation.example_count,
            "kappa": planned.correlation.kappa,
        }
        costs = {
            "saved_examples": planned.saved_examples,
            "cost_per_example": planned.cost_per_example,
            "judge_cost": planned.judge_cost,
        }
        result = {"task": task.code, **assumptions, **asdict(planned.plan), **costs}
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        for name, value in result.items():
            self.stdout.write(f"{name.replace('_', ' '):16} {'–' if value is None else value}")
