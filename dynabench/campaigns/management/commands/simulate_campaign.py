"""Simulate a campaign of a task with simulated people, to plan its size and cost."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.campaigns.simulation import Plan, simulate
from tasks.management.lookups import get_task
from tasks.models import Round, Task
from validation.consensus.claims import find_label_field
from validation.consensus.consensus import Policy
from validation.decisions.consensus_rows import get_policy

DEFAULT_PAY_CENTS = {"example": 40, "validation": 15, "bonus": 100}
"""Pay rates for a task whose latest round has none, in hundredths of the currency."""


class Command(BaseCommand):
    help = (
        "Simulate a campaign of a task under the task's own rules, in memory. Shows how many "
        "careless judges are found, how precise vMER is, and what it costs. Stores nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("--people", type=int, default=200, help="number of judges")
        parser.add_argument(
            "--careless", type=float, default=0.15, help="share of careless judges, from 0 to 1"
        )
        parser.add_argument(
            "--ring", type=int, default=6, help="number of judges who copy each other"
        )
        parser.add_argument("--seed", type=int, default=0, help="random seed")
        for name, pay in DEFAULT_PAY_CENTS.items():
            parser.add_argument(
                f"--pay-{name}", type=int, metavar="CENTS",
                help=f"default: what the latest round pays, or {pay} where it pays nothing",
            )  # fmt: skip
        parser.add_argument("--currency", default="EUR", help="currency of the pay; default: EUR")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Simulate the campaign and print its results."""
        plan = build_plan(get_task(options["code"]), options)
        results = {**asdict(simulate(plan, options["seed"])), "currency": options["currency"]}
        if options["json"]:
            self.stdout.write(json.dumps(results))
            return
        for name, value in results.items():
            text = f"{value:.3f}" if isinstance(value, float) else value
            self.stdout.write(f"{name.replace('_', ' ')}: {text}")


def build_plan(task: Task, options: dict[str, Any]) -> Plan:
    """Return the simulation plan from the options and the task's rules. Raises CommandError."""
    config = task.config
    people, ring_size = options["people"], options["ring"]
    if not 0 <= options["careless"] <= 1:
        raise CommandError("--careless is a share. Enter a number from 0 to 1, for example 0.15.")
    careless_count = round(people * options["careless"])
    if ring_size < 0 or not 2 <= people <= 5000 or careless_count + ring_size >= people:
        raise CommandError(
            "Enter 2 to 5000 for --people, with more people than careless judges and --ring "
            "together."
        )
    if config.kind != "examples":
        raise CommandError(f"Nobody judges examples in {task.code}, which is an arena.")
    latest_round = task.rounds.order_by("number").last()
    policy = (
        get_policy(latest_round) if latest_round else Policy.from_votes(config.validation.votes)
    )
    # Such a policy has no number of votes after which an item is closed.
    if policy.rule == "dawid-skene" or policy.max_votes is None:
        raise CommandError(
            "The round's policy sets no number of votes. Choose a round or policy that does."
        )
    field = find_label_field(config)
    labels = config.get_component(field).values if field else ()
    pay = {f"pay_{name}": _get_pay_cents(name, options, latest_round) for name in DEFAULT_PAY_CENTS}
    return Plan(people, careless_count, ring_size, labels, policy, **pay)


def _get_pay_cents(name: str, options: dict[str, Any], latest_round: Round | None) -> int:
    """Return a pay rate from the option, the latest round or DEFAULT_PAY_CENTS."""
    option_pay: int | None = options[f"pay_{name}"]
    if option_pay is not None:
        return option_pay
    return getattr(latest_round, f"pay_{name}", 0) or DEFAULT_PAY_CENTS[name]
