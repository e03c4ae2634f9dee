"""Write the quotas that operators give to a person, task or team instead of the site's."""

from typing import Any

from django.db import transaction

from core.accounts.models import User
from core.accounts.services import log
from evaluation.models import Allowance, Team
from tasks.models import Task


@transaction.atomic
def set_allowance(*, holder: User | Task | Team, **values: int | None) -> None:
    """Set `models_a_day` and `gib` for a person, task or team; None for the site's default.

    A value that is left out stays as it is. Takes no lock: each holder has at most one row.
    """
    field_by_class = {User: "user", Task: "task", Team: "team"}
    # A row belongs to exactly one of these three.
    holder_field: dict[str, Any] = {field_by_class[type(holder)]: holder}
    Allowance.objects.update_or_create(**holder_field, defaults=values)
    log(None, "allowance.changed", holder, **values)  # set by a command, without a person
