"""The models of an arena, ranked."""

import json
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.web.refusals import as_command_error
from tasks.management.named import task_of


class Command(BaseCommand):
    help = "Rank the models of an arena by its comparisons (docs/arena.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task", metavar="CODE")
        parser.add_argument("--json", action="store_true", help="print one object")
        parser.add_argument(
            "--style", action="store_true", help="battles alone, with the answers' style constant"
        )

    @as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small
        from leaderboard.arena.report import report_of, style_report_of

        rank = style_report_of if options["style"] else report_of
        report = rank(task_of(options["task"]))
        if report.is_bounded:
            self.stderr.write(
                "Some models won or lost everything, so their strengths would be infinite: each "
                "model has half a win and half a loss added against an imaginary one."
            )
        if report.unconnected:
            names = ", ".join(report.unconnected)
            self.stderr.write(f"Never compared with most models, so without a strength: {names}")
        if options["json"]:
            more = {"style": report.effects} if options["style"] else {}
            self.stdout.write(json.dumps(report.as_json | more, ensure_ascii=False, indent=2))
            return
        self.stdout.write("rank  strength     low    high  battles    wins    ties  model")
        for one in report.as_json["models"]:
            numbers = (one[key] for key in ("strength", "low", "high"))
            cells = ("–" if cell is None else f"{cell:+.3f}" for cell in numbers)
            counts = f"{one['battles']:8} {one['wins']:7} {one['ties']:7}"
            shown = "  ".join(f"{cell:>6}" for cell in cells)
            self.stdout.write(f"{one['rank'] or '–':>4}    {shown} {counts}  {one['name']}")
        self.stdout.write(f"{report.battles:,} battles, {report.voters:,} voters")
        for one in report.effects if options["style"] else ():
            values = (one[key] for key in ("effect", "low", "high"))
            cells = ("–" if value is None else f"{value:+.3f}" for value in values)
            self.stdout.write(f"{one['name']:>8}  {'  '.join(cells)}")
