"""Play a campaign of a task with simulated people, to plan with it."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.campaigns.simulation import Plan, simulate
from tasks.management.named import task_of
from tasks.models import Round, Task
from validation.consensus.claims import find_label_field
from validation.consensus.consensus import Policy
from validation.decisions.consensus_rows import policy_of

DEFAULT_PAY_CENTS = {"example": 40, "validation": 15, "bonus": 100}
"""What a judgement and so on costs where the task's latest round pays nothing."""


class Command(BaseCommand):
    help = (
        "Play a campaign of a task in memory, with simulated people under the task's own rules: "
        "how many careless judges are found, how exact vMER is, what it costs. Nothing is stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("--people", type=int, default=200, help="how many judge")
        parser.add_argument("--careless", type=float, default=0.15, help="share of them, 0 to 1")
        parser.add_argument("--ring", type=int, default=6, help="how many of them answer alike")
        parser.add_argument("--seed", type=int, default=0, help="the same seed, the same campaign")
        for name, pay in DEFAULT_PAY_CENTS.items():
            parser.add_argument(
                f"--pay-{name}", type=int, metavar="CENTS",
                help=f"default: what the latest round pays, or {pay} where it pays nothing",
            )  # fmt: skip
        parser.add_argument("--currency", default="EUR", help="that the pay is in; default: EUR")
        parser.add_argument("--json", action="store_true", help="as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Simulate the campaign and print its results."""
        plan = build_plan(task_of(options["code"]), options)
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
    people, ring = options["people"], options["ring"]
    if not 0 <= options["careless"] <= 1:
        raise CommandError("--careless is a share: write a number from 0 to 1, such as 0.15.")
    careless = round(people * options["careless"])
    if ring < 0 or not 2 <= people <= 5000 or careless + ring >= people:
        raise CommandError(
            "Write 2 to 5000 for --people, of whom some are neither careless nor of the ring."
        )
    if config.kind != "examples":
        raise CommandError(f"Nobody judges examples in {task.code}, which is an arena.")
    latest_round = task.rounds.order_by("number").last()
    policy = policy_of(latest_round) if latest_round else Policy.from_votes(config.validation.votes)
    # Such a policy has no number of votes after which an item is closed.
    if policy.rule == "dawid-skene" or policy.most is None:
        raise CommandError("The round's policy asks for no number of votes. Choose one that does.")
    field = find_label_field(config)
    labels = config.component(field).values if field else ()
    pay = {f"pay_{name}": _get_pay_cents(name, options, latest_round) for name in DEFAULT_PAY_CENTS}
    return Plan(people, careless, ring, labels, policy, **pay)


def _get_pay_cents(name: str, options: dict[str, Any], latest_round: Round | None) -> int:
    """Return a pay rate from the option, the latest round or DEFAULT_PAY_CENTS."""
    from_option: int | None = options[f"pay_{name}"]
    if from_option is not None:
        return from_option
    return getattr(latest_round, f"pay_{name}", 0) or DEFAULT_PAY_CENTS[name]
