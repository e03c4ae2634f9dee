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
                "You can't use the name “%(name)s”. Use lowercase letters, numbers and "
                "single hyphens, for example speed-first."
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
    # A person's own fork is overwritten; only names of other people's forks are refused.
    if Weights.objects.filter(task=task, name=name, owner=owner).update(**columns):
        return Weights.objects.get(task=task, name=name)
    # In its own transaction, because a refused row would break the outer one.
    try:
        with transaction.atomic():
            return Weights.objects.create(task=task, name=name, owner=owner, **columns)
    except IntegrityError:
        raise Refused(
            gettext(
                "Someone else already uses the name %(name)s in this task. Choose another name."
            )
            % {"name": name},
            field="name",
        ) from None


@transaction.atomic
def delete_weights(*, weights: Weights, actor: User) -> None:
    """Delete a fork; links to it no longer work. Takes no lock."""
    log(actor, "weights.deleted", weights)
    weights.delete()
