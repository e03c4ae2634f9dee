"""Print the ranking of an arena's models."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand

from core.web.refusals import raise_as_command_error
from leaderboard.arena.judges.selectors import find_arena_judges
from tasks.management.lookups import get_task
from tasks.models import Task


class Command(BaseCommand):
    help = "Rank the models of an arena from its comparisons (docs/arena.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task", metavar="CODE")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--style", action="store_true", help="only battles, adjusted for the style of answers"
        )

        parser.add_argument(
            "--judges",
            action="store_true",
            help="LLM judges instead: agreement with people, consistency, position bias",
        )

    @raise_as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        if options["judges"]:
            self._print_judges(get_task(options["task"]), as_json=options["json"])
            return
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small
        from leaderboard.arena.report import compute_report, compute_style_report

        rank = compute_style_report if options["style"] else compute_report
        report = rank(get_task(options["task"]))
        if report.is_bounded:
            self.stderr.write(
                "Some models won or lost every battle. To keep strengths finite, half a win "
                "and half a loss were added to each model."
            )
        if report.unconnected:
            names = ", ".join(report.unconnected)
            self.stderr.write(f"Not enough comparisons for a strength: {names}")
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

    def _print_judges(self, task: Task, *, as_json: bool) -> None:
        """Print what both orders say about each LLM judge that has run."""
        judges = [judge for judge in find_arena_judges(task) if judge.report]
        if as_json:
            rows = []
            for judge in judges:
                names = {"name": judge.name, "target": judge.target.name}
                rows.append({**names, "prompt": judge.prompt, **judge.report})
            self.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2))
            return
        for judge in judges:
            report = judge.report
            calibrated = "" if report["is_calibrated"] else " (not calibrated)"
            self.stdout.write(f"{judge.name}: {judge.target.name}{calibrated}")
            self.stdout.write(
                f"  battles        {report['battles']:,} by {report['voters']:,} voters"
            )
            self.stdout.write(f"  agreement      {_format_interval(report['agreement'])} (kappa)")
            self.stdout.write(f"  consistency    {_format_interval(report['consistency'])}")
            self.stdout.write(f"  position bias  {_format_interval(report['first_share'])}")


def _format_interval(numbers: Mapping[str, Any] | None) -> str:
    """Return a value with its interval; a dash if it is unknown."""
    if numbers is None or numbers["value"] is None:
        return "–"
    return f"{numbers['value']:.3f} [{numbers['low']:.3f}, {numbers['high']:.3f}]"


def _format_signed(number: float | None) -> str:
    """Return a number with its sign, six characters wide; a dash for an unknown one."""
    text = "–" if number is None else f"{number:+.3f}"
    return f"{text:>6}"
