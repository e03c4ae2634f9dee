"""The log of the site since a day, one JSON object a line, for an archive of audit records."""

import json
from argparse import ArgumentParser
from datetime import UTC, date, datetime, time
from typing import Any

from django.contrib.admin.models import LogEntry as AdminLogEntry
from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q

from core.accounts.models import LogEntry


class Command(BaseCommand):
    help = "Print the site's log and the admin's, oldest first, as JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--since", type=date.fromisoformat, required=True, help="2026-01-31")
        parser.add_argument("--person", help="only what this e-mail address did or was done to")
        parser.add_argument("--action", default="", help="only actions that begin so: token.")

    def handle(self, *args: Any, **options: Any) -> None:
        since = datetime.combine(options["since"], time.min, UTC)
        entries = LogEntry.objects.filter(created_at__gte=since)
        entries = entries.filter(action__startswith=options["action"]).select_related("actor")
        admins = AdminLogEntry.objects.filter(action_time__gte=since).select_related("user")
        if email := options["person"]:
            entries = entries.filter(Q(actor__email__iexact=email) | Q(data__user__iexact=email))
            admins = admins.filter(user__email__iexact=email)
        if options["action"]:  # Django's log has no actions of ours
            admins = admins.none()
        for entry in entries.order_by("pk").iterator():
            actor_email = None  # the platform, a command or a deleted account
            if entry.actor:
                actor_email = entry.actor.email
            self._tell(
                entry.created_at, actor_email, entry.action, entry.target, entry.task, entry.data
            )
        for admin_entry in admins.order_by("pk").iterator():
            action = f"admin.{admin_entry.get_action_flag_display().lower()}"
            data = {"message": admin_entry.get_change_message()}
            self._tell(
                admin_entry.action_time,
                admin_entry.user.email,
                action,
                admin_entry.object_repr,
                "",
                data,
            )

    def _tell(
        self, at: datetime, actor_email: str | None, action: str, target: str, task: str, data: Any
    ) -> None:
        row = {
            "at": at,
            "who": actor_email,
            "action": action,
            "target": target,
            "task": task,
            "data": data,
        }
        self.stdout.write(json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False))
