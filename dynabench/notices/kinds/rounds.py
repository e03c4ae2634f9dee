"""Kinds of notices about rounds."""

from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from dynabench.notices import round_warnings
from dynabench.notices.registry import RoundNotice
from dynabench.notices.round_warnings import RoundFacts


class LateJudging(RoundNotice, name="judging"):
    """The notice that examples of a round have waited too long for votes."""

    label = gettext_lazy("Judging is slow")
    page = "own:dashboard"

    def get_numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how many examples have waited too long, and for how many days; None if none has.

        The round may be closed.
        """
        return round_warnings.get_judging_numbers(round)

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many examples have waited."""
        return ngettext(
            "In round %(round)d, %(count)d example has waited for judges more than %(days)d days.",
            "In round %(round)d, %(count)d examples have waited for judges more than "
            "%(days)d days.",
            count,
        )

    def build_address(self, code: str, round: int) -> str:
        """Return the URL of the round's dashboard."""
        return f"{reverse(self.page, args=[code])}?round={round}"


class FewContexts(RoundNotice, name="contexts"):
    """The notice that few unused contexts are left in a round."""

    label = gettext_lazy("Texts are running out")
    page = "own:contexts"

    def get_numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how many contexts have no example; None if there are enough."""
        return round_warnings.get_context_numbers(round)

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many contexts have no example."""
        return ngettext(
            "Round %(round)d is running out of texts: %(count)d of %(all)d is still unused.",
            "Round %(round)d is running out of texts: %(count)d of %(all)d are still unused.",
            count,
        )

    def build_address(self, code: str, round: int) -> str:
        """Return the URL of the page of the round's contexts."""
        return reverse(self.page, args=[code, round])


class BudgetUsed(RoundNotice, name="budget"):
    """The notice that a round's budget is nearly used up."""

    label = gettext_lazy("A budget is almost used up")
    page = "own:rounds"

    def get_numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return how much of the budget is used; None if it is not near its end."""
        return round_warnings.get_budget_numbers(round)

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how much of the budget is used."""
        return _("Round %(round)d has used %(percent)s of its budget.")


class RoundEnds(RoundNotice, name="end"):
    """The notice that a round ends soon."""

    label = gettext_lazy("A round ends soon")
    page = "own:rounds"

    def get_numbers(self, round: RoundFacts, now: datetime) -> dict[str, Any] | None:
        """Return an empty mapping if the round ends soon; otherwise None."""
        return round_warnings.get_end_numbers(round, now)

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says that the round ends soon."""
        return _("Round %(round)d ends within two days.")
