"""Measure the error rates of signals in a labelled campaign, and store them for the site."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.machine_text.selectors import LabelledStudyResult, measure_labelled_texts
from annotation.machine_text.services import store_signal_study
from dynabench.campaigns.management.lookups import get_campaign
from dynabench.campaigns.selectors import select_campaign_examples


class Command(BaseCommand):
    help = (
        "Measure how often each signal of machine-written text fires in a labelled campaign: in "
        "texts written with a model, and in people's own. With --store, all estimates of the site "
        "use these rates from then on."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("campaign", metavar="SLUG", help="the last part of its link")
        parser.add_argument("--store", action="store_true", help="use the rates on this site")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure the rates, store them if asked to, and print them."""
        campaign = get_campaign(options["campaign"])
        if not campaign.is_labelled:
            raise CommandError(f"{campaign.slug} is no labelled campaign: make_signal_study.")
        result = measure_labelled_texts(select_campaign_examples(campaign))
        # Rates that can't be used would replace earlier ones that can.
        if options["store"] and not result.strata:
            raise CommandError(
                "Nothing is stored: no signals tell machines from people yet. It takes 20 people, "
                "and 30 texts of each kind under a condition."
            )
        if options["store"]:
            store_signal_study(name=campaign.slug, result=result)
        if options["json"]:
            values = {
                "campaign": campaign.slug,
                "texts": result.texts,
                "authors": result.authors,
                "usable": result.strata,
                "rates": result.signal_rates,
                "stored": options["store"],
            }
            self.stdout.write(json.dumps(values))
            return
        for line in list_rate_lines(result):
            self.stdout.write(line)


def list_rate_lines(result: LabelledStudyResult) -> list[str]:
    """Return a line for each signal, and one about what can be used."""
    lines = [f"{result.texts} texts by {result.authors} people"]
    for row in result.signal_rates:
        parts = []
        for name, title in (("machine", "with a model"), ("person", "without")):
            if name in row:
                rate = row[name]
                parts.append(
                    f"{title} {rate['rate']:.1%} ({rate['low']:.1%} to {rate['high']:.1%})"
                )
        lines.append(f"{row['condition']}, {row['signal']}: {', '.join(parts)}")
    lines.append(f"usable: {', '.join(result.strata) or 'none'}")
    return lines
