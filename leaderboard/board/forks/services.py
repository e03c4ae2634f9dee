"""Writes of forks: weights kept under a name."""

import re

from django.db import IntegrityError, transaction
from django.utils.translation import gettext

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from leaderboard.models import Weights
from leaderboard.ranking.weights import Weighting, check_weights
from tasks.models import Task

FORK_PATTERN = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME_CHARS = 60


@transaction.atomic
def save_weights(
    *, task: Task, owner: User, name: str, weighting: Weighting, description: str = ""
) -> Weights:
    """Save weights under a name as a fork; replace the owner's weights of the same name.

    No lock: the constraint `weights_one_name` suffices. Raises Refused.
    """
    if len(name) > MAX_NAME_CHARS or not FORK_PATTERN.fullmatch(name):
        raise Refused(
            gettext(
                "“%(name)s” is no name for weights. Use lower-case letters, digits and single "
                "hyphens, at least one letter, such as speed-first."
            )
            % {"name": name[:MAX_NAME_CHARS]},
            field="name",
        )
    # A fork that cannot be scored would open an address that only shows an error.
    check_weights(weighting)
    columns = {
        "description": description,
        "metrics": dict(weighting.metrics),
        "evaluation_sets": dict(weighting.sets),
    }
    # One's own fork is overwritten; only another person's name is refused.
    if Weights.objects.filter(task=task, name=name, owner=owner).update(**columns):
        return Weights.objects.get(task=task, name=name)
    # In a transaction of its own: a refused row would otherwise break the one around it.
    try:
        with transaction.atomic():
            return Weights.objects.create(task=task, name=name, owner=owner, **columns)
    except IntegrityError:
        raise Refused(
            gettext("Somebody else has weights named %(name)s in this task. Take another name.")
            % {"name": name},
            field="name",
        ) from None


@transaction.atomic
def delete_weights(*, weights: Weights, actor: User) -> None:
    """Delete a fork; links to it no longer work. Takes no lock."""
    log(actor, "weights.deleted", weights)
    weights.delete()
