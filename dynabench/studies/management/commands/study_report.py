"""Print the report of a study: effects with intervals, planned and exploratory."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.studies.models import Study
from dynabench.studies.rules.bundle import write_bundle
from dynabench.studies.rules.report import format_latex
from dynabench.studies.selectors import build_records, build_study_report, list_alone_records


class Command(BaseCommand):
    help = "Print the report of a frozen study, as JSON, as LaTeX, or write its replay bundle."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("code", help="the study's code")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--latex", action="store_true", help="print a table of LaTeX")
        parser.add_argument("--bundle", metavar="FILE.zip", help="write the replay bundle")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute the report and print it."""
        study = Study.objects.filter(code=options["code"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['code']}.")
        if study.state == Study.State.DRAFT:
            raise CommandError(f"Freeze the plan of {study.code} first.")
        report = build_study_report(study)
        if options["bundle"]:
            with Path(options["bundle"]).open("wb") as file:
                write_bundle(
                    file, study.plan_text, report, build_records(study), list_alone_records(study)
                )
        if options["latex"]:
            self.stdout.write(format_latex(report))
        elif options["json"]:
            self.stdout.write(json.dumps(report))
        else:
            for line in list_report_lines(report):
                self.stdout.write(line)


def list_report_lines(report: dict[str, Any]) -> list[str]:
    """Return a line for each arm and each comparison."""
    lines = [f"{report['study']}: plan {report['plan_hash'][:12]}, frozen {report['frozen_at']}"]
    for name, arm in report["arms"].items():
        lines.append(f"{name}: {arm['drawn']} drawn, {arm['submitted']} submitted")
        if alone := arm["model_alone"]:
            lines.append(f"{name}: the model alone is right in {_format_share(alone)}")
    for key in ("planned", "exploratory"):
        for comparison in report[key]:
            pair = f"{comparison['arm']} - {comparison['compared_with']}"
            lines.append(f"{key}: {comparison['outcome']}, {pair}: {_format_effect(comparison)}")
    return lines


def _format_share(share: dict[str, Any]) -> str:
    """Return a share of cases with its interval."""
    interval = f"{share['low']:.3f} to {share['high']:.3f}"
    return f"{share['right']} of {share['asked']} cases: {share['share']:.3f} ({interval})"


def _format_effect(comparison: dict[str, Any]) -> str:
    """Return a difference with its interval and p, the corrected one if it was planned."""
    if comparison["p"] is None:
        return "too few people"
    p = comparison.get("corrected_p", comparison["p"])
    interval = f"{comparison['low']:.3f} to {comparison['high']:.3f}"
    return f"{comparison['difference']:.3f} ({interval}), p = {p:.4f}"
