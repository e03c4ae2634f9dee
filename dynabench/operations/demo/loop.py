"""The whole demo, step by step."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from core.errors import Refused
from dynabench.operations.demo.after import (
    evaluate_models,
    open_round,
    plan_next_round,
    release_round,
)
from dynabench.operations.demo.community import make_owner, make_people, plan_first_round
from dynabench.operations.demo.entrants import publish_entrants, submit_entrants
from dynabench.operations.demo.past import date_back
from dynabench.operations.demo.people import draw_people
from dynabench.operations.demo.play import Community
from evaluation.training.shipped import install_starter
from leaderboard.board.tables import build_public_table
from leaderboard.jobs import renew_boards
from tasks.models import Task
from validation.statistics.report import build_task_report

ProgressCallback = Callable[[float, str], None]
"""A function that gets the share that is done (0-1) and a description of the next step."""


@dataclass(frozen=True)
class DemoSize:
    """The size of a demo. tries: the number of examples per round."""

    writers: int = 12
    judges: int = 8
    tries: int = 220
    rounds: int = 3


def run_demo(
    task: Task,
    seed: int,
    report_progress: ProgressCallback,
    size: DemoSize = DemoSize(),
    base: Path | None = None,
) -> dict[str, Any]:
    """Simulate the rounds of the demo's task, fill its leaderboard, and return the report.

    base: the folder of the first target; by default the sentiment starter. Raises Refused if the
    task already has rounds.
    """
    started_at = time.monotonic()
    if task.rounds.exists():
        raise Refused("Filling the demo was interrupted. Remove the demo, then start again.")
    base = base or install_starter("sentiment", settings.HOME)
    seed_random(seed)
    rng, owner = random.Random(seed), make_owner(task)
    writers, judges = draw_people(seed, size.writers, size.judges)
    accounts = make_people([*writers, *judges])
    community = Community(owner, writers, judges, accounts, rng)
    round = plan_first_round(task, owner, base, size.tries, rng)
    for number in range(1, size.rounds + 1):
        progress = (number - 1) / (size.rounds + 1)
        report_progress(progress, f"round {number}: people write and judge")
        round = open_round(round, owner)
        community.play(round)
        round.refresh_from_db()
        date_back(round, size.rounds - number)
        report_progress(
            progress + 0.5 / (size.rounds + 1), f"round {number}: its release and the next target"
        )
        release_round(round, owner, seed)
        round = plan_next_round(round, owner, seed, size.tries)
    report_progress(size.rounds / (size.rounds + 1), "evaluations")
    evaluate_models(task)
    # They answer the sets that the first evaluation has made.
    entrants = submit_entrants(task)
    evaluate_models(task)
    publish_entrants(entrants)
    renew_boards()
    open_round(round, owner)
    # The last round stays open, so that people can try it.
    return {**_build_report(task, size), "seconds": int(time.monotonic() - started_at)}


def seed_random(seed: int) -> None:
    """Seed the random generators from which services draw: Python's and the database's.

    On SQLite, Django's random order uses Python's generator.
    """
    random.seed(seed)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT setseed(%s)", [random.Random(seed).uniform(-1, 1)])


def _build_report(task: Task, size: DemoSize) -> dict[str, Any]:
    """Return the rounds' figures as shown on the task's page, and the number of ranked models."""
    rounds = list(task.rounds.filter(number__lte=size.rounds).order_by("number"))
    numbers = build_task_report(rounds, code=task.code)["rounds"]
    names = ("round", "collected", "fooled", "verified_fooled")
    rows = [
        {name: row[name] for name in names} | {"vmer": row["vmer"] and row["vmer"]["value"]}
        for row in numbers
    ]
    return {"rounds": rows, "models": len(build_public_table(task)["rows"])}
