"""Write a round as the file of another annotation tool."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.web.refusals import as_command_error
from evaluation.dataset_releases.tools import export_for_tool
from tasks.formats import TOOL_FORMATS
from tasks.formats.base import ROW_KEY, LeftOutCounts
from tasks.management.named import get_round, task_of


class Command(BaseCommand):
    help = "Write a round's examples to standard output, in the layout that another tool reads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--task", metavar="CODE", required=True)
        parser.add_argument("--round", type=int, required=True, help="its number")
        parser.add_argument("--to", choices=TOOL_FORMATS, required=True, help="the tool")

    @as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        round = get_round(task_of(options["task"]), options["round"])
        form, left = TOOL_FORMATS[options["to"]], LeftOutCounts()
        for piece in export_for_tool(round, options["to"], left):
            self.stdout.write(piece, ending="")
        # On standard error, since standard output is the file.
        if form.hides:
            rows = f", but under `{ROW_KEY}`" if form.keeps else ""
            self.stderr.write(f"{form.title} does not show{rows}: {', '.join(form.hidden)}.")
        count = left.total()
        if count:
            self.stderr.write(f"{count:,} rows have no place in {form.title} and are left out.")
