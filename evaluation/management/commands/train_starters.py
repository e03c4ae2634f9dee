"""Train the starter models of the official tasks."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from evaluation.training.starters import add_arguments, train_and_install_starters


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, settings.HOME)

    def handle(self, **options: Any) -> None:
        train_and_install_starters(
            options["home"], options["task"], force=options["force"], as_json=options["json"]
        )
