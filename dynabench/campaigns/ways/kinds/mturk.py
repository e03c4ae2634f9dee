"""Mechanical Turk: it frames the site's pages, and people submit a form to it when they finish."""

import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from core.accounts.models import Annotator
from dynabench.campaigns.ways.mturk import MechanicalTurk
from dynabench.campaigns.ways.panels import Panel
from dynabench.campaigns.ways.paying import Api
from dynabench.campaigns.ways.registry import Way

if TYPE_CHECKING:
    from dynabench.campaigns.models import Campaign


class MechanicalTurkTask(Way, name="mturk"):
    """A way to recruit people by a task (HIT) at Mechanical Turk."""

    title = _("Mechanical Turk")
    place = 3
    panel = Panel(
        "workerId",
        re.compile(r"[A-Z0-9]{5,64}"),
        "assignmentId",
        "hitId",
        # The word that Mechanical Turk writes into the link of a preview.
        preview=re.compile("ASSIGNMENT_ID_NOT_AVAILABLE"),
    )
    source = Annotator.Source.MTURK
    approves_after_days = 30  # a task's AutoApprovalDelay, unless it was set
    is_framed = True

    def connect(self, campaign: "Campaign", token: str) -> Api:
        """Return the API client for the requester's account."""
        return MechanicalTurk(settings.MTURK_URL, token)
