"""Add a ready-made community."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.web.refusals import raise_as_command_error
from dynabench.communities.ready_services import add_ready_community, read_ready_communities
from tasks.services import find_account


class Command(BaseCommand):
    help = (
        "Add a ready-made community with its tasks (docs/communities.md). Running it again adds "
        "only missing parts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("name", choices=sorted(read_ready_communities()))
        parser.add_argument(
            "--owner", metavar="EMAIL", help="owner of the community and of the tasks it creates"
        )

    @raise_as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        """Add the community, and print its address and its tasks."""
        owner = find_account(options["owner"]) if options["owner"] else None
        community = add_ready_community(name=options["name"], owner=owner)
        tasks = ", ".join(community.entries.values_list("task__code", flat=True))
        self.stdout.write(f"{community.name}: /communities/{community.slug}/ with {tasks}.")
