"""Make a labelled campaign, in which people are told to write with or without a model."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.rules.writing_conditions import DETERRENTS
from core.errors import Invalid, Refused
from dynabench.campaigns.services import make_campaign
from tasks.management.lookups import get_task
from tasks.services import find_account

CONSENT = """\
You write short texts. For each text, the page tells you whether to use a language model. This is
drawn at random.

We measure how well some signs tell both kinds of texts apart: how a text was typed or pasted, what
you answer when we ask you, and whether a text follows an instruction that only programs read. For
some texts, pasting is off.

- We keep these signs with your texts, under a pseudonym, until you withdraw them.
- We publish error rates only, as sums over all people.
- You can stop at any time.
"""


class Command(BaseCommand):
    help = (
        "Make the draft of a labelled campaign. For each text, people are told at random to write "
        "it with or without a language model, so that the error rates of all signals of "
        "machine-written text can be measured. Use a task of its own: half of its texts are by "
        "machines."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("code", help="the code of the task to write in")
        parser.add_argument("--owner", required=True, help="the email address of a task's owner")
        parser.add_argument("--slug", default="signal-study", help="the last part of its link")
        parser.add_argument("--places", type=int, default=80, help="number of people")
        parser.add_argument("--each", type=int, default=16, help="texts per person")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the draft, and print where its plan continues."""
        task = get_task(options["code"])
        if min(options["places"], options["each"]) < 1:
            raise CommandError("--places and --each must be at least 1.")
        try:
            campaign = make_campaign(
                task=task,
                actor=find_account(options["owner"]),
                consent=CONSENT,
                name="Signs of machine-written texts",
                slug=options["slug"],
                places=options["places"],
                each=options["each"],
                deterrents=list(DETERRENTS),
                is_labelled=True,
            )
        except (Invalid, Refused) as error:
            raise CommandError(str(error)) from None
        url = f"/own/{task.code}/campaigns/{campaign.slug}/"
        if options["json"]:
            values = {"campaign": campaign.slug, "url": url, "deterrents": campaign.deterrents}
            self.stdout.write(json.dumps(values))
            return
        self.stdout.write(f"Campaign {campaign.slug}: {url}")
        self.stdout.write("Check the consent text, add pay and an ethics statement, and open it.")
