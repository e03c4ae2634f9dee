"""Make the tasks, campaigns and the draft of a study from a plan with `setup` and its cases."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import Invalid, Refused
from dynabench.studies.models import Study
from dynabench.studies.setup_services import open_study, set_up_study
from tasks.line_files import FileError
from tasks.services import find_account


class Command(BaseCommand):
    help = (
        "Make everything that a study needs from its plan and a file of cases: a task, a round and "
        "a campaign for each arm. With --open, freeze the plan and let people come."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("plan", metavar="PLAN.yaml", help="the plan, with `setup`")
        parser.add_argument("cases", metavar="CASES.jsonl", help="the cases, with their key")
        parser.add_argument("--owner", required=True, help="the owner's email address")
        parser.add_argument(
            "--open", metavar="NAME", help="open it; NAME stands for the ethics statement"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the study, and print where its pages are."""
        cases = Path(options["cases"])
        try:
            owner = find_account(options["owner"])
            plan_text = Path(options["plan"]).read_text(encoding="utf-8")
            # The same command goes on where opening was refused.
            made_study = Study.objects.filter(plan_text=plan_text).first()
            study = (options["open"] and made_study) or set_up_study(
                plan_text=plan_text,
                cases=cases.read_bytes(),
                file_name=cases.name,
                actor=owner,
                is_approved=True,
            )
            if options["open"]:
                open_study(study=study, actor=owner, ethics_name=options["open"])
        except (OSError, UnicodeDecodeError, FileError, Invalid, Refused) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Study {study.code}: /own/{study.task.code}/studies/{study.code}/")
        self.stdout.write(f"People come to /s/{study.code}/.")
