"""Prolific: people arrive by the study's link and leave with one of its codes."""

import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from core.accounts.models import Annotator
from dynabench.campaigns.ways.panels import Panel
from dynabench.campaigns.ways.paying import Api
from dynabench.campaigns.ways.prolific import Prolific
from dynabench.campaigns.ways.registry import Way

if TYPE_CHECKING:
    from dynabench.campaigns.models import Campaign

DONE_URL = "https://app.prolific.com/submissions/complete?cc={code}"


class ProlificStudy(Way, name="prolific"):
    """A way to recruit people through a study on Prolific."""

    title = _("Prolific")
    place = 2
    panel = Panel(
        "PROLIFIC_PID",
        re.compile(r"[0-9a-f]{24}"),
        "SESSION_ID",
        "STUDY_ID",
        DONE_URL,
        preview=re.compile(r"[0-9A-Za-z]{1,23}"),  # of twelve letters and digits, in 2022
    )
    placeholders = (
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    source = Annotator.Source.PROLIFIC
    needs_completion_code = True
    approves_after_days = 21
    pays_parts_as_bonus = True

    def connect(self, campaign: "Campaign", token: str) -> Api:
        """Return the API client for the campaign's study."""
        hosts = settings.PANEL_PRIVATE_HOSTS
        return Prolific(settings.PROLIFIC_URL, token, campaign.study, campaign.currency, hosts)
