"""Print every number of a task's rounds."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasks.management.lookups import get_round, get_task
from validation.consensus.consensus import Policy
from validation.statistics.counts import GROUPINGS
from validation.statistics.report import build_grouped_report, build_task_report


class Command(BaseCommand):
    help = "Print every number of a task's rounds; docs/statistics.md says what each one is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("--round", type=int, help="its number; default: all rounds")
        parser.add_argument(
            "--policy", help="decide all votes by it instead, such as at-least:3; nothing is stored"
        )
        parser.add_argument(
            "--by", choices=GROUPINGS, help="the same numbers for each part of a round"
        )
        parser.add_argument("--json", action="store_true", help="as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        task = get_task(options["code"])
        if options["round"] is None:
            rounds = list(task.rounds.select_related("task").order_by("number"))
        else:
            rounds = [get_round(task, options["round"])]
        try:
            policy = Policy.parse(options["policy"]) if options["policy"] else None
        except ValueError as error:
            raise CommandError(f"--policy: {error}") from None
        grouping = options["by"]
        # A policy is replayed in memory, without a breakdown.
        if grouping and policy:
            raise CommandError("--by tells what is stored; it does not go with --policy.")
        try:
            report = (
                build_grouped_report(rounds, code=task.code, grouping=grouping)
                if grouping
                else build_task_report(rounds, code=task.code, policy=policy)
            )
        except ValueError as error:
            raise CommandError(f"--by: {error}") from None
        if options["json"]:
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=1))
            return
        for round in (*report["rounds"], report["all"]):
            title = "All rounds" if round["round"] is None else f"Round {round['round']}"
            for numbers in round.get("parts", [round]):
                self.stdout.write("\n".join(_build_lines(numbers, title, grouping)))


def _build_lines(numbers: dict[str, Any], title: str, grouping: str | None) -> list[str]:
    """Return one line per number, with its interval or the reason why it is missing."""
    lines = ["", f"{title}, {grouping} {numbers[grouping] or 'unknown'}" if grouping else title]
    for name, value in numbers.items():
        if name in ("round", "notes", grouping):
            continue
        if value is None:
            value = f"– ({numbers['notes'][name]})"
        elif isinstance(value, dict) and "method" in value:
            value = "{value:.4f} ({low:.4f} to {high:.4f}, n = {n}, {method})".format(**value)
        elif isinstance(value, dict):
            value = ", ".join(f"{label} {count}" for label, count in value.items())
        elif isinstance(value, float):
            value = f"{value:.4f}"
        lines.append(f"{name.replace('_', ' '):20} {value}")
    return lines
