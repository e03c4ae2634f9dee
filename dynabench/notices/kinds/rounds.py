"""Notices about rounds."""

from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from dynabench.notices import rules
from dynabench.notices.registry import RoundNotice
from dynabench.notices.rules import RoundFacts


class LateJudging(RoundNotice, name="judging"):
    """Examples wait for votes."""

    label = gettext_lazy("judging lags")
    page = "own:dashboard"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how many have waited how long, also in a round that is not open."""
        return rules.judging_numbers(round)

    def sentence(self, count: int) -> str:
        """Return how many examples have waited."""
        return ngettext(
            "Judging lags in round %(round)d: %(count)d example has waited more than "
            "%(days)d days.",
            "Judging lags in round %(round)d: %(count)d examples have waited more than "
            "%(days)d days.",
            count,
        )

    def address(self, code: str, round: int) -> str:
        """Return the dashboard of the round."""
        return f"{reverse(self.page, args=[code])}?round={round}"


class FewContexts(RoundNotice, name="contexts"):
    """Few contexts are left."""

    label = gettext_lazy("contexts run out")
    page = "own:contexts"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how many contexts have no example."""
        return rules.contexts_numbers(round)

    def sentence(self, count: int) -> str:
        """Return how many contexts have no example."""
        return ngettext(
            "Round %(round)d runs out of contexts: %(count)d of %(all)d has no example yet.",
            "Round %(round)d runs out of contexts: %(count)d of %(all)d have no example yet.",
            count,
        )

    def address(self, code: str, round: int) -> str:
        """Return the round's contexts."""
        return reverse(self.page, args=[code, round])


class BudgetUsed(RoundNotice, name="budget"):
    """A budget is nearly used."""

    label = gettext_lazy("a budget nears its end")
    page = "own:rounds"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how much of the budget is used."""
        return rules.budget_numbers(round)

    def sentence(self, count: int) -> str:
        """Return how much is used."""
        return _("Round %(round)d has used %(percent)d%% of its budget.")


class RoundEnds(RoundNotice, name="end"):
    """The day on which the round ends is near."""

    label = gettext_lazy("a round ends soon")
    page = "own:rounds"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return no numbers when it ends soon."""
        return rules.end_numbers(round, now)

    def sentence(self, count: int) -> str:
        """Return that it ends."""
        return _("Round %(round)d ends within two days.")
