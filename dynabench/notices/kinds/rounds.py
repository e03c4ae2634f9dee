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
    """A notice that examples of a round have waited too long for votes."""

    label = gettext_lazy("judging lags")
    page = "own:dashboard"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how many examples have waited and for how long, even if the round is closed."""
        return rules.get_judging_numbers(round)

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many examples have waited."""
        return ngettext(
            "Judging lags in round %(round)d: %(count)d example has waited more than "
            "%(days)d days.",
            "Judging lags in round %(round)d: %(count)d examples have waited more than "
            "%(days)d days.",
            count,
        )

    def address(self, code: str, round: int) -> str:
        """Return the address of the round's dashboard."""
        return f"{reverse(self.page, args=[code])}?round={round}"


class FewContexts(RoundNotice, name="contexts"):
    """A notice that few unused contexts are left in a round."""

    label = gettext_lazy("contexts run out")
    page = "own:contexts"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how many contexts have no example; None if there are enough."""
        return rules.get_context_numbers(round)

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many contexts have no example."""
        return ngettext(
            "Round %(round)d runs out of contexts: %(count)d of %(all)d has no example yet.",
            "Round %(round)d runs out of contexts: %(count)d of %(all)d have no example yet.",
            count,
        )

    def address(self, code: str, round: int) -> str:
        """Return the address of the round's contexts."""
        return reverse(self.page, args=[code, round])


class BudgetUsed(RoundNotice, name="budget"):
    """A notice that a round's budget is nearly used."""

    label = gettext_lazy("a budget nears its end")
    page = "own:rounds"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how much of the budget is used; None if it is not near its end."""
        return rules.get_budget_numbers(round)

    def sentence(self, count: int) -> str:
        """Return the sentence that says how much of the budget is used."""
        return _("Round %(round)d has used %(percent)d%% of its budget.")


class RoundEnds(RoundNotice, name="end"):
    """A notice that a round ends soon."""

    label = gettext_lazy("a round ends soon")
    page = "own:rounds"

    def numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return an empty mapping if the round ends soon; otherwise None."""
        return rules.get_end_numbers(round, now)

    def sentence(self, count: int) -> str:
        """Return the sentence that says that the round ends soon."""
        return _("Round %(round)d ends within two days.")
