"""Writes of operators who give a person, a task or a team another quota than the site's."""

from typing import Any

from django.db import transaction

from core.accounts.models import User
from core.accounts.services import log
from evaluation.models import Allowance, Team
from tasks.models import Task


@transaction.atomic
def set_allowance(*, holder: User | Task | Team, **values: int | None) -> None:
    """Set `models_a_day` and `gib` for a person, task or team; None for the site's default.

    Takes no lock: each has a unique row.
    """
    kinds = {User: "user", Task: "task", Team: "team"}
    of: dict[str, Any] = {kinds[type(holder)]: holder}
    Allowance.objects.update_or_create(**of, defaults=values)
    log(None, "allowance.changed", holder, **values)  # by a command: there is no person
