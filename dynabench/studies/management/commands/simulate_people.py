"""Let simulated people take part in a frozen study on this site, to try it out."""

import secrets
from argparse import ArgumentParser
from random import Random
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import Refused
from dynabench.studies.models import Study
from dynabench.studies.simulation_services import (
    ModelBusy,
    SimulatedPeople,
    check_may_simulate,
    play_people,
)
from tasks.targets.endpoints.base import EndpointError

MAX_PEOPLE = 20_000


class Command(BaseCommand):
    help = (
        "Let simulated people take part in a study: they are drawn, agree, talk to their arm's "
        "model, write or decide, answer the questions and submit. To try it out: what they do "
        "counts like people's work, unlike that of a pilot."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("code", help="the study's code")
        parser.add_argument("--people", type=int, default=5, help="number of people")
        parser.add_argument("--base", type=float, default=0.45, help="share of right answers")
        parser.add_argument("--gain", type=float, default=0.0, help="what a model adds to it")
        parser.add_argument("--seed", type=int, default=0, help="random seed")

    def handle(self, *args: Any, **options: Any) -> None:
        """Let the people take part, and print how many did."""
        study = Study.objects.filter(code=options["code"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['code']}.")
        if not 1 <= options["people"] <= MAX_PEOPLE:
            raise CommandError(f"Enter 1 to {MAX_PEOPLE} for --people.")
        base, gain = options["base"], options["gain"]
        if not (0 <= base <= 1 and 0 <= base + gain <= 1):
            raise CommandError("Enter shares from 0 to 1 for --base, and for --base plus --gain.")
        crowd = SimulatedPeople(base, gain, Random(options["seed"]))
        finished = 0
        try:
            check_may_simulate(study)
            # Not from the seed: a second run with it meets other people.
            names = [secrets.token_hex(8) for _ in range(options["people"])]
            for step in play_people(study, names, crowd):
                if step.person - 1 > finished:
                    finished = step.person - 1
                    if finished % 50 == 0:
                        self.stdout.write(f"{finished} people")
            finished = options["people"]
        except (Refused, EndpointError, ModelBusy) as error:
            raise CommandError(f"after {finished} people: {error}") from None
        self.stdout.write(f"{finished} simulated people took part in {study.code}.")
