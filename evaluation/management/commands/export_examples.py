"""Export a round as a file for another annotation tool."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.web.refusals import raise_as_command_error
from evaluation.dataset_releases.tools import export_for_tool
from tasks.formats import EXPORT_FORMATS
from tasks.formats.base import ROW_KEY, LeftOutCounts
from tasks.management.lookups import get_round, get_task


class Command(BaseCommand):
    help = "Write a round's examples to standard output, in the layout that another tool reads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--task", metavar="CODE", required=True)
        parser.add_argument("--round", type=int, required=True, help="its number")
        parser.add_argument("--to", choices=EXPORT_FORMATS, required=True, help="the tool")

    @raise_as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        round = get_round(get_task(options["task"]), options["round"])
        tool_format, left_out_counts = EXPORT_FORMATS[options["to"]], LeftOutCounts()
        for piece in export_for_tool(round, options["to"], left_out_counts):
            self.stdout.write(piece, ending="")
        # On standard error, because standard output is the file.
        if tool_format.hidden_parts:
            exception_text = f", but under `{ROW_KEY}`" if tool_format.keeps_rows else ""
            hidden_parts = ", ".join(tool_format.hidden_descriptions)
            self.stderr.write(f"{tool_format.title} does not show{exception_text}: {hidden_parts}.")
        count = left_out_counts.total()
        if count:
            self.stderr.write(
                f"{count:,} rows have no place in {tool_format.title} and are left out."
            )
