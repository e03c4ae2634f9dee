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
        from leaderboard.arena.report import compute_report, compute_style_report

        rank = compute_style_report if options["style"] else compute_report
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
        for model in report.as_json["models"]:
            numbers = "  ".join(_format_signed(model[key]) for key in ("strength", "low", "high"))
            counts = f"{model['battles']:8} {model['wins']:7} {model['ties']:7}"
            self.stdout.write(f"{model['rank'] or '–':>4}    {numbers} {counts}  {model['name']}")
        self.stdout.write(f"{report.battles:,} battles, {report.voters:,} voters")
        for effect in report.effects if options["style"] else ():
            numbers = "  ".join(
                _format_signed(effect[key]).strip() for key in ("effect", "low", "high")
            )
            self.stdout.write(f"{effect['name']:>8}  {numbers}")


def _format_signed(number: float | None) -> str:
    """Return a number with its sign, six characters wide; a dash for an unknown one."""
    text = "–" if number is None else f"{number:+.3f}"
    return f"{text:>6}"
