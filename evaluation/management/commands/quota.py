"""Set the quota of one person, task or team, which replaces the site's quota."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.accounts.models import User
from evaluation.models import Allowance, Team
from evaluation.submissions.allowance_services import set_allowance
from tasks.models import Task


class Command(BaseCommand):
    help = "List quotas that differ from the site's; with --person, --task or --team, set one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        holder_options = parser.add_mutually_exclusive_group()
        holder_options.add_argument("--person", metavar="EMAIL")
        holder_options.add_argument("--task", metavar="CODE")
        holder_options.add_argument("--team", metavar="NAME")
        parser.add_argument("--models-a-day", type=int, help="accepted ones, for a task")
        parser.add_argument("--gib", type=int, help="of a person: uploads and files of models")
        parser.add_argument("--clear", action="store_true", help="as the site's settings say")

    def handle(self, *args: Any, **options: Any) -> None:
        holder = _find_holder(options)
        values = {"models_a_day": options["models_a_day"], "gib": options["gib"]}
        for number in values.values():
            if number is not None and number < 0:
                raise CommandError("A quota is 0 or more.")
        if values["gib"] is not None and not isinstance(holder, User):
            raise CommandError("--gib is a quota of people: say whose with --person.")
        changes = values
        if not options["clear"]:  # otherwise omitted values return to the site's settings
            changes = {name: number for name, number in values.items() if number is not None}
        if holder and (changes or options["clear"]):
            set_allowance(holder=holder, **changes)
        for row in Allowance.objects.select_related("user", "task", "team").order_by("pk"):
            self.stdout.write(f"{row}: models a day {row.models_a_day}, GiB {row.gib}")


def _find_holder(options: dict[str, Any]) -> User | Task | Team | None:
    """Return the person, task or team that the options name; None if they name none.

    Raises CommandError if it does not exist.
    """
    holder: User | Task | Team | None = None
    if options["person"]:
        holder = User.objects.filter(email__iexact=options["person"]).first()
    elif options["task"]:
        holder = Task.objects.filter(code=options["task"]).first()
    elif options["team"]:
        holder = Team.objects.filter(name__iexact=options["team"]).first()
    if holder is None and (options["person"] or options["task"] or options["team"]):
        raise CommandError("This person, task or team doesn't exist.")
    return holder
