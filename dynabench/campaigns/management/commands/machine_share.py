"""Print the estimated share of machine-written texts of a campaign or a round."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.machine_text.selectors import build_machine_share_report, describe_machine_share
from annotation.models import Example
from dynabench.campaigns.management.lookups import get_campaign
from dynabench.campaigns.selectors import select_campaign_examples
from tasks.management.lookups import get_round, get_task


class Command(BaseCommand):
    help = (
        "Estimate which share of the texts of a campaign, a round or a task machines wrote, with a "
        "95% interval. Says nothing about a single text or person."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--campaign", metavar="SLUG", help="the last part of its link")
        where.add_argument("--task", metavar="CODE", help="the task's code, such as nli")
        parser.add_argument("--round", type=int, metavar="NUMBER", help="of the task; default: all")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Estimate the share and print it."""
        if options["campaign"]:
            if options["round"] is not None:
                raise CommandError("--round goes with --task.")
            examples = select_campaign_examples(get_campaign(options["campaign"]))
        else:
            task = get_task(options["task"])
            examples = Example.objects.filter(round__task=task)
            if options["round"] is not None:
                examples = examples.filter(round=get_round(task, options["round"]))
        report = build_machine_share_report(examples)
        if options["json"]:
            self.stdout.write(json.dumps(report, default=str))
            return
        self.stdout.write(describe_machine_share(report) or "People wrote none of these texts.")
        for row in report["signals"]:
            self.stdout.write(
                f"{row['condition']}, {row['signal']}: {row['fired']} of {row['texts']} texts"
            )
