"""Print the site's log since a given day, one JSON object per line, for an archive."""

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
    help = "Print the logs of the site and the admin as JSON lines, oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--since", type=date.fromisoformat, required=True, help="2026-01-31")
        parser.add_argument("--person", help="only entries by or about this email address")
        parser.add_argument(
            "--action",
            default="",
            help="only actions that begin with this text, for example token.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        since = datetime.combine(options["since"], time.min, UTC)
        entries = LogEntry.objects.filter(created_at__gte=since)
        entries = entries.filter(action__startswith=options["action"]).select_related("actor")
        admin_entries = AdminLogEntry.objects.filter(action_time__gte=since).select_related("user")
        if email := options["person"]:
            entries = entries.filter(Q(actor__email__iexact=email) | Q(data__user__iexact=email))
            admin_entries = admin_entries.filter(user__email__iexact=email)
        if options["action"]:  # Django's log has no actions of ours
            admin_entries = admin_entries.none()
        for entry in entries.order_by("pk").iterator():
            actor_email = None  # the platform, a command or a deleted account
            if entry.actor:
                actor_email = entry.actor.email
            self._write_entry(
                entry.created_at, actor_email, entry.action, entry.target, entry.task, entry.data
            )
        for admin_entry in admin_entries.order_by("pk").iterator():
            action = f"admin.{admin_entry.get_action_flag_display().lower()}"
            data = {"message": admin_entry.get_change_message()}
            self._write_entry(
                admin_entry.action_time,
                admin_entry.user.email,
                action,
                admin_entry.object_repr,
                "",
                data,
            )

    def _write_entry(
        self,
        time: datetime,
        actor_email: str | None,
        action: str,
        target: str,
        task: str,
        data: Any,
    ) -> None:
        row = {
            "at": time,
            "who": actor_email,
            "action": action,
            "target": target,
            "task": task,
            "data": data,
        }
        self.stdout.write(json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False))
