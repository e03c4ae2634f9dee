"""Writes of an arena's owners: live models, gold pairs, decisions on pending conversations."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.refusals import StaleForm
from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.text.words import compose
from leaderboard.models import Battle, Contestant, GoldPair
from tasks.models import TargetModel, Task
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.services import add_target


@transaction.atomic
def add_model(*, task: Task, actor: User, fields: Mapping[str, Any]) -> TargetModel:
    """Register a target with checked settings, and allow battles to draw it. Raises Refused."""
    target = add_target(task=task, actor=actor, fields=fields)
    target.task = task
    set_model_live(target=target, actor=actor, is_live=True)
    return target


@transaction.atomic
def set_model_live(*, target: TargetModel, actor: User, is_live: bool) -> Contestant:
    """Allow battles to draw a target, or no longer allow it. Existing votes are kept.

    Imported comparisons of a model with the target's name become the target's. Takes no lock,
    because the name is unique. Raises Refused if the target's settings are invalid.
    """
    if is_live:
        try:
            # Its settings are tested now, not in the first voter's battle.
            get_endpoint(target)
        except EndpointError as error:
            raise Refused(str(error), code="target") from None
    contestant, _created = Contestant.objects.update_or_create(
        task=target.task, name=target.name, defaults={"target": target, "is_live": is_live}
    )
    log(actor, "contestant.entered" if is_live else "contestant.left", target)
    return contestant


@transaction.atomic
def add_gold_pair(*, task: Task, actor: User, prompt: str, good: str, broken: str) -> GoldPair:
    """Create a gold pair. Raises Refused if both answers consist of the same words."""
    # Compared word by word, because voters would not see a difference in spaces.
    if good.split() == broken.split():
        raise Refused(
            _("Both answers are the same. Make the broken one clearly worse."),
            code="gold",
            field="broken",
        )
    texts = {"prompt": compose(prompt), "good": compose(good), "broken": compose(broken)}
    pair = GoldPair.objects.create(task=task, **texts)
    log(actor, "gold_pair.made", pair, about=task)
    return pair


@transaction.atomic
def set_gold_pair_active(*, pair: GoldPair, actor: User, is_active: bool) -> None:
    """Show a gold pair to voters, or stop showing it; answers to it are kept. Takes no lock."""
    GoldPair.objects.filter(pk=pair.pk).update(is_active=is_active)
    log(actor, "gold_pair.on" if is_active else "gold_pair.off", pair, about=pair.task)


@transaction.atomic
def decide_release(*, battle: Battle, actor: User, should_publish: bool) -> None:
    """Publish or withhold a pending conversation by a conditional update. Raises StaleForm."""
    state = Battle.Release.RELEASED if should_publish else Battle.Release.WITHHELD
    # Only if it still waits: another owner may have decided, or the voter may have withdrawn.
    waiting = Battle.objects.filter(pk=battle.pk, release=Battle.Release.WAITING)
    if not waiting.update(release=state):
        raise StaleForm(_("This conversation is no longer waiting for a decision."))
    log(actor, f"conversation.{state}", battle, about=battle.task)
