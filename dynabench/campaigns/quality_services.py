"""Write pauses of judges whose work looks careless, and their appeals."""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from dynabench.campaigns.models import Campaign, Pause, Place
from dynabench.campaigns.quality import find_quality_concerns
from tasks.permissions import check_owner


@transaction.atomic
def pause_place(*, place: Place, actor: User | None, evidence: dict[str, Any]) -> None:
    """Pause a participant, who is shown the evidence and may appeal.

    actor: the owner who pauses them, or None for an automatic pause.
    Takes no lock: a unique key allows one open pause per place. Raises Refused.
    """
    if actor is not None:
        check_owner(actor, place.campaign.task)
    try:
        # A transaction of its own: the outer one must survive the violated constraint.
        with transaction.atomic():
            Pause.objects.create(place=place, evidence=evidence, by_rule=actor is None)
    except IntegrityError:
        raise Refused(_("This person is already paused. Reload the page."), code="paused") from None
    log(actor, "campaign.judge-paused", place.campaign.task, place=place.pk)


def pause_by_rule(*, campaign: Campaign) -> int:
    """Pause people whom the evidence or the owner's rules flag; return how many.

    Does nothing unless the owner has enabled this. People who were paused before are left to
    the owner.
    """
    if not campaign.pauses_itself:
        return 0
    paused_place_ids = set(
        Pause.objects.filter(place__campaign=campaign).values_list("place", flat=True)
    )
    # Somebody whose pause the owner has lifted is not paused again by the same evidence.
    new_concerns = [
        concern
        for concern in find_quality_concerns(campaign)
        if concern.place.pk not in paused_place_ids
    ]
    for concern in new_concerns:
        pause_place(place=concern.place, actor=None, evidence=concern.evidence)
    return len(new_concerns)


@transaction.atomic
def submit_appeal(*, place: Place, text: str) -> None:
    """Store a participant's appeal against their pause, once per pause.

    Takes no lock: one update. Raises Refused if the text is empty or was sent before.
    """
    # The filter on an empty appeal makes the first of two tabs win.
    open_pauses = Pause.objects.filter(place=place, lifted_at=None, appeal="")
    text = text.replace("\0", "")[:2000]  # PostgreSQL stores no zero bytes in text
    if not text or not open_pauses.update(appeal=text):
        raise Refused(_("Explain why you disagree. You can appeal once."), code="appeal")


@transaction.atomic
def answer_appeal(*, pause: Pause, actor: User, text: str, lift: bool) -> None:
    """Store the owner's answer to an appeal.

    lift: whether to end the pause. Takes no lock: one update. Raises Refused.
    """
    check_owner(actor, pause.place.campaign.task)
    values: dict[str, Any] = {"answer": text[:2000]}
    if lift:
        values["lifted_at"] = timezone.now()
    # Of two owners who answer at once, the one who lifts the pause has the last word.
    if not Pause.objects.filter(pk=pause.pk, lifted_at=None).update(**values):
        raise Refused(_("The pause has already ended. Reload the page."), code="over")
    log(actor, "campaign.appeal-answered", pause.place.campaign.task, place=pause.place_id)
