"""Simulate whole studies of a plan in memory, to learn its false alarms, power and coverage."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.studies.rules.plan import StudyPlan, find_effect_problem, read_plan
from dynabench.studies.rules.simulation import simulate_studies
from tasks.config.parsing import ConfigError

MAX_STUDIES = 100_000


class Command(BaseCommand):
    help = (
        "Simulate whole studies of a plan in memory, with its draws and its analysis. Shows how "
        "often they find an effect that is not there, and one that is. Stores nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("plan", metavar="PLAN.yaml", help="the plan's file")
        parser.add_argument("--studies", type=int, default=2000, help="number of studies")
        parser.add_argument(
            "--effect",
            type=float,
            help="in standard deviations of each outcome; default: the plan's",
        )
        parser.add_argument("--seed", type=int, default=0, help="random seed")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Simulate the studies and print what their analysis found."""
        plan = load_plan(options["plan"])
        effect = plan.size.effect if options["effect"] is None else options["effect"]
        if not 1 <= options["studies"] <= MAX_STUDIES:
            raise CommandError(f"Enter 1 to {MAX_STUDIES} for --studies.")
        if options["seed"] < 0:
            raise CommandError("Enter 0 or more for --seed.")
        if problem := find_effect_problem(plan, effect):
            raise CommandError(f"--effect {effect:g}: {problem}")
        results = simulate_studies(plan, options["studies"], effect, options["seed"])._asdict()
        if options["json"]:
            self.stdout.write(json.dumps(results))
            return
        for name, value in results.items():
            text = f"{value:.3f}" if isinstance(value, float) else value
            self.stdout.write(f"{name.replace('_', ' ')}: {text}")


def load_plan(path: str) -> StudyPlan:
    """Return the plan in a file. Raises CommandError with each problem and its line."""
    try:
        return read_plan(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: can't be read. {error}") from None
    except ConfigError as error:
        raise CommandError(f"{path}: {error}") from None
